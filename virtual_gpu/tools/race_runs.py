"""The runs of a program of the race build that together separate the blocks of its kernels.

In one run the blocks of a kernel share two sets of contexts: one bit of a block's number selects the set, and blocks of one set
are ordered by each other's barriers. So there is a run for each bit; each run except the first also has a schedule of its own,
unless the program chooses one. A few errors show in some schedules only, such as two barriers that share one counter: a short
program is run in several schedules.
"""
import pathlib
import tempfile
import time
from typing import Callable, Dict, Tuple

BIT = "VGPU_SEPARATING_BIT"
MOST_RUNS = 6  # 64 blocks
SEVERAL = 4
MOMENT_S = 2.0


def run_all(start: Callable[[Dict[str, str]], int], fewest: int = 1) -> Tuple[int, int, int]:
    """Calls `start` with the additional environment variables of each run, until the status of one is not 0. If the first run
    takes at most MOMENT_S, there are at least `fewest` runs. Returns the last status, the number of runs, and the number of
    blocks of the largest grid."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        largest = pathlib.Path(folder, "blocks")
        status = start({BIT: "0", "VGPU_LARGEST_GRID": str(largest)})
        blocks = int(largest.read_text(encoding="utf-8")) if largest.exists() else 1
    runs, wanted = 1, min(MOST_RUNS, (blocks - 1).bit_length())
    if time.monotonic() - began <= MOMENT_S:
        wanted = max(wanted, fewest)
    while status == 0 and runs < wanted:
        status = start({BIT: str(runs)})
        runs += 1
    return status, runs, blocks
