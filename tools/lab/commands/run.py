"""build and run a program; without PROGRAM, a tour of all chapters"""
import argparse

import mpi
import program as programs
import tour
from build import Build, set_up
from command_line import Parser
from process import become, run, say
from program import Program


def arguments(parser: Parser) -> None:
    programs.add_to(parser, nargs="?")
    parser.add_argument("--nodes", metavar="COUNT", help="as so many processes of MPI, each of which is a node (chapter 20; docs/cluster.md)")


def main(call: argparse.Namespace) -> int:
    program = programs.asked_for(call)
    nodes = 0 if call.nodes is None else mpi.nodes(call.nodes, program.target if program else "")
    build = set_up("run", call.backend, call.yes)
    if nodes and program:
        return mpi.run(build, program, nodes, call.arguments)
    return _run(build, program, call) if program else tour.run(build, call.arguments)


def _run(build: Build, program: Program, call: argparse.Namespace) -> int:
    program.build(build)
    build.need_gpus()
    command = build.command(program.path) + call.arguments
    if not program.experiments:
        become(command)
    status = run(command)
    if status == 0:
        say(f"experiments: ./lab run {', '.join(program.experiments)}")
    return status
