"""Pairs of similar submissions in a class, by Debian's similarity-tester (sim_c++), which compares tokens."""
import os
import re
import shutil
from typing import List, Sequence, Tuple

import sandbox

LEAST = 70  # per cent
LIMITS = sandbox.Limits(seconds=60, output=1 << 22)
PAIR = re.compile(r"(\S+) consists for (\d+) % of (\S+) material")


def available() -> bool:
    """Whether the tool is installed."""
    return shutil.which("sim_c++") is not None


def pairs(submissions: Sequence[Tuple[str, bytes]], given: bytes) -> List[Tuple[int, str, str]]:
    """Per cent and names of similar pairs, most similar first. Code that was `given` to all does not count."""
    rest = [(name, data) for name, data in submissions if data and data != given]
    if len(rest) < 2:
        return []
    with sandbox.make([]) as place:
        files = [f"{number}.cc" for number in range(len(rest))]
        for file, (_name, data) in zip(files, rest):
            (place.work / file).write_bytes(data)
            os.chmod(place.work / file, 0o644)
        printed = place.run(["sim_c++", "-p", "-t", str(LEAST), *files], LIMITS).output
    found = {}
    for one, percent, other in PAIR.findall(printed):
        names = sorted((rest[int(one.split(".")[0])][0], rest[int(other.split(".")[0])][0]))
        found[tuple(names)] = max(int(percent), found.get(tuple(names), 0))
    return sorted(((percent, *names) for names, percent in found.items()), reverse=True)
