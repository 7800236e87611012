#!/usr/bin/env python3
"""Logs of the chapters' algorithms, judged by replay; and logs that nobody has written honestly. Takes the folder of the
plain build's programs. (The tests of mutants: replay_mutant.py.)"""
import pathlib
import re
import sys
import tempfile
import unittest
from typing import Callable, List

from replay_cases import ALGORITHMS, Case, judge, write_log

BUILD = pathlib.Path()


class ReplayTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name) / "calls.log"

    def written(self, case: Case) -> str:
        """The log of the repository's own algorithm."""
        write_log(BUILD / "bin" / f"log_{case.chapter}", case, self.log)
        return self.log.read_text(encoding="utf-8")

    def verdict(self, case: Case, text: str, **options: int) -> dict:
        self.log.write_text(text, encoding="utf-8")
        return judge(BUILD, case, self.log, **options)


class Honest(ReplayTest):
    def expect_right(self, case: Case, **options: int) -> dict:
        verdict = judge(BUILD, case, self.log, **options)
        self.assertEqual(verdict["verdict"], "right", verdict)
        self.assertEqual(verdict["elements"], case.calls * case.shape[0] * case.shape[1])
        self.assertTrue(verdict["cost_as_expected"], verdict)
        return verdict

    def test_every_algorithm_on_all_numbers_of_gpus(self) -> None:
        for chapter, algorithm in ALGORITHMS:
            for gpus in (1, 2, 3, 4, 8):
                for shape in ((33, 37, 19), (5, 3, 7)):
                    case = Case(chapter, algorithm, gpus, shape)
                    with self.subTest(case=case):
                        self.written(case)
                        verdict = self.expect_right(case)
                        self.assertEqual(bool(verdict["links"]), gpus > 1)

    def test_schedules_types_and_calls(self) -> None:
        for chapter, algorithm in ALGORITHMS:
            for type_name, calls in (("bf16", 1), ("f32", 3)):
                case = Case(chapter, algorithm, 3, (19, 23, 11), calls, type_name)
                with self.subTest(case=case):
                    self.written(case)
                    for schedule in (1, 2, 3):
                        self.expect_right(case, schedule=schedule, seed=schedule)

    def test_lines_name_the_chapter(self) -> None:
        text = self.written(Case("03_ring_all_gather", "ring", 2, (8, 8, 8), 1))
        sends = re.findall(r"^0 send .*", text, re.MULTILINE)
        source = pathlib.Path(__file__).resolve().parents[2] / "chapters/03_ring_all_gather/ring_all_gather.cuh"
        lines = source.read_text(encoding="utf-8").splitlines()
        self.assertTrue(sends)
        for send in sends:
            place = re.search(r" @ ring_all_gather\.cuh:(\d+)$", send)
            self.assertIsNotNone(place, send)
            assert place is not None
            self.assertIn("ncclSend", lines[int(place[1]) - 1])

    def test_the_same_case_gives_the_same_log(self) -> None:
        case = Case("05_two_streams", "pull_two_streams", 3, (9, 9, 9))
        self.assertEqual(self.written(case), self.written(case))


