"""predict the time of each algorithm on any machine, and the fastest one"""
import argparse
import sys
from typing import NoReturn

import process
from build import set_up
from command_line import Parser

PLANNER = "tools/results/plan.py"


def arguments(parser: Parser) -> None:
    """All words are passed on to the planner, --help included."""
    parser.pass_on_behind("command", "the planner")


def main(call: argparse.Namespace) -> NoReturn:
    """Builds the programs of the requested chapters, whose --cost the planner reads: those for virtual GPUs, because nothing is
    measured."""
    if call.backend == "cuda":
        raise process.Refusal("nothing is run to predict: plan takes no --backend cuda")
    status, names = process.output([sys.executable, str(process.ROOT / PLANNER), "--programs", *call.arguments])
    if status != 0:  # it has said why
        raise SystemExit(status)
    if names:
        set_up("run", "virtual", call.yes).build(names)
    process.leave_to(PLANNER, *call.arguments)
