"""build and run a program; without one the tour: all chapters"""
import argparse
from typing import Optional

import nodes
import program as programs
import tour
from build import Build, set_up
from command_line import Parser
from process import Refusal, become, run, say
from program import Program


def arguments(parser: Parser) -> None:
    """PROGRAM and what it runs with."""
    programs.add_to(parser, nargs="?")
    nodes.add_to(parser)


def main(call: argparse.Namespace) -> int:
    """Runs what was asked for."""
    program = programs.asked_for(call)
    launch = nodes.asked_for(call)
    if launch and (program is None or program.target.startswith("own_")):
        raise Refusal("--nodes is for chapters with nodes: ./lab run 20 --nodes 2")
    build = set_up("run", call.backend, call.yes)
    return _run(build, program, call, launch) if program else tour.run(build, call.arguments)


def _run(build: Build, program: Program, call: argparse.Namespace, launch: Optional[nodes.Launch]) -> int:
    """Builds and runs one program."""
    program.build(build)
    build.need_gpus()
    command = build.command(program.path) + call.arguments
    if launch:
        return launch.run(command, build.backend)
    if not program.experiments:
        become(command)
    status = run(command)
    if status == 0:
        say(f"experiments: ./lab run {', '.join(program.experiments)}")
    return status
