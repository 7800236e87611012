"""Which submissions of a class are alike: pairs, by Debian's similarity-tester (sim_c++), which compares tokens."""
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import List, Sequence, Tuple

LEAST = 70  # per cent
PAIR = re.compile(r"(\S+) consists for (\d+) % of (\S+) material")


def available() -> bool:
    """Whether the tool is installed."""
    return shutil.which("sim_c++") is not None


def pairs(submissions: Sequence[Tuple[str, bytes]], given: bytes) -> List[Tuple[int, str, str]]:
    """Per cent and names of those that are alike, most alike first. Those that are `given` to all say nothing."""
    rest = [(name, data) for name, data in submissions if data and data != given]
    if len(rest) < 2:
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, (_name, data) in enumerate(rest):
            files.append(f"{number}.cc")
            pathlib.Path(folder, files[-1]).write_bytes(data)
        printed = subprocess.run(["sim_c++", "-p", "-t", str(LEAST), *files], cwd=folder, stdout=subprocess.PIPE, text=True,
                                 errors="replace", check=False).stdout
    found = {}
    for one, percent, other in PAIR.findall(printed):
        names = sorted((rest[int(one.split(".")[0])][0], rest[int(other.split(".")[0])][0]))
        found[tuple(names)] = max(int(percent), found.get(tuple(names), 0))
    return sorted(((percent, *names) for names, percent in found.items()), reverse=True)
