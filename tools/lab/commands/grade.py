"""./lab grade: grades what students hand in. Builds the runner and the judge; tools/teaching/grade does the rest."""
import sys

import process
from build import set_up
from call import Call
from chapters import ROOT, find


def main(call: Call) -> int:
    """Both builds are needed: results come from the plain one, races from the other."""
    words = [*call.options, *call.arguments]
    command = [sys.executable, "-I", str(ROOT / "tools" / "teaching" / "grade"), str(call.operand), *words]
    if "--help" not in words and "-h" not in words:
        chapter = find(str(call.operand))
        if (ROOT / "chapters" / chapter / "assignment" / "grade.json").is_file():  # else the grader says what is missing
            plain = set_up("run", "virtual", call.yes)
            plain.build("teaching")
            plain.race().build("teaching")
    process.become(command)
