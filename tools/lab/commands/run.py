"""./lab run: a program, or all chapters."""
import mpi
import tour
from build import Build, set_up
from call import Call
from process import become, run, say
from program import Program, asked_for


def main(call: Call) -> int:
    """Runs what was asked for."""
    program = asked_for(call)
    given = next((option.partition("=")[2] for option in call.options if option.startswith("--nodes=")), None)
    nodes = mpi.nodes(given, program.target if program else "") if given is not None else 0
    build = set_up("run", call.backend, call.yes)
    if nodes and program:
        return mpi.run(build, program, nodes, call.arguments)
    return run_here(build, program, call) if program else tour.run(build, call.arguments)


def run_here(build: Build, program: Program, call: Call) -> int:
    """Builds and runs one program."""
    program.build(build)
    build.need_gpus()
    command = build.command(program.path) + call.arguments
    if not program.experiments:
        become(command)
    status = run(command)
    if status == 0:
        say(f"experiments: ./lab run {', '.join(program.experiments)}")
    return status
