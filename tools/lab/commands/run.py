"""./lab run: a program, or all chapters."""
import tour
from build import Build, set_up
from call import Call
from process import become, run, say
from program import Program, asked_for


def main(call: Call) -> int:
    """Runs what was asked for."""
    program = asked_for(call)
    build = set_up("run", call.backend, call.yes)
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
