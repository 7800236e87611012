"""./lab race: the same as run in the build with the race detector, and its own tests."""
import tour
from build import set_up
from call import Call
from commands import test
from process import run, say
from program import asked_for


def main(call: Call) -> int:
    """Runs or tests what was asked for."""
    if "--test" in call.options:
        return test.of_the_race_build(call)
    program = asked_for(call)
    build = set_up("run", "virtual", call.yes).race()
    if program is None:
        return tour.run(build, call.arguments)
    program.build(build)
    build.need_gpus()
    status = run(build.command(program.path) + call.arguments)
    if status == 0:
        say("no race and no deadlock was reported")
    return status
