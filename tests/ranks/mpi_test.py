#!/usr/bin/env python3
"""Programs of several processes, started by mpirun on this host: what the processes agree on, and how they end.
    mpi_test.py virtual|cuda [PROGRAM CHAPTER_20]
Without programs MPI is missing, and the test is skipped."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Dict, List, Sequence, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from tests.programs.support import real_gpus  # noqa: E402

BACKEND, *PROGRAMS = sys.argv[1:]
LIMIT_S = 60
END_S = 10  # time limit for all processes after one has died
HERE = real_gpus() if BACKEND == "cuda" else 8
EACH = min(2, HERE)  # ranks of a process, if it may have several
# Cases without a GPU are the same code on both, and a process with real GPUs takes a second to start.
without_gpus = unittest.skipIf(BACKEND == "cuda", "shown on virtual GPUs")

Ended = Tuple[int, str, str]  # mpirun's exit status, standard output and standard error


class MpiTest(unittest.TestCase):
    program = PROGRAMS[0] if PROGRAMS else ""
    chapter = PROGRAMS[1] if PROGRAMS else ""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, what: str, command: Sequence[str]) -> "subprocess.Popen[str]":
        """Starts mpirun; it is ended with the test."""
        environment: Dict[str, str] = {**os.environ, "MPI_TEST_WHAT": what, "MPI_TEST_FILE": str(self.folder / "here")}
        if os.getuid() == 0:
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        process = subprocess.Popen(["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none", *command], cwd=self.folder,
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_all(self, what: str, *arguments: str, count: int = 2, program: str = "") -> Ended:
        """`count` processes with the same arguments."""
        return self.ended(self.start(what, ["-n", str(count), program or self.program, *arguments]))

    def run_each(self, what: str, *each: Sequence[str]) -> Ended:
        """One process per argument list; options of mpirun for that process may precede, up to "--"."""
        command: List[str] = []
        for arguments in each:
            split = list(arguments).index("--") if "--" in arguments else -1
            command += [*([":"] if command else []), "-n", "1", *arguments[:max(split, 0)], self.program, *arguments[split + 1:]]
        return self.ended(self.start(what, command))

    def ended(self, process: "subprocess.Popen[str]") -> Ended:
        """Status and outputs, without the messages that mpirun's event loop occasionally prints when it closes the pipes of
        ended processes (libevent: "[warn] Epoll MOD(1) on fd 24 failed ...")."""
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, re.sub(r"^\[warn\] Epoll .*\n", "", err, flags=re.MULTILINE)

    def pid_of(self, argument: str) -> int:
        """The id of the program's process that was started with this argument."""
        for _ in range(500):
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = path.read_text(encoding="utf-8").split("\0")
                except OSError:  # it has ended
                    continue
                if words[0] == self.program and argument in words:
                    return int(path.parent.name)
            time.sleep(0.02)
        return self.fail("the process has not started")

    # ---- What they agree on --------------------------------------------------------------------------------
    def test_ranks_of_all_processes_are_one_team(self) -> None:
        for count, each in dict.fromkeys(((2, 1), (2, EACH), (3, EACH), (4, 1))):
            with self.subTest(count=count, each=each):
                ended = self.run_all("all", "--gpus", str(count * each), count=count)
                self.assertEqual(ended, (0, f"{count * each} ranks in nodes of {each}, seed 1\n", ""))

    def test_one_process_without_mpirun(self) -> None:
        environment = {**os.environ, "MPI_TEST_WHAT": "exchange", "MPI_TEST_FILE": ""}
        ended = subprocess.run([self.program, "--gpus", str(2 * EACH)], env=environment, capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{2 * EACH} ranks in nodes of {EACH}, seed 1\n"), ended.stderr)

    @without_gpus
    def test_all_have_the_options_of_process_0(self) -> None:
        ended = self.run_each("exchange", ["--seed", "9", "--gpus", "6"], ["--seed", "8", "--nonsense"], [])
        self.assertEqual(ended, (0, "6 ranks in nodes of 2, seed 9\n", ""))

    @without_gpus
    def test_usual_gpus_are_shared_out(self) -> None:
        self.assertEqual(self.run_all("exchange", count=3), (0, "3 ranks in nodes of 1, seed 1\n", ""))

    @without_gpus
    def test_options_are_refused_once(self) -> None:
        for arguments, sentence in {("--nonsense",): "--nonsense: unknown option .*",
                                    ("--json", "nowhere/report.json"): "--json: 'nowhere/report.json' cannot be written: .*",
                                    ("--gpus", "3"): r"--gpus: 3 is no multiple of 2 processes \(each is a node\) .*",
                                    ("--gpus", "4", "--gpus-per-node", "1"): "--gpus-per-node: 1, but --gpus 4 gives 2 to each.*",
                                    }.items():
            with self.subTest(arguments):
                self.assert_one_sentence(self.run_all("all", *arguments), 2, sentence)

    @without_gpus
    def test_help_is_printed_once(self) -> None:
        status, out, err = self.run_all("all", "--help")
        self.assertEqual((status, out.count("Usage:"), err), (0, 1, ""))

    @without_gpus
    def test_different_numbers_of_gpus(self) -> None:
        small = (REPOSITORY / "virtual_gpu/machines/small.json").read_text(encoding="utf-8")
        for name, gpus in (("two", 2), ("one", 1)):
            (self.folder / name).mkdir()
            (self.folder / name / "machine.json").write_text(re.sub(r'"gpus": \d+', f'"gpus": {gpus}', small, count=1),
                                                             encoding="utf-8")
        for gpus, sentence in (([], "--gpus: it is needed, since one process has 1 GPUs and another one 2"),
                               (["--gpus", "4"], "--gpus: each process needs 2, and one process has 1")):
            with self.subTest(gpus):
                each = [["-wdir", str(self.folder / name), "--", "--machine", "machine.json", *gpus] for name in ("two", "one")]
                self.assert_one_sentence(self.run_each("all", *each), 2, sentence)
        each = [["-wdir", str(self.folder / name), "--", "--machine", "machine.json", "--gpus", "2"] for name in ("two", "one")]
        self.assertEqual(self.run_each("exchange", *each), (0, "2 ranks in nodes of 1, seed 1\n", ""))

    @without_gpus
    def test_chapter_on_virtual_gpus(self) -> None:
        status, out, err = self.run_all("", "--gpus", "2", program=self.chapter)
        self.assertEqual((status, out), (77, "Nodes: 2, GPUs in each: 1\n"))
        self.assertRegex(err, r"\A20_two_nodes: skipped: virtual GPUs have no network between processes; .*\n\Z")

    # ---- What fails on the way -----------------------------------------------------------------------------
    def assert_one_sentence(self, ended: Ended, status: int, sentence: str) -> None:
        """All processes end with the status, and exactly one of them prints the reason."""
        self.assertEqual(ended[:2], (status, ""), ended)
        self.assertRegex(ended[2], rf"\Ampi: {sentence}\n\Z")

    def test_rank_that_throws_stops_all_processes(self) -> None:
        gpus = 3 * EACH
        for what, status, sentence in (("throw", 2, f"rank {gpus - 1}: planted"), ("wrong", 1, f"wrong result: rank {gpus - 1}: planted"),
                                       ("skip", 77, "skipped: for all")):
            with self.subTest(what):
                self.assert_one_sentence(self.run_all(what, "--gpus", str(gpus), count=3), status, sentence)

    def test_different_failures_are_all_told(self) -> None:
        status, out, err = self.run_all("all throw", "--gpus", "2")
        self.assertEqual((status, out, sorted(err.splitlines())), (2, "", ["mpi: rank 0: planted", "mpi: rank 1: planted"]))

    def test_limit_of_time(self) -> None:
        status, out, err = self.run_all("late", "--gpus", "2", "--timeout", "3")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("mpi: not finished after 3 s, the limit of --timeout", err)

    def test_process_that_exits(self) -> None:
        for what in ("die", "first dies", "busy"):
            with self.subTest(what):
                began = time.monotonic()
                self.assertEqual(self.run_all(what, "--gpus", "3", count=3)[0], 7)
                self.assertLess(time.monotonic() - began, END_S)

    def test_process_that_is_killed(self) -> None:
        for killed in ("0", "1"):
            with self.subTest(killed):
                command = []
                for index in ("0", "1"):
                    command += [*([":"] if command else []), "-n", "1", self.program, "--gpus", "2", "--seed", index]
                mpirun = self.start("late", command)
                pids = [self.pid_of(index) for index in ("0", "1")]
                time.sleep(1)  # the first rank waits in MPI, the last one sleeps
                os.kill(pids[int(killed)], signal.SIGKILL)
                began = time.monotonic()
                status, out, _ = self.ended(mpirun)
                while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() - began < END_S:
                    time.sleep(0.02)
                self.assertLess(time.monotonic() - began, END_S)
                self.assertEqual((status, out), (128 + signal.SIGKILL, ""))


if __name__ == "__main__":
    if not PROGRAMS or shutil.which("mpirun") is None:
        print("skipped: MPI is not here (libopenmpi-dev and openmpi-bin)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
