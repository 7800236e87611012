"""The tour: every chapter, then one table."""
import time
from typing import List, Sequence, Set

import chapters
import process
from build import Build

WORDS = {0: ("ok", ""), 1: ("wrong", ""), 3: ("failed", "race, deadlock or wrong access")}
SKIPPED = 77


def run(build: Build, arguments: List[str]) -> int:
    """Runs all chapters with these arguments. Returns 0 if all succeed."""
    unbuilt = build_all(build, chapters.names())
    build.need_gpus()
    statuses: Set[int] = set()
    table = [f"{'chapter':<28} {'status':<8} {'seconds':>7}"]
    for name in chapters.names():
        started = time.monotonic()
        word, reason = "failed", "does not build"
        if name in unbuilt:
            statuses.add(2)
        else:
            status, errors = process.run_keeping_errors(build.command(f"bin/{name}") + arguments)
            statuses.add(status)
            word, reason = WORDS.get(status, ("failed", f"exit status {status}"))
            if status == SKIPPED:
                word, reason = "skipped", errors.rstrip("\n").split("\n")[-1]
        tenths = int((time.monotonic() - started) * 10)
        table.append(f"{name:<28} {word:<8} {tenths // 10:5d}.{tenths % 10}  {reason}")
    print("\n" + "\n".join(table))
    return _verdict(statuses, build.backend in ("race", "check"))


def build_all(build: Build, names: Sequence[str]) -> List[str]:
    """Builds programs; says why some do not build, and returns their names."""
    unbuilt = []
    for name in names:
        try:
            build.build(name)
        except process.Refusal as refusal:
            process.say(str(refusal))
            unbuilt.append(name)
    return unbuilt


def _verdict(statuses: Set[int], reports: bool) -> int:
    if reports and 3 in statuses:
        return 3
    if statuses - {0, SKIPPED}:
        return 1
    # If no program ran, the detector has checked nothing.
    return SKIPPED if reports and 0 not in statuses else 0
