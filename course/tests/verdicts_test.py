#!/usr/bin/env python3
"""Tests of verdicts, which are derived from a submission's process and the judge's answer: reasons, races and counts; the
schedules of a case; the reference of a student's variation; the grade's cases that a hand-out's ./try runs.
"""
import contextlib
import dataclasses
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
from typing import Any, Dict, List
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "course" / "grade"))
import case_run  # noqa: E402
import points  # noqa: E402
import report  # noqa: E402
import task  # noqa: E402
import unit  # noqa: E402
from case_run import Verdict  # noqa: E402
from cases import Case  # noqa: E402
from course import try_work  # noqa: E402
from sandbox import Outcome  # noqa: E402

EXACT = Case("exact", "gather", 2, 8, 6, 4, "f16")
RACE = Case("race", "gather", 2, 8, 6, 4, "f16", 5)
SPARSE = Case("exact", "sparse", 2, 8, 6, 4, "f32", timed=True)
TIMED = Case("lesson", "gather", 2, 8, 6, 4, "f16", timed=True)
LESSON = task.Lesson("a ring", (2, 8, 6, 4))
RIGHT: Dict[str, Any] = {
    "framed": True, "bytes": 9, "bytes_expected": 9, "right": True, "wrong": "", "memory": [64, 32], "host_waits": [1, 2],
    "kernel_ns": [900, 100], "elapsed_ns": [5000, 6000], "links": [{"from": 0, "to": 1, "bytes": 32, "copies": 1}]}
WRONG = {**RIGHT, "right": False, "wrong": "call 1, rank 1 of 2: 3 of 48 elements are wrong"}
NOTHING = {"framed": False, "bytes": 0, "bytes_expected": 9}


class CaseRunTest(unittest.TestCase):
    def judged(self, case: Case, *answers: Dict[str, Any], status: int = 0, ended: str = "", output: str = "submission: it fails\n") -> Verdict:
        """The verdict if the judge gives these answers, repeating the last one; self.checks then has the words of each
        question."""
        self.checks: List[List[str]] = []
        outcome = Outcome(status, ended, output, b"frame", 0.1, 0)
        sandbox = types.SimpleNamespace(run=lambda *_words, **_options: outcome)
        chosen = types.SimpleNamespace(chapter="03_ring", header="ring.cuh", namespace="overlap::ring::")
        kit = types.SimpleNamespace(task=chosen, machine="small.json")

        def trusted(command: List[str], _data: bytes = b"") -> bytes:
            if command[1] == "inputs":
                return b"inputs"
            self.checks.append(command[2:])
            return json.dumps(answers[min(len(self.checks), len(answers)) - 1]).encode()
        runner = case_run.CaseRunner(kit, sandbox, ["./plain"], pathlib.Path("judge"), b"secret", "owner", 1)  # type: ignore[arg-type]
        with mock.patch.object(case_run, "trusted", trusted):
            return runner.run(case)

    def schedules(self) -> List[str]:
        return [next((word for word in words if word.startswith("schedule=")), "") for words in self.checks]

    def test_right_in_three_schedules_on_the_same_data(self) -> None:
        verdict = self.judged(EXACT, RIGHT)
        self.assertTrue(verdict.right)
        self.assertEqual(verdict.links, {"rank 0 to rank 1": [32, 1]})
        self.assertEqual((verdict.host_waits, verdict.memory, verdict.kernel_ns), (3, [64, 32], None))
        self.assertEqual(self.schedules()[0], "")
        self.assertEqual(len(set(self.schedules())), 3)
        self.assertEqual(len({words[-1] for words in self.checks}), 1)  # seed=

    def test_one_schedule_that_is_wrong_decides(self) -> None:
        verdict = self.judged(EXACT, RIGHT, WRONG, RIGHT)
        self.assertFalse(verdict.right)
        self.assertRegex(verdict.why, rf"^right in the usual order, wrong with schedule (\d+) \(./try --schedule \1\): {WRONG['wrong']}$")
        self.assertEqual((len(self.checks), verdict.case), (2, EXACT))
        scheduled = dataclasses.replace(EXACT, schedule=7)
        self.assertIn("right in the usual order, wrong with schedule 7 (", self.judged(scheduled, WRONG, RIGHT).why)
        self.assertEqual(self.judged(scheduled, WRONG).why, WRONG["wrong"])
        self.assertEqual(self.judged(EXACT, WRONG).why, WRONG["wrong"])

    def test_races_are_looked_for_in_the_cases_own_schedule(self) -> None:
        verdict = self.judged(RACE, RIGHT, status=3, output="virtual GPUs: data race in byte 0\n\n  read by gpu0\n")
        self.assertEqual(verdict.race, "virtual GPUs: data race in byte 0\n  read by gpu0")
        self.assertEqual(self.schedules(), ["schedule=5"])

    def test_an_illegal_access_names_its_line(self) -> None:
        sentence = f"rank 0: kernel '{'name ' * 60}' accessed memory that is not allocated at ring.cuh:57: 8 bytes behind"
        verdict = self.judged(EXACT, NOTHING, status=3, output=f"my own print\nsubmission: {sentence}\n")
        self.assertEqual((verdict.race, verdict.why), (sentence, sentence))

    def test_no_answer(self) -> None:
        self.assertIn("status 2 and no result: it fails", self.judged(EXACT, NOTHING, status=2).why)
        self.assertIn("its answer has 8 bytes of 9", self.judged(EXACT, {**NOTHING, "bytes": 8}).why)
        verdict = self.judged(EXACT, RIGHT, ended="it did not end within 12 s")
        self.assertTrue(verdict.ended)
        self.assertFalse(verdict.right or self.checks)

    def test_a_products_data_stay_on_the_gpus(self) -> None:
        through_host = {**RIGHT, "links": [{"from": 1, "to": 2, "bytes": 48, "copies": 1}]}
        verdict = self.judged(EXACT, through_host)
        self.assertFalse(verdict.right)
        self.assertIn("rank 1 to the host: 48 bytes are copied", verdict.why)
        self.assertTrue(self.judged(SPARSE, through_host).right)

    def test_waits_do_not_count_where_results_are_read_on_the_host(self) -> None:
        verdict = self.judged(SPARSE, RIGHT)
        self.assertEqual((verdict.host_waits, verdict.kernel_ns, verdict.elapsed_ns), (None, [900, 100], 6000))

    def test_what_the_process_says_of_itself_is_marked_so(self) -> None:
        verdicts = [Verdict(case, right=True, links={}, host_waits=0) for case in (EXACT, TIMED)]
        text = report.text("a", points.Grade(points.marks_of(verdicts, lambda _case: verdicts[0], "no race build", LESSON), "none"))
        self.assertEqual([line.split(" (reported")[0].split("  ")[-1] for line in text.splitlines() if "(reported by" in line],
                         ["race-free", "cost", "lesson"])
        self.assertNotRegex(text, r"exact result \(reported")


