"""./lab run: a program, or all chapters."""
from typing import Optional

import nodes
import tour
from build import Build, set_up
from call import Call
from process import Refusal, become, run, say
from program import Program, asked_for


def main(call: Call) -> int:
    """Runs what was asked for."""
    program = asked_for(call)
    launch = nodes.asked_for(call)
    if launch and (program is None or program.target.startswith("own_")):
        raise Refusal("--nodes is for chapters with nodes: ./lab run 20 --nodes 2")
    build = set_up("run", call.backend, call.yes)
    return run_here(build, program, call, launch) if program else tour.run(build, call.arguments)


def run_here(build: Build, program: Program, call: Call, launch: Optional[nodes.Launch] = None) -> int:
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
