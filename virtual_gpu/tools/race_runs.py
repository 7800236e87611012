"""The runs of a program of the race build that together separate the blocks of its kernels.

In one run the blocks of a kernel share two sets of contexts: a bit of a block's number says which of them it runs in, and blocks of
one set are ordered by each other's barriers. So there is a run for each bit; each but the first has a schedule of its own, too,
unless the program chooses one.
"""
import pathlib
import tempfile
from typing import Callable, Dict, Tuple

BIT = "VGPU_SEPARATING_BIT"
MOST_RUNS = 6  # 64 blocks


def run_all(start: Callable[[Dict[str, str]], int]) -> Tuple[int, int, int]:
    """Calls `start` with what the environment of each run must have, until one ends with another status than 0. Returns the last
    status, the number of runs, and of blocks of the largest grid."""
    with tempfile.TemporaryDirectory() as folder:
        largest = pathlib.Path(folder, "blocks")
        status = start({BIT: "0", "VGPU_LARGEST_GRID": str(largest)})
        blocks = int(largest.read_text(encoding="utf-8")) if largest.exists() else 1
    runs = 1
    while status == 0 and runs < min(MOST_RUNS, (blocks - 1).bit_length()):
        status = start({BIT: str(runs)})
        runs += 1
    return status, runs, blocks
