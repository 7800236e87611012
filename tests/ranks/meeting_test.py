#!/usr/bin/env python3
"""One program as several processes of this host: they meet, agree and end together.
    meeting_test.py PROGRAM virtual|cuda [what starts it...]"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Dict, List, Sequence, Tuple

PROGRAM, BACKEND, *START = sys.argv[1:]
LIMIT_S = 60
END_S = 10  # within which all processes end when one has died
HERE = len(subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, check=True).stdout.splitlines()) \
    if BACKEND == "cuda" else 8
EACH = min(2, HERE)  # ranks of a process, where it may have more than one
# What needs no GPU is the same code on both, and a process with real ones takes a second to start.
without_gpus = unittest.skipIf(BACKEND == "cuda", "shown on virtual GPUs")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class MeetingTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.place = f"127.0.0.1:{free_port()}"

    def start(self, index: int, count: int, what: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Process `index` of `count`; it is ended with the test."""
        variables = {**os.environ, "OVERLAP_RENDEZVOUS": self.place, "OVERLAP_PROCESS": str(index),
                     "OVERLAP_PROCESSES": str(count), "MEETING_WHAT": what, "MEETING_FILE": str(self.folder / "here"),
                     **environment}
        process = subprocess.Popen([*START, PROGRAM, *arguments], env={name: value for name, value in variables.items() if value},
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_all(self, what: str, *arguments: str, count: int = 2, each: Sequence[Sequence[str]] = ()) -> \
            List[Tuple[int, str, str]]:
        """Status, output and errors of each process; `each` has arguments of their own."""
        processes = [self.start(i, count, what, *arguments, *(each[i] if i < len(each) else ())) for i in range(count)]
        ended = []
        for process in processes:
            out, err = process.communicate(timeout=LIMIT_S)
            ended.append((process.returncode, out, err))
        return ended

    def assert_one_sentence(self, ended: List[Tuple[int, str, str]], status: int, sentence: str) -> None:
        """All end with the status, and process 0 alone says why."""
        self.assertEqual([each[0] for each in ended], [status] * len(ended), ended)
        self.assertRegex(ended[0][2], rf"\Ameeting: {sentence}\Z")
        self.assertEqual([each[2] for each in ended[1:]], [""] * (len(ended) - 1))
        self.assertEqual([each[1] for each in ended], [""] * len(ended))

    def test_ranks_of_all_processes_are_one_team(self) -> None:
        for count, each in dict.fromkeys(((2, 1), (2, EACH), (3, EACH), (4, 1))):
            with self.subTest(count=count, each=each):
                ended = self.run_all("all", "--gpus", str(count * each), count=count)
                self.assertEqual(ended, [(0, f"{count * each} ranks in nodes of {each}\n", ""), *[(0, "", "")] * (count - 1)])

    @without_gpus
    def test_usual_gpus_are_shared_out(self) -> None:
        self.assertEqual(self.run_all("exchange", count=3)[0][1], "3 ranks in nodes of 1\n")

    @without_gpus
    def test_who_started_them_does_not_matter(self) -> None:
        for index, count in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                             ("SLURM_PROCID", "SLURM_NTASKS")):
            with self.subTest(index):
                none = {"OVERLAP_PROCESS": "", "OVERLAP_PROCESSES": ""}
                both = [self.start(i, 2, "exchange", "--gpus", "2", **none, **{index: str(i), count: "2"}) for i in range(2)]
                self.assertEqual([process.wait(LIMIT_S) for process in both], [0, 0])

    # ---- What cannot be ----------------------------------------------------------------------------------
    @without_gpus
    def test_processes_that_disagree(self) -> None:
        whose = r"process 1 on \S+ \(process id \d+\)"
        cases: Dict[Tuple[str, ...], str] = {("--seed", "2"): f"--seed: processes disagree: process 0 has 1, {whose} has 2",
                                             ("--iterations", "7"): f"--iterations: .*, {whose} has 7",
                                             ("--m", "9"): f"--m: .*, {whose} has 9",
                                             ("--gpus", "2"): f"--gpus: processes disagree: process 0 has not given, {whose} has 2",
                                             ("--no-check",): f"--check: .* process 0 has yes, {whose} has no",
                                             ("--nonsense",): f"{whose}: --nonsense: unknown option .*"}
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                self.assert_one_sentence(self.run_all("all", each=([], arguments)), 2, sentence + "\n")

    @without_gpus
    def test_ranks_that_make_no_nodes(self) -> None:
        for arguments, sentence in {("--gpus", "3"): "--gpus: 3 cannot be shared out to 2 processes, each of which is a node .*",
                                    ("--gpus", "4", "--gpus-per-node", "1"): "--gpus-per-node: 1, but 4 of --gpus are 2 on each.*",
                                    }.items():
            with self.subTest(arguments):
                self.assert_one_sentence(self.run_all("all", *arguments), 2, sentence + "\n")

    @without_gpus
    def test_different_numbers_of_gpus(self) -> None:
        small = (pathlib.Path(__file__).parents[2] / "common/virtual_gpu/machines/small.json").read_text(encoding="utf-8")
        for name, gpus in (("two.json", 2), ("one.json", 1)):
            (self.folder / name).write_text(re.sub(r'"gpus": \d+', f'"gpus": {gpus}', small, count=1), encoding="utf-8")
        each = (["--machine", "two.json"], ["--machine", "one.json"])
        self.assert_one_sentence(self.run_all("all", each=each), 2, "--gpus: not given, and process 0 has 2 GPUs, "
                                 r"process 1 on \S+ \(process id \d+\) has 1" "\n")

    def test_more_gpus_than_a_process_has(self) -> None:
        if BACKEND != "cuda":
            self.skipTest("as many virtual GPUs as are asked for")
        ended = self.run_all("all", "--gpus", str(2 * (HERE + 1)))
        self.assert_one_sentence(ended, 2, rf"--gpus: {HERE + 1} of each process, and process 0 on \S+ .* has {HERE}\n")

    @without_gpus
    def test_environment_that_is_not_complete(self) -> None:
        none = {"OVERLAP_PROCESS": "", "OVERLAP_PROCESSES": ""}
        cases = {"is set, but not which process this is": none,
                 "OVERLAP_RENDEZVOUS: 'here' is not HOST:PORT": {"OVERLAP_RENDEZVOUS": "here"},
                 "OVERLAP_PROCESS: there is no process 2 of 2": {"OVERLAP_PROCESS": "2"},
                 "OVERLAP_PROCESS: 'one' is not a whole number": {"OVERLAP_PROCESS": "one"},
                 "process 0 cannot listen at 192.0.2.1:": {"OVERLAP_RENDEZVOUS": "192.0.2.1:4711", "OVERLAP_PROCESS": "0"}}
        for sentence, changes in cases.items():
            with self.subTest(sentence):
                process = self.start(1, 2, "all", **changes)
                _, err = process.communicate(timeout=LIMIT_S)
                self.assertEqual((process.returncode, len(err.splitlines())), (2, 1), err)
                self.assertIn(sentence, err)

    @without_gpus
    def test_processes_that_count_differently(self) -> None:
        first, second = self.start(0, 2, "all"), self.start(1, 3, "all")
        for process in (first, second):
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 2)
            self.assertRegex(err, r"one process is number 1 of 3, on .*; process 0 knows 2\n")

    @without_gpus
    def test_strangers_are_not_taken_for_a_process(self) -> None:
        first = self.start(0, 2, "exchange", "--gpus", "2")
        hello = [struct.pack("=III", 0x4f564c31, 0, len(text)) + text for text in (b"0", b"1:1", b"1:a1:21:x", b"9999:x")]
        for said in (b"GET / HTTP/1.1\r\n\r\n", *hello):  # also of one who knows how messages begin
            self.connect().sendall(said)
        second = self.start(1, 2, "exchange", "--gpus", "2")
        self.assertEqual([process.wait(LIMIT_S) for process in (first, second)], [0, 0])

    @without_gpus
    def test_stranger_in_the_place_of_process_0(self) -> None:
        welcome, stop = 1, 4
        for kind, text, sentence in ((welcome, b"1:a", "is not process 0 of this program"), (welcome, b"9:a", "is not process 0"),
                                     (7, b"1:a1:b", "is not process 0"), (stop, b"2:no", "none of this program's sentences")):
            with self.subTest(kind=kind, text=text), socket.create_server(("127.0.0.1", int(self.place.split(":")[1]))) as server:
                process = self.start(1, 2, "exchange", "--gpus", "2")
                met, _ = server.accept()
                with met:
                    met.sendall(struct.pack("=III", 0x4f564c31, kind, len(text)) + text)
                    _, err = process.communicate(timeout=LIMIT_S)
                self.assertEqual((process.returncode, len(err.splitlines())), (2, 1), err)
                self.assertIn(sentence, err)

    def connect(self) -> socket.socket:
        """A connection to process 0, once it listens."""
        host, port = self.place.split(":")
        for _ in range(1000):
            with contextlib.suppress(ConnectionRefusedError):
                stranger = socket.create_connection((host, int(port)))
                self.addCleanup(stranger.close)
                return stranger
            time.sleep(0.02)
        return self.fail("process 0 does not listen")

    # ---- What fails on the way ---------------------------------------------------------------------------
    def test_rank_that_throws_stops_all_processes(self) -> None:
        sentence = rf"process 2 on \S+ \(process id \d+\): rank {3 * EACH - 1}: planted\n"
        for what, status in (("throw", 2), ("wrong", 1)):
            self.assert_one_sentence(self.run_all(what, "--gpus", str(3 * EACH), count=3), status, sentence)

    @without_gpus
    def test_ranks_that_exchange_different_things(self) -> None:
        ended = self.run_all("other exchange", "--gpus", "2")
        self.assertEqual([each[0] for each in ended], [2, 2])
        self.assertIn("another process exchanges something else", ended[0][2])

    def assert_all_end(self, what: str, dead: int, still: str = "") -> None:
        """Process `dead` of three ends with 7; the others with 2, in good time, and say whom they have lost and `still`."""
        processes = [self.start(i, 3, what, "--gpus", "3") for i in range(3)]
        self.assertEqual(processes[dead].wait(LIMIT_S), 7)
        since = time.monotonic()
        for i, process in enumerate(processes):
            if i == dead:
                continue
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 2, err)
            if i == 0 or dead == 0 or err:  # process 0 tells for all, if it can
                self.assertRegex(err, rf"\A\S+: process {dead} on \S+ \(process id {processes[dead].pid}\) has died{still}\n")
        self.assertLess(time.monotonic() - since, END_S)

    def test_process_that_dies(self) -> None:
        self.assert_all_end("die", dead=2)

    def test_first_process_dies(self) -> None:
        self.assert_all_end("first dies", dead=0)

    def test_process_dies_while_others_are_busy(self) -> None:
        # A real GPU's ranks are given 5 s to join; virtual ones end at once.
        self.assert_all_end("busy", dead=2, still=r" \(the other ranks did not stop\)" if BACKEND == "cuda" else "")

    @without_gpus
    def test_process_that_is_killed_before_all_have_come(self) -> None:
        first, second = self.start(0, 3, "all", "--gpus", "3"), self.start(1, 3, "all", "--gpus", "3")
        time.sleep(0.5)  # they have met, or will
        second.send_signal(signal.SIGKILL)
        second.wait(LIMIT_S)
        third = self.start(2, 3, "all", "--gpus", "3")
        for process in (first, third):
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 2)
        self.assertIsNotNone(first.returncode)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
