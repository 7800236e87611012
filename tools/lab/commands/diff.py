"""./lab diff: what a chapter adds to the one that it builds on."""
import sys

import chapters
import process
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Leaves it to tools/teaching/changes.py."""
    words = [chapters.find(str(call.operand))]
    process.become([sys.executable, str(ROOT / "tools" / "teaching" / "changes.py"), *words])
