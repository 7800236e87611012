"""run with every access checked: out of bounds, freed, never written, not accessible; exit status 3"""
import argparse

import program as programs
import tour
from build import set_up
from command_line import Parser
from commands import test
from process import Refusal, run, say


def arguments(parser: Parser) -> None:
    """PROGRAM, or the tests of the check build."""
    programs.add_to(parser, nargs="?")
    parser.add_argument("--test", action="store_true", help="with a chapter or alone: the checks' own tests, and the chapters")


def main(call: argparse.Namespace) -> int:
    if call.backend == "cuda":
        raise Refusal("accesses are checked on virtual GPUs only; on real ones compute-sanitizer does it")
    if call.test:
        if call.arguments:
            raise Refusal(f"check --test passes no arguments on: {' '.join(call.arguments)}")
        return test.of_the_check_build(call.program, call.yes)
    program = programs.asked_for(call)
    build = set_up("run", "virtual", call.yes).check()
    if program is None:
        return tour.run(build, call.arguments)
    program.build(build)
    status = run(build.command(program.path) + call.arguments)
    if status == 0:
        say("no wrong access was reported")
    return status
