"""./lab doctor: what is here, from tools/doctor.sh, which needs no Python; then bin/doctor, which copies between GPUs."""
from build import set_up
from call import Call
from chapters import ROOT
from process import run


def main(call: Call) -> int:
    """Says what is here, and installs nothing."""
    status = run(["bash", str(ROOT / "tools" / "doctor.sh"), call.backend])
    if status != 0:
        return status
    build = set_up("run", call.backend, call.yes)  # doctor.sh ends with 2 if anything is missing
    build.build("doctor")
    status = run(build.command("bin/doctor"))
    return 0 if status == 77 else status
