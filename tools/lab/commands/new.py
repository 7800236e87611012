"""./lab new: the skeleton of a chapter."""
import sys

import process
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Leaves it to tools/new_chapter.py."""
    process.become([sys.executable, str(ROOT / "tools" / "new_chapter.py"), str(call.operand)])
