"""predict the time of each algorithm on any machine, and the fastest one"""
import argparse
import sys
from typing import NoReturn

import process
from build import set_up
from command_line import Parser

PLANNER = "tools/results/plan.py"


def arguments(parser: Parser) -> None:
    """All goes to the planner, --help too."""
    parser.pass_on_behind("command", "the planner")


def main(call: argparse.Namespace) -> NoReturn:
    """Builds the programs of the chapters that are asked for, which say what a call costs: virtual ones, since no GPU is asked."""
    if call.backend == "cuda":
        raise process.Refusal("nothing is run to predict: plan takes no --backend cuda")
    status, names = process.output([sys.executable, str(process.ROOT / PLANNER), "--programs", *call.arguments])
    if status != 0:  # it has said why
        raise SystemExit(status)
    if names:
        set_up("run", "virtual", call.yes).build(names)
    process.leave_to(PLANNER, *call.arguments)