class CostTest(unittest.TestCase):
    def mark(self, memory_counts: bool = False, **own: Any) -> points.Mark:
        card = Verdict(EXACT, right=True, links={"rank 0 to rank 1": [32, 1]}, host_waits=0, memory=[64, 32], kernel_ns=[900, 100])
        values = {"links": {"rank 0 to rank 1": [32, 1]}, "host_waits": 0, **own}
        verdicts = [Verdict(case, right=True, **values) for case in (EXACT, TIMED)]
        marks = points.marks_of(verdicts, lambda _case: card, "no race build", LESSON, memory_counts)
        return next(mark for mark in marks if mark.criterion == "cost")

    def test_bytes_and_waits(self) -> None:
        self.assertEqual(self.mark().points, 10)
        self.assertEqual(self.mark(host_waits=None).points, 10)
        self.assertEqual(self.mark(host_waits=2).points, 0)
        self.assertIn("hosts wait 2 times", self.mark(host_waits=2).reason)
        self.assertIn("33 bytes in 1 messages counted", self.mark(links={"rank 0 to rank 1": [33, 1]}).reason)

    def test_memory_counts_where_an_extension_says_so(self) -> None:
        self.assertEqual(self.mark(memory=[64, 33]).points, 10)
        self.assertEqual(self.mark(True, memory=[64, 32]).points, 10)
        self.assertEqual(self.mark(True, memory=[64, 33]).points, 0)
        self.assertIn("rank 1 allocates 33 bytes; 32 are enough", self.mark(True, memory=[64, 33]).reason)

    def test_time_of_kernels_counts_where_an_extension_says_so(self) -> None:
        self.assertEqual(self.mark(kernel_ns=[2000, 1]).points, 10)
        self.assertEqual(self.mark(True, kernel_ns=[0, 2000]).points, 10)
        self.assertEqual(self.mark(True, kernel_ns=[2000, 1]).points, 0)
        self.assertIn("its kernels take 2.0 us (modelled); 1.0 us are enough", self.mark(True, kernel_ns=[2000, 1]).reason)


class LimitsTest(unittest.TestCase):
    def test_the_compilers_grow_with_the_submissions(self) -> None:
        (chosen,) = task.tasks_of("03_ring_all_gather")
        for patience, seconds in ((4, 4 * unit.COMPILING.seconds), (0.1, unit.COMPILING.seconds)):
            with contextlib.closing(unit.Kit(chosen, {}, patience)) as kit:
                self.assertEqual(kit.compiling.seconds, seconds)


class TryTest(unittest.TestCase):
    def test_what_only_long_lists_of_rows_show(self) -> None:
        record = {"chapter": "13_sparse_v5_kernel", "sizes": {"rows": 97, "features": 5, "entries": 23}}
        program = ["sh", "-c", 'case "$*" in *"--entries 300 "*) echo "data race"; exit 3; esac', "program"]
        for what in (try_work.RACES, try_work.ACCESSES):
            out = try_work.Report()
            with contextlib.redirect_stdout(io.StringIO()):
                try_work.free_of(what, out, program, record)
            self.assertTrue(out.wrong, what)
        self.assertEqual([words[7] for words in try_work.large(record, "exact")], ["900", "600"])
        self.assertEqual(try_work.large({"chapter": "03_ring_all_gather"}, "exact"),
                         [["--gpus", "4", "--m", "512", "--n", "512", "--k", "256", *try_work.ONCE]])
        self.assertEqual(try_work.large({"chapter": "19_fused_reduce_scatter"}, "race"), [])


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
