"""list what is installed, what is missing and what would be skipped; installs nothing"""
import argparse

from build import set_up
from process import ROOT, run


def main(call: argparse.Namespace) -> int:
    """Runs tools/lab/doctor.sh, which needs no Python, then bin/doctor, which copies between GPUs."""
    status = run(["bash", str(ROOT / "tools" / "lab" / "doctor.sh"), call.backend])
    if status != 0:
        return status
    build = set_up("run", call.backend, call.yes)  # doctor.sh ends with 2 if anything is missing
    build.build("doctor")
    status = run(build.command("bin/doctor"))
    return 0 if status == 77 else status