class Forged(ReplayTest):
    """Logs of 03, changed by hand."""

    CASE = Case("03_ring_all_gather", "ring", 2, (8, 6, 4), 1)

    def setUp(self) -> None:
        super().setUp()
        self.text = self.written(self.CASE)
        self.assertEqual(self.verdict(self.CASE, self.text)["verdict"], "right")

    def changed(self, change: Callable[[str], str]) -> dict:
        """The verdict on the log whose calls of the algorithm (between `call` and `end`) have been changed."""
        parts: List[str] = re.split(r"(^\d call 0.*\n(?:.*\n)*?\d end 0.*\n)", self.text, flags=re.MULTILINE)
        self.assertEqual(len(parts), 5)
        text = "".join(change(part) if i % 2 else part for i, part in enumerate(parts))
        self.assertNotEqual(text, self.text)
        return self.verdict(self.CASE, text)

    def test_a_log_without_products_is_wrong(self) -> None:
        verdict = self.changed(lambda calls: re.sub(r"^\d gemm .*\n", "", calls, flags=re.MULTILINE))
        self.assertEqual(verdict["verdict"], "wrong result")
        self.assertEqual(verdict["first_wrong"]["found"], "NaN")
        self.assertEqual(verdict["first_wrong"]["rank"], 0)
        self.assertEqual(verdict["first_wrong"]["shard"], "rows 0 to 7, columns 0 to 2")

    def test_a_result_from_nowhere_is_wrong(self) -> None:
        """C of the writer's zeros is all zeros; on the judge's data it is not."""
        verdict = self.changed(lambda calls: re.sub(r"^(\d) gemm .*\n", r"\1 fill c\1.0 0 48 s\1.1\n", calls, flags=re.MULTILINE))
        self.assertEqual(verdict["verdict"], "wrong result")
        self.assertGreater(verdict["wrong_elements"], 0)

    def test_copying_a_peers_operand_in_order_is_a_right_schedule_with_another_cost(self) -> None:
        """Behind the barrier of all ranks' hosts nothing says that A is there: a barrier of signals or a host wait must."""
        def copies(calls: str) -> str:
            rank = calls[0]
            peer = str(1 - int(rank))
            stream = re.search(r"call 0 (s\S+)", calls)
            assert stream is not None
            calls = re.sub(r"^\d (group_start|group_end|send .*)\n", "", calls, flags=re.MULTILINE)
            calls = re.sub(r"^\d recv (m\S+) .*\n", rf"{rank} sync_stream {stream[1]}\n{rank} barrier\n"
                           rf"{rank} copy \1 a{peer}.0 32 s{rank}.0\n", calls, flags=re.MULTILINE)
            # Nor may the peer take its A back before it has been read.
            return re.sub(r"^(\d end 0.*\n)", rf"{rank} sync_device\n{rank} barrier\n\1", calls, flags=re.MULTILINE)
        verdict = self.changed(copies)
        self.assertEqual(verdict["verdict"], "right", verdict)
        self.assertFalse(verdict["cost_as_expected"])
        self.assertEqual(verdict["cost"][0]["counted"]["host_waits"], 2)

    def test_memory_of_a_peer_that_is_not_made_yet(self) -> None:
        text = self.text.replace("ranks 2 calls 1\n", "ranks 2 calls 1\n0 copy_sync m1.0 a0.0 8 @ forged.cuh:1\n")
        verdict = self.verdict(self.CASE, text)
        self.assertEqual(verdict["verdict"], "failed call")
        self.assertIn("forged.cuh:1", verdict["sentence"])
        self.assertIn("has not made by then", verdict["sentence"])

    def test_a_rank_that_stays_away_is_a_deadlock(self) -> None:
        lines = self.text.splitlines(keepends=True)
        first = next(i for i, line in enumerate(lines) if line.startswith("1 barrier"))
        verdict = self.verdict(self.CASE, "".join(lines[:first] + lines[first + 1:]))
        self.assertEqual(verdict["verdict"], "deadlock", verdict)
        self.assertIn("deadlock", verdict["report"])

    def test_a_kernel_that_is_not_on_the_list(self) -> None:
        launch = '0 launch 1 1 1 32 1 1 0 default a0.0 "my_product"\n'
        verdict = self.verdict(self.CASE, self.text.replace("0 call 0", launch + "0 call 0"))
        self.assertEqual(verdict["verdict"], "refused")
        self.assertIn("my_product", verdict["sentence"])

    def test_bytes_that_are_no_log(self) -> None:
        for text in ("", "\0" * 100, self.text[:-7], self.text.replace("s0.0", "s0.99"), "1\n" * 10**6,
                     self.text + "0 barrier\n" * 300000, "x" * (17 << 20)):
            verdict = self.verdict(self.CASE, text)
            self.assertEqual(verdict["verdict"], "refused", text[:50])
            self.assertLess(len(verdict["sentence"]), 500)


class Kernels(ReplayTest):
    """Logs of 06, whose kernels are on the list: their arguments are checked as those of all calls."""

    CASE = Case("06_reduce_scatter", "all_to_all", 3, (9, 6, 4), 1)

    def test_arguments_that_leave_their_memory(self) -> None:
        text = self.written(self.CASE)
        launch = re.search(r'^0 launch .* (m\S+) (\d+) (\d+) (c0\.0) (\d+) (\d+) ".*', text, re.MULTILINE)
        assert launch is not None
        for index, value, part in ((5, "99999", "would leave its memory"), (2, "99999936", "would leave its memory"),
                                   (3, "17", "more than 16 slots"), (6, "9999", "more packs than elements"),
                                   (5, str(2**64 - 1), "more packs than elements"), (4, "null", "would leave its memory"),
                                   (1, "a0.0+2", "aligned"), (4, "5", "not those of its parameters")):
            with self.subTest(index=index, value=value):
                start, end = launch.span(index)
                verdict = self.verdict(self.CASE, text[:start] + value + text[end:])
                self.assertEqual(verdict["verdict"], "refused", verdict)
                self.assertIn(part, verdict["sentence"])


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve().parent
    unittest.main()
