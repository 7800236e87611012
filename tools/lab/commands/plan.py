"""predict what each algorithm takes and which one wins, on a machine that need not be here"""
import argparse
from typing import NoReturn

import process
from build import set_up
from command_line import Parser


def arguments(parser: Parser) -> None:
    """All goes to bin/plan, --help too."""
    parser.pass_on_behind("command", "the planner")


def main(call: argparse.Namespace) -> NoReturn:
    """Builds bin/plan, which asks no GPU and so stands beside the programs of the virtual ones."""
    if call.backend == "cuda":
        raise process.Refusal("nothing is run to predict: plan takes no --backend cuda")
    build = set_up("run", "virtual", call.yes)
    build.build("plan")
    process.become([*build.command("bin/plan"), *call.arguments])
