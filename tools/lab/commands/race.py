"""the same as run, with the race detector: a forgotten wait is reported, exit status 3"""
import argparse

import program as programs
import tour
from build import set_up
from command_line import Parser
from commands import test
from process import Refusal, run, say


def arguments(parser: Parser) -> None:
    """PROGRAM, or the tests of the race build."""
    programs.add_to(parser, nargs="?")
    parser.add_argument("--test", action="store_true", help="with a chapter or alone: the race detector's own tests, and the "
                        "chapters in many schedules")


def main(call: argparse.Namespace) -> int:
    if call.backend == "cuda":
        raise Refusal("the race detector works on virtual GPUs only")
    if call.test:
        if call.arguments:
            raise Refusal(f"race --test passes no arguments on: {' '.join(call.arguments)}")
        return test.of_the_race_build(call.program, call.yes)
    program = programs.asked_for(call)
    build = set_up("run", "virtual", call.yes).race()
    if program is None:
        return tour.run(build, call.arguments)
    program.build(build)
    build.need_gpus()
    status = run(build.command(program.path) + call.arguments)
    if status == 0:
        say("no race and no deadlock was reported")
    return status
