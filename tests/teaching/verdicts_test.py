#!/usr/bin/env python3
"""What becomes of a replay's verdict: a reason, a race, a count; which schedules a log is replayed in; and what a student's
variation is compared with.
"""
import json
import pathlib
import sys
import tempfile
import types
import unittest
from typing import Any, Dict, List
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "teaching" / "grade"))
import points  # noqa: E402
import replay_judge  # noqa: E402
import task  # noqa: E402
from cases import Case  # noqa: E402
from judge import Verdict  # noqa: E402
from sandbox import Outcome  # noqa: E402

EXACT = Case("exact", "gather", 2, 8, 6, 4, "f16")
RACE = Case("race", "gather", 2, 8, 6, 4, "f16", 5)
RIGHT: Dict[str, Any] = {
    "verdict": "right", "sentence": "all elements are right", "report": "",
    "memory": [64, 32], "links": [{"from": 0, "to": 1, "bytes": 32, "messages": 1}],
    "cost": [{"counted": {"host_waits": 1}}, {"counted": {"host_waits": 2}}]}
WRONG: Dict[str, Any] = {
    "verdict": "wrong result", "sentence": "", "report": "", "wrong_elements": 3, "elements": 48,
    "first_wrong": {"rank": 1, "shard": "rows 0 to 7, columns 3 to 5", "row": 2, "column": 4, "expected": 1.0, "found": "NaN"}}


class ReplayTest(unittest.TestCase):
    def judged(self, case: Case, *answers: Dict[str, Any], frame: bytes = b"log", ended: str = "") -> Verdict:
        """The verdict where the replays answer so, the last one again and again; self.commands then has them."""
        self.commands: List[List[str]] = []
        outcome = Outcome(2, ended, "submission: it fails\n", frame, 0.1, 0)
        sandbox = types.SimpleNamespace(run=lambda *_words, **_options: outcome)
        kit = types.SimpleNamespace(task=types.SimpleNamespace(chapter="03_ring", replay="ring"), machine="small.json")
        builds = {"plain": pathlib.Path("plain"), "race": pathlib.Path("race")}

        def trusted(command: List[str], _log: bytes, statuses: Any) -> bytes:
            self.assertEqual(tuple(statuses), (0, 1, 2, 3))
            self.commands.append(command)
            return json.dumps(answers[min(len(self.commands), len(answers)) - 1]).encode()
        judge = replay_judge.ReplayJudge(kit, sandbox, builds, b"secret", "owner", 1)  # type: ignore[arg-type]
        with mock.patch.object(replay_judge, "trusted", trusted):
            return judge.run(case)

    def test_right_in_three_schedules(self) -> None:
        verdict = self.judged(EXACT, RIGHT)
        self.assertTrue(verdict.right)
        self.assertEqual(verdict.links, {"rank 0 to rank 1": [32, 1]})
        self.assertEqual((verdict.host_waits, verdict.memory, verdict.trust), (3, [64, 32], replay_judge.REPLAYED))
        self.assertEqual(len(self.commands), 3)
        self.assertNotIn("--schedule", self.commands[0])
        self.assertEqual(len({command[command.index("--schedule") + 1] for command in self.commands[1:]}), 2)
        self.assertTrue(all(command[0] == "plain/bin/replay_03_ring" for command in self.commands))

    def test_races_are_judged_in_the_race_build(self) -> None:
        report = "virtual GPUs: data race in byte 0\n\n  read by gpu0\n"
        verdict = self.judged(RACE, {"verdict": "race", "sentence": "", "report": report})
        self.assertFalse(verdict.right)
        self.assertEqual(verdict.race, "virtual GPUs: data race in byte 0\n  read by gpu0")
        self.assertEqual(len(self.commands), 1)
        self.assertIn("race/bin/replay_03_ring", self.commands[0])
        self.assertEqual(self.commands[0][-2:], ["--schedule", "5"])

    def test_one_schedule_that_is_wrong_decides(self) -> None:
        verdict = self.judged(EXACT, RIGHT, WRONG, RIGHT)
        self.assertFalse(verdict.right)
        self.assertEqual(verdict.why, "rank 1: 3 of 48 elements are wrong; the first is C[2, 4] in its shard (rows 0 to 7, columns 3 to "
                         "5): expected 1.0, found NaN (never written?)")

    def test_other_verdicts(self) -> None:
        for word, part in (("refused", "cannot be made again: no log"), ("failed call", "no log"), ("timeout", "no log")):
            verdict = self.judged(EXACT, {"verdict": word, "sentence": "no log", "report": ""})
            self.assertFalse(verdict.right)
            self.assertIn(part, verdict.why)
            self.assertEqual(verdict.ended, word == "timeout")

    def test_no_log(self) -> None:
        self.assertIn("no log of its calls: it fails", self.judged(EXACT, RIGHT, frame=b"").why)
        verdict = self.judged(EXACT, RIGHT, ended="it did not end within 12 s")
        self.assertTrue(verdict.ended)
        self.assertFalse(verdict.right or self.commands)

    def test_kernels_are_right_only_if_both_are(self) -> None:
        yes, no = Verdict(EXACT, right=True), Verdict(EXACT, why="wrong")
        for framed, replayed, right in ((yes, yes, True), (yes, no, False), (no, yes, False)):
            both = [types.SimpleNamespace(run=lambda _case, found=found: found) for found in (framed, replayed)]
            verdict = replay_judge.KernelsJudge(*both).run(EXACT)  # type: ignore[arg-type]
            self.assertEqual((verdict.right, verdict.trust), (right, replay_judge.KERNELS))


