#!/usr/bin/env python3
"""A rank fails while the others wait: the program reports why and ends with status 2, within the time limit."""
import os
import pathlib
import subprocess
import sys
import unittest
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Dict, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import real_gpus  # noqa: E402

PROGRAM, BACKEND, *START = sys.argv[1:]
LIMIT_S = 40
GPUS = real_gpus() if BACKEND == "cuda" else 0
PLACES = ("stream", "barrier", "constructor", "destructor", "gate", "kernel", "collective")
# Real GPUs take seconds to start, and some runs end only at a time limit. So these runs start ahead of the tests, several at a
# time; the limits allow for starting beside others.
HANG = ("hang", "--gpus", "2")
PULLS = ("pulls", "--gpus", "3", "--timeout", "12")
FAULT = ("fault", "--gpus", "2", "--timeout", "8")
NOBODY = ("nobody", "--gpus", "2", "--timeout", "12")
ENDED = ("ended", "--gpus", "3")
AT_A_TIME = 3


def run(where: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "FAILING_WHERE": where}
    if GPUS > 3:  # more take longer to start, and show nothing new
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2").split(",")[:3])
    if BACKEND == "cuda" and "2" in arguments:
        environment.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "16")  # enough for two ranks, and faster to start than 32
    return subprocess.run([*START, PROGRAM, *arguments], env=environment, timeout=LIMIT_S,
                          capture_output=True, text=True, check=False)


def sizes(where: str) -> Tuple[int, ...]:
    """The numbers of ranks to try for a place. Ranks share GPUs if there are too few. On real GPUs each place has one
    number."""
    if BACKEND == "virtual":
        return (2, 3, 8)
    if where in ("kernel", "collective"):
        return (2,)  # a kernel that spins needs a GPU of its own, and so does NCCL
    return (3,) if PLACES.index(where) % 2 == 0 else (8,)


class FailingTest(unittest.TestCase):
    runs: Dict[Tuple[str, ...], "Future[subprocess.CompletedProcess[str]]"] = {}  # started ahead, by arguments

    @classmethod
    def setUpClass(cls) -> None:
        if BACKEND != "cuda":
            return
        pool = ThreadPoolExecutor(AT_A_TIME)
        cls.addClassCleanup(pool.shutdown)
        longest_first = [HANG, FAULT, NOBODY, *((where, "--gpus", str(size)) for where in reversed(PLACES) for size in sizes(where)),
                         ENDED]
        if GPUS >= 3:
            longest_first.insert(0, PULLS)
        cls.runs = {arguments: pool.submit(run, *arguments) for arguments in longest_first}

    def run_of(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        ahead = self.runs.get(arguments)
        return ahead.result() if ahead else run(*arguments)

    def expect(self, done: "subprocess.CompletedProcess[str]", status: int, *texts: str) -> None:
        self.assertEqual(done.returncode, status, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_rank_that_throws(self) -> None:
        for where in PLACES:
            for size in sizes(where):
                with self.subTest(where=where, size=size):
                    done = self.run_of(where, "--gpus", str(size))
                    if where == "collective" and BACKEND == "cuda" and done.returncode == 77:
                        self.assertIn("NCCL wants a GPU for each rank", done.stderr)
                        continue
                    self.expect(done, 2, "failing: rank 1: planted\n")
                    self.assertEqual(done.stdout, "")

    def test_kernel_that_faults(self) -> None:
        # GPUs with peer access all fail together, and any rank may see it first.
        done = self.run_of(*FAULT)
        if BACKEND == "cuda" and "cudaErrorIllegalAddress" not in done.stderr:
            # Seen with two ranks on one GPU: the fault is not reported while the other rank's stream waits.
            self.expect(done, 2, "not finished after 8 s, the limit of --timeout")
        else:
            self.expect(done, 2 if BACKEND == "cuda" else 3, "failing: rank ", "cudaErrorIllegalAddress")

    def test_rank_that_ends_while_others_wait_for_it(self) -> None:
        status, text = (2, "another one has ended") if BACKEND == "cuda" else (3, "to reach a barrier")
        self.expect(self.run_of(*ENDED), status, text)

    def test_signal_that_nobody_raises(self) -> None:
        if BACKEND == "cuda":
            self.expect(self.run_of(*NOBODY), 2, "not finished after 12 s",
                        "rank 0 waits for signal 0: expected 1, seen 0", "rank 1 waits for signal 0")
        else:
            for arguments in ((), ("--schedule", "5")):
                self.expect(run("nobody", "--gpus", "2", *arguments), 3, "deadlock", "gpu0/stream",
                            "wait until a word is at least 1: it is 0", "host thread 1 (GPU 1): waits for")

    def test_pull_ahead_of_time(self) -> None:
        """All pulls from a GPU are queued: a pull that is enqueued too early delays the one that it waits for."""
        if BACKEND == "cuda":
            if GPUS < 3:
                self.skipTest("needs 3 GPUs: ranks that share one pull nothing")
            self.expect(self.run_of(*PULLS), 2, "not finished after 12 s",
                        "rank 0 waits for signal 0: expected 1, seen 0 (rank 1 raises it; its host has enqueued 1)")
        else:
            self.expect(run("pulls", "--gpus", "3"), 3, "deadlock", "its turn")

    def test_host_that_hangs(self) -> None:
        if BACKEND != "cuda":
            self.skipTest("a fiber that sleeps stops the whole program")
        self.expect(self.run_of(*HANG), 2, "failing: rank 1: planted (the other ranks did not stop)")

    def test_unknown_place(self) -> None:
        self.expect(run("nowhere"), 2, "unknown place 'nowhere'")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
