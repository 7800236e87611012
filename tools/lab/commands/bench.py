"""./lab bench: what was measured on real GPUs goes to docs/results and into the pages."""
import sys
from typing import List

import chapters
import process
from build import set_up, shell
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Builds what is measured, and leaves the rest to tools/bench.py."""
    names = chapters.names() if call.operand is None else [chapters.find(call.operand)]
    if "--quick" not in call.options:
        names = [program for name in names for program in (name, *chapters.programs_of_experiments(name))]
    build = set_up("run", call.backend, call.yes)
    unbuilt: List[str] = []
    for name in names:
        try:
            build.build(name)
        except process.Refusal as refusal:
            process.say(str(refusal))
            unbuilt.append(f"--unbuilt={name}")
    build.need_gpus()
    here = len(shell("gpus_here").splitlines())
    # Not isolated: the systems that it compares with may be installed for this user only.
    process.become([sys.executable, str(ROOT / "tools" / "bench.py"), f"--backend={build.backend}", f"--here={here}",
                    *unbuilt, *call.options, *call.arguments, *names])
