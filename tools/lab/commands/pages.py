"""update the generated blocks of the pages"""
import argparse
import sys

import process
from build import set_up
from command_line import given
from process import ROOT


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="list what has drifted; change nothing")
    parser.add_argument("--measured", action="store_true", help="only what comes from docs/results: needs no build")


def main(call: argparse.Namespace) -> int:
    """Builds the mutants that pages show, except with --check or --measured. Then starts update_pages.py."""
    options = given(call, "check", "measured")
    if not options:
        status, printed = process.output([sys.executable, str(ROOT / "tools" / "pages" / "mutant_blocks.py"), "--targets"])
        if status != 0:
            return status
        targets = [line.split() for line in printed.splitlines()]
        plain = set_up("test", "virtual", call.yes) if targets else None
        for build, target in targets:
            assert plain is not None
            (plain.race() if build == "race" else plain).build(target, "-DBUILD_TESTING=ON", "-DOVERLAP_MUTANTS=ON")
    process.leave_to("tools/pages/update_pages.py", *options)
