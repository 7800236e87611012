"""run under the race detector, which reports a forgotten wait; exit status 3"""
import argparse
import os
import pathlib
import sys
import tempfile
from typing import Dict, List, Optional

import program as programs
import tour
from build import set_up
from command_line import Parser
from commands import test
from process import Refusal, quietly, run, run_keeping_input, say
from virtual_gpu.tools import race_runs


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
    return _run_all(build.command(program.path) + call.arguments, program.is_own)


def _run_all(command: List[str], reads: bool) -> int:
    """Runs the program as often as it takes to separate its blocks; a short program several times. If it `reads` standard input,
    every run gets what the first one got. Only the first run's output is printed, and that of a run with an exit status other
    than 0."""
    with tempfile.TemporaryDirectory() as folder:
        return _run_all_with(command, pathlib.Path(folder, "input") if reads else None)


def _run_all_with(command: List[str], kept: Optional[pathlib.Path]) -> int:
    """`kept` becomes a file with the standard input of the first run."""
    def start(separate: Dict[str, str]) -> int:
        environment = {**os.environ, **separate}
        if separate[race_runs.BIT] == "0":
            return run_keeping_input(command, environment, kept) if kept else run(command, environment)
        with tempfile.TemporaryFile() as log:
            status = quietly(command, log, environment, kept if kept and kept.exists() else None)
            if status != 0:
                log.seek(0)
                sys.stderr.buffer.write(log.read())
                say(f"this was run {int(separate[race_runs.BIT]) + 1}, with {race_runs.BIT}={separate[race_runs.BIT]}")
        return status if status >= 0 else 128 - status

    one_order = any(word.startswith("--schedule") for word in command)
    status, runs, blocks = race_runs.run_all(start, 1 if one_order else race_runs.SEVERAL)
    if status == 0:
        in_runs = f" in {runs} runs" if runs > 1 else ""
        in_runs += " that separate the kernels' blocks" if runs > 1 and blocks > 1 else ""
        say(f"no race and no deadlock was reported{in_runs}")
        if blocks > 1 << runs:
            say(f"not separated: blocks of a grid whose numbers differ by a multiple of {1 << runs} (a grid has {blocks})")
    return status