class CostTest(unittest.TestCase):
    def mark(self, memory_counts: bool = False, **own: Any) -> points.Mark:
        card = Verdict(EXACT, right=True, links={"rank 0 to rank 1": [32, 1]}, host_waits=0, memory=[64, 32], kernel_ns=[900, 100])
        verdicts = [Verdict(EXACT, right=True, **{"links": {"rank 0 to rank 1": [32, 1]}, "host_waits": 0, **own})]
        marks = points.marks_of(verdicts, lambda _case: card, "no race build", memory_counts)
        return next(mark for mark in marks if mark.criterion == "cost")

    def test_bytes_and_waits(self) -> None:
        self.assertEqual(self.mark().points, 15)
        self.assertEqual(self.mark(host_waits=None).points, 15)
        self.assertEqual(self.mark(host_waits=2).points, 0)
        self.assertIn("hosts wait 2 times", self.mark(host_waits=2).reason)
        self.assertIn("33 bytes in 1 messages counted", self.mark(links={"rank 0 to rank 1": [33, 1]}).reason)

    def test_memory_counts_where_an_extension_says_so(self) -> None:
        self.assertEqual(self.mark(memory=[64, 33]).points, 15)
        self.assertEqual(self.mark(True, memory=[64, 32]).points, 15)
        self.assertEqual(self.mark(True, memory=[64, 33]).points, 0)
        self.assertIn("rank 1 allocates 33 bytes; 32 are enough", self.mark(True, memory=[64, 33]).reason)

    def test_time_of_kernels_counts_where_an_extension_says_so(self) -> None:
        self.assertEqual(self.mark(kernel_ns=[2000, 1]).points, 15)
        self.assertEqual(self.mark(True, kernel_ns=[0, 2000]).points, 15)
        self.assertEqual(self.mark(True, kernel_ns=[2000, 1]).points, 0)
        self.assertIn("its kernels take 2.0 us (modelled); 1.0 us are enough", self.mark(True, kernel_ns=[2000, 1]).reason)


class VariationTest(unittest.TestCase):
    def test_a_student_is_compared_with_the_own_variation(self) -> None:
        chosen = task.tasks_of("03_ring_all_gather")[0]
        honest = chosen.solution.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            texts = {task.varied(chosen, f"s{number}", "", pathlib.Path(folder)).solution.read_text(encoding="utf-8")
                     for number in range(20)}
            self.assertEqual(len(texts), 2)
            self.assertIn(honest, texts)
            with self.assertRaisesRegex(task.TaskError, "nowhere"):
                task.varied(chosen, "s0", f"{folder}/nowhere", pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
