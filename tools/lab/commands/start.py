"""./lab start: the hand-out of a chapter."""
import sys

import chapters
import process
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Leaves it to tools/teaching/handout.py."""
    words = ["start", chapters.find(str(call.operand)), *call.options]
    process.become([sys.executable, str(ROOT / "tools" / "teaching" / "handout.py"), *words])
