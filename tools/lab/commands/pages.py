"""./lab pages: what is generated in the pages."""
import sys

import process
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Leaves it to tools/update_pages.py."""
    process.become([sys.executable, str(ROOT / "tools" / "update_pages.py"), *call.options])
