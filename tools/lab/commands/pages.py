"""./lab pages: what is generated in the pages."""
import sys

import process
from build import set_up
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Builds the mutants that pages show, unless it is to change nothing or needs no build; update_pages.py does the rest."""
    tools = ROOT / "tools"
    if not call.options:
        status, printed = process.output([sys.executable, str(tools / "bugs.py"), "--targets"])
        if status != 0:
            return status
        targets = [line.split() for line in printed.splitlines()]
        plain = set_up("test", "virtual", call.yes) if targets else None
        for build, target in targets:
            assert plain is not None
            (plain.race() if build == "race" else plain).build(target, "-DBUILD_TESTING=ON", "-DOVERLAP_MUTANTS=ON")
    process.become([sys.executable, str(tools / "update_pages.py"), *call.options])
