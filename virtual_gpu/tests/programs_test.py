#!/usr/bin/env python3
"""Programs in the style of courses and samples (programs/) verify their own results: right on virtual GPUs, for several numbers
of GPUs and several schedules; in the race build without a report, or with the expected one.

    programs_test.py PROGRAM... [-- START...]"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import unittest
from typing import List

PROGRAMS: List[str] = []
START: List[str] = []
# Expected notes on standard error.
NOTED = {"nbody": r"note: .*nbody\.cu:\d+: asks for __CUDA_ARCH__",
         "grid_sync": r"129 blocks, and 128 fit on the GPU at once"}
# In time order; with a seed lanes print in any order.
PRINTED = {"lanes_print": " ".join(map(str, range(32))) + " (0: 496) (1: 496) (2: 496) \nPASS\n"}
REFUSED = {"openmp_dynamic": "virtual GPUs: OpenMP's dynamic schedule is not supported on virtual GPUs: use schedule(static)\n"}
# With the race detector. The host's volatile accesses are plain ones, and the search reads words that other threads change
# atomically.
ACCUSED = {"pinned_flag": r"data race .*pinned host memory of 12 bytes",
           "sparse_and_graphs": r"write at sparse_and_graphs\.cu:\d+ is atomic, the read at sparse_and_graphs\.cu:\d+ is not"}


def run(program: str, gpus: int, schedule: str) -> str:
    """The failure of a run; "" if it passed."""
    name = pathlib.Path(program).name.replace("program_", "")
    settings = {"VGPU_GPUS": str(gpus), "VGPU_SCHEDULE": schedule}
    others = {key: value for key, value in os.environ.items() if not key.startswith("VGPU_")}
    done = subprocess.run([*START, program], env={**others, **settings}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=100, check=False)
    said = f"{name}, {gpus} GPUs, schedule '{schedule}': status {done.returncode}\n{done.stdout}{done.stderr}"
    if name in REFUSED:
        return "" if done.returncode == 2 and done.stderr == REFUSED[name] else said
    if START and name in ACCUSED:
        return "" if done.returncode == 3 and re.search(ACCUSED[name], done.stderr) else said
    in_order = schedule != "" or done.stdout == PRINTED.get(name, done.stdout)
    right = done.returncode == 0 and done.stdout.endswith("PASS\n") and in_order
    expected = re.search(NOTED[name], done.stderr) and done.stderr.count("\n") == 1 if name in NOTED else done.stderr == ""
    return "" if right and expected else said


class ProgramsTest(unittest.TestCase):
    maxDiff = None

    def test_each_is_right(self) -> None:
        self.assertGreaterEqual(len(PROGRAMS), 30)
        runs = [(2, "")] if START else [(1, ""), (3, "1")]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = pool.map(lambda each: run(*each), [(program, *how) for program in PROGRAMS for how in runs])
            self.assertEqual("\n".join(filter(None, wrong)), "")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word]  # START is empty without the race detector
    end = words.index("--") if "--" in words else len(words)
    PROGRAMS, START = words[:end], words[end + 1:]
    unittest.main(argv=sys.argv[:1])
