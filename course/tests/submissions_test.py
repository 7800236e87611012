#!/usr/bin/env python3
"""Tests of how the grader finds submissions, and of its output (course/grade): no compiler, no GPU."""
import csv
import dataclasses
import io
import json
import os
import pathlib
import re
import stat
import sys
import unittest
import zipfile
from typing import List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "course" / "grade")]
import case_run  # noqa: E402
import cases  # noqa: E402
import grader  # noqa: E402
import points  # noqa: E402
import report  # noqa: E402
import similarity  # noqa: E402
import submissions  # noqa: E402
import task  # noqa: E402
from case_run import Verdict  # noqa: E402
from cases import Case  # noqa: E402
from tests.programs.support import FolderTest  # noqa: E402

RING = task.tasks_of("03_ring_all_gather")[0]
LESSON = task.Lesson("a ring", (2, 3, 4, 5), kernels=True)
CRITERIA = ("exact", "uneven", "ranks", "race", "access", "lesson")
MOODLE = "Ada Lovelace_4711_assignsubmission_file_"


class HandedInTest(FolderTest):
    def put(self, path: str, data: bytes = b"x") -> None:
        self.write(path).write_bytes(data)

    def archive(self, path: str, *members: str, link: str = "") -> None:
        with zipfile.ZipFile(self.folder / path, "w") as archive:
            for member in members:
                archive.writestr(member, member)
            if link:
                info = zipfile.ZipInfo(link)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(info, "/etc/passwd")

    def only(self) -> submissions.Submission:
        found = submissions.find(self.folder, RING)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_moodle(self) -> None:
        self.put(f"{MOODLE}/ring_all_gather.cuh", b"hers")
        self.assertEqual(self.only(), submissions.Submission("Ada Lovelace 4711", b"hers"))

    def test_files_folders_archives_and_spaces(self) -> None:
        self.put("a b.cuh", b"1")
        self.put("c/deep down/ring_all_gather.cuh", b"2")
        self.put("c/notes.txt")
        self.archive("d.zip", "x/ring_all_gather.cuh", "x/readme.md", "__MACOSX/x/._ring_all_gather.cuh")
        self.put("e/other name.cuh", b"4")
        self.put(".hidden/ring_all_gather.cuh")
        found = submissions.find(self.folder, RING)
        self.assertEqual([(each.name, each.data, each.problem) for each in found],
                         [("a b", b"1", ""), ("c", b"2", ""), ("d", b"x/ring_all_gather.cuh", ""), ("e", b"4", "")])

    def test_an_archive_in_a_folder(self) -> None:
        (self.folder / "f").mkdir()
        self.archive("f/work.zip", "ring_all_gather.cuh")
        self.assertEqual(self.only().data, b"ring_all_gather.cuh")

    def test_missing_and_two_files(self) -> None:
        (self.folder / "nothing").mkdir()
        self.put("two/a.cuh")
        self.put("two/b.cuh")
        self.put("twice/1/ring_all_gather.cuh")
        self.put("twice/2/ring_all_gather.cuh")
        self.put("right_and_other/ring_all_gather.cuh", b"right")
        self.put("right_and_other/try.cuh")
        found = {each.name: each for each in submissions.find(self.folder, RING)}
        self.assertIn("there is no ring_all_gather.cuh", found["nothing"].problem)
        self.assertIn("2 headers", found["two"].problem)
        self.assertIn("2 headers", found["twice"].problem)
        self.assertEqual(found["right_and_other"].data, b"right")

    def test_duplicate_names(self) -> None:
        self.put("id.cuh")
        self.archive("id.zip", "ring_all_gather.cuh")
        self.assertIn("two submissions", self.only().problem)

    def test_zip_slip_and_links(self) -> None:
        for name in ("../ring_all_gather.cuh", "/tmp/ring_all_gather.cuh", "a/../../ring_all_gather.cuh"):
            with self.subTest(name=name):
                self.archive("slip.zip", name)
                self.assertIn("reaches out of its folder", self.only().problem)
        self.archive("slip.zip", link="ring_all_gather.cuh")
        self.assertIn("symbolic link", self.only().problem)

    def test_broken_and_large_archives(self) -> None:
        self.put("bad.zip", b"PK nothing")
        self.assertIn("cannot be read", self.only().problem)
        with zipfile.ZipFile(self.folder / "bad.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("ring_all_gather.cuh", b"\n" * (1 << 24))
        self.assertIn("larger than 256 KiB", self.only().problem)
        with zipfile.ZipFile(self.folder / "bad.zip", "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("ring_all_gather.cuh", b"\n")
        self.assertIn("unusual way", self.only().problem)
        os.truncate(self.folder / "bad.zip", submissions.MOST_ARCHIVE + 1)
        self.assertIn("larger than 16 MiB", self.only().problem)

    def test_links_and_fifos(self) -> None:
        (self.folder / "link.cuh").symlink_to("/etc/passwd")
        os.mkfifo(self.folder / "pipe.cuh")
        (self.folder / "linked").symlink_to("/etc")
        (self.folder / "inside").mkdir()
        (self.folder / "inside" / "ring_all_gather.cuh").symlink_to("/etc/passwd")
        for each in submissions.find(self.folder, RING):
            self.assertRegex(each.problem, "symbolic link|FIFO", each.name)

    def test_ids(self) -> None:
        for name in ("s1.cuh", "ring_all_gather-s2.handin.cuh", f"{MOODLE}/ring_all_gather.cuh", "who.cuh"):
            self.put(name)
        ids = self.write("ids.csv", "s1\ns2\n4711,s3\n").rename(self.folder.parent / f"{self.folder.name}.csv")
        self.addCleanup(ids.unlink)
        found = submissions.with_ids(submissions.find(self.folder, RING), submissions.read_ids(ids))
        self.assertEqual([(each.name, each.student) for each in found],
                         [("Ada Lovelace 4711", "s3"), ("ring_all_gather-s2", "s2"), ("s1", "s1"), ("who", "")])
        self.assertEqual([each.problem for each in found], ["", "", "", "the list of IDs has none for it"])
        ids.write_text("s1\ns1,s2\n", encoding="utf-8")
        with self.assertRaisesRegex(grader.Unreadable, "'s1' is there twice"):
            submissions.read_ids(ids)

    def test_reports_have_the_students_names(self) -> None:
        self.assertEqual(submissions.file_name("Ada Lovelace 4711"), "Ada Lovelace 4711")
        one, other = submissions.file_name("../a/b"), submissions.file_name("../a:b")
        self.assertRegex(one, r"^[\w -]+$")
        self.assertNotEqual(one, other)

    def test_names_are_for_terminals(self) -> None:
        self.assertEqual(submissions.name_of("a\x1b[2Jb.cuh"), "a?[2Jb")


def verdict(criterion: str, **values: object) -> Verdict:
    return Verdict(Case(criterion, "gather", 2, 3, 4, 5, "f16"), **values)  # type: ignore[arg-type]


class PointsTest(unittest.TestCase):
    links = {"rank 0 to rank 1": [80, 2]}

    def marks(self, verdicts: List[Verdict], race: str = "") -> "dict[str, points.Mark]":
        expected = verdict("exact", right=True, links=self.links, kernel_ns=[5], elapsed_ns=100)
        return {mark.criterion: mark for mark in points.marks_of(verdicts, lambda case: expected, race, LESSON)}

    def all_right(self) -> List[Verdict]:
        return [verdict(name, right=True, links=self.links, kernel_ns=[5], elapsed_ns=120) for name in CRITERIA]

    def test_full_marks(self) -> None:
        self.assertEqual(sum(mark.points or 0 for mark in self.marks(self.all_right()).values()), 100)
        self.assertEqual(sum(points.CRITERIA.values()), 100)

    def test_nothing_right_earns_nothing_for_races_and_cost(self) -> None:
        marks = self.marks([verdict(name, why="wrong") for name in CRITERIA])
        self.assertEqual([mark.points for mark in marks.values()], [10, 0, 0, 0, 0, 0, 0])

    def test_the_lesson(self) -> None:
        found = self.all_right()
        for values, reason in (({"elapsed_ns": 126}, "a ring: P = 2, .* takes 0.1 us .modelled.; the chapter 0.1 us"),
                               ({"kernel_ns": [0]}, "a ring: rank 0 launches no kernel"), ({"right": False, "why": "wrong"}, "wrong")):
            with self.subTest(values):
                marks = self.marks([*found[:-1], dataclasses.replace(found[-1], **values)])  # type: ignore[arg-type]
                self.assertEqual((marks["lesson"].points, marks["cost"].points), (0, 10))
                self.assertRegex(marks["lesson"].reason, reason)

    def test_wrong_accesses(self) -> None:
        found = self.all_right()
        found[4].race = "virtual GPUs: kernel 'k', block (0,0,0) reads 4 bytes at x.cuh:3: 0 bytes behind a cudaMalloc"
        self.assertEqual([mark.points for mark in self.marks(found).values()], [10, 20, 15, 15, 20, 10, 0])
        found[4].race = "virtual GPUs: the host reads 4 bytes at x.cuh:3, which only GPUs can access: byte 0"
        marks = self.marks(found)
        self.assertEqual([mark.points for mark in marks.values()], [10, 0, 0, 0, 0, 0, 0])
        self.assertIn("x.cuh:3", marks["exact"].reason)

    def test_a_race_and_its_report(self) -> None:
        found = self.all_right()
        found[3].race = "data race\n  x.cuh:12"
        mark = self.marks(found)["race"]
        self.assertIn("data race", mark.reason)
        self.assertEqual((mark.points, mark.details), (0, "  x.cuh:12"))

    def test_races_that_cannot_be_judged(self) -> None:
        marks = list(self.marks([each for each in self.all_right() if each.case.criterion != "race"], "no detector").values())
        grade = points.Grade(marks, "root (x)")
        self.assertEqual((grade.points, grade.judged), (80, 80))
        row = list(csv.DictReader(io.StringIO(report.table([("a", grade)]))))[0]
        self.assertEqual((row["race"], row["points judged"], row["points"]), ("not judged", "80", "80"))
        self.assertEqual(report.gradescope(grade)["score"], 80)
        self.assertNotIn("race-free", [test["name"] for test in report.gradescope(grade)["tests"]])

    def test_counted_against_expected(self) -> None:
        found = self.all_right()
        found[1].links = {"rank 0 to rank 1": [40, 2], "rank 0 to the host": [8, 1]}
        mark = self.marks(found)["cost"]
        self.assertEqual(mark.points, 0)
        self.assertIn("rank 0 to rank 1: 40 bytes in 2 messages counted; the chapter moves 80 in 2", mark.reason)

    def test_limits_end_the_rest(self) -> None:
        class Ended:  # pylint: disable=too-few-public-methods
            runs = 0

            def run(self, case: Case) -> Verdict:
                self.runs += 1
                return Verdict(case, why="it did not end", ended=True)

        slow, all_cases = Ended(), cases.cases_of("gather", "x", b"s", RING.lesson.sizes)
        self.assertGreater(len(all_cases), 10)
        found = points.judge_all(slow, all_cases, lambda: False)  # type: ignore[arg-type]
        self.assertEqual((slow.runs, [verdict.case for verdict in found]), (2, all_cases))
        self.assertIn("two runs were ended", found[-1].why)


class ReportTest(unittest.TestCase):
    def grade(self, reason: str = "=1+1") -> points.Grade:
        return points.Grade(points.refused(reason, "more"), "root (own user)", 1.25)

    def test_no_cell_is_a_formula(self) -> None:
        rows = list(csv.reader(io.StringIO(report.table([("=cmd()", self.grade()), ('a"b,c', self.grade())]))))
        self.assertEqual(rows[1][0], "'=cmd()")
        self.assertEqual(rows[1][rows[0].index("reason")], "'=1+1")
        self.assertEqual(rows[2][0], 'a"b,c')

    def test_the_compilers_first_error_is_in_the_table(self) -> None:
        marks = points.refused("compiling fails:", "ring.cuh:3: error: x\nring.cuh:4: error: y")
        grade = points.Grade(marks, "root (own user)", variation="direction: left")
        row = list(csv.DictReader(io.StringIO(report.table([("a", grade)]))))[0]
        self.assertEqual((row["reason"], row["variation"]), ("compiling fails: ring.cuh:3: error: x", "direction: left"))
        self.assertIn("\nvariation: direction: left\n", report.text("a", grade))

    def test_json_and_back(self) -> None:
        grade = self.grade()
        kept = json.loads(json.dumps(report.values(grade)))
        self.assertEqual(report.text("a", report.from_values(kept)), report.text("a", grade))

    def test_text(self) -> None:
        text = report.text("a.cuh", self.grade("refused: line 3: x"))
        self.assertIn("a.cuh: 0 of 100 points", text)
        self.assertRegex(text, r"  0 / 10  builds: refused: line 3: x\n +more\n")

    def test_race_report_names_the_students_lines(self) -> None:
        output = ("noise\n/var/tmp/overlap-kit-x1/include/common/overlap/gpu/a.hpp:3\nWARNING: data race\n"
                  "  at /var/tmp/overlap-grade-x_1/work/03_ring_all_gather/ring_all_gather.cuh:77\n")
        self.assertEqual(case_run.report_of(output, RING), "WARNING: data race\n  at ring_all_gather.cuh:77")


class CasesTest(FolderTest):
    @staticmethod
    def of(problem: str, secret: bytes, extension: bool = False) -> List[Case]:
        return cases.cases_of(problem, "x", secret, RING.lesson.sizes, extension)

    def test_sizes_depend_on_the_secret(self) -> None:
        self.assertEqual(self.of("gather", b"1"), self.of("gather", b"1"))
        self.assertNotEqual(self.of("gather", b"1"), self.of("gather", b"2"))

    def test_extensions_of_sparse_ones_are_timed(self) -> None:
        for problem, timed in (("sparse", 1), ("gather", 0)):
            usual, extended = self.of(problem, b"1"), self.of(problem, b"1", extension=True)
            self.assertEqual(extended[:len(usual)], usual)
            self.assertEqual(len(extended), len(usual) + timed)
            self.assertEqual([case.criterion for case in usual if case.timed], ["lesson"])
            self.assertFalse(any(case.schedule for case in extended if case.timed))

    def test_the_namespace_is_that_of_the_class(self) -> None:
        self.assertEqual(task.tasks_of("14_sparse_v6_tiled")[0].namespace, "overlap::sparse_tiled::")

    def test_all_numbers_of_ranks(self) -> None:
        for problem in ("gather", "scatter", "sparse"):
            found = [case.ranks for case in self.of(problem, b"1") if case.criterion == "ranks"]
            self.assertEqual(found, [1, 2, 3, 4, 8])

    def test_the_secret_is_for_its_owner(self) -> None:
        path = self.folder / "secret"
        first = cases.secret_of(path)
        self.assertEqual((cases.secret_of(path), len(first), stat.S_IMODE(path.stat().st_mode)), (first, 32, 0o600))


class TaskTest(unittest.TestCase):
    def test_all_of_the_repository(self) -> None:
        graded = [path.parts[-3] for path in sorted(ROOT.glob("chapters/*/assignment/grade.json"))]
        self.assertIn("03_ring_all_gather", graded)
        for chapter in graded:
            for each in task.tasks_of(chapter):
                self.assertNotIn(each.path, each.visible())
                self.assertTrue(each.solution.is_file())
                self.assertTrue(all(re.match(r"\d\d_", name) and name[:2] <= chapter[:2] for name in each.visible()), each)

    def test_a_chapter_without_tasks(self) -> None:
        with self.assertRaisesRegex(task.TaskError, "nothing to grade"):
            task.tasks_of("01_column_split")

    def test_the_factory_comes_last(self) -> None:
        source = RING.source()
        self.assertLess(source.index("dense_unit.hpp"), source.index("overlap/gpu/ranks.hpp"))
        self.assertLess(source.index("overlap/gpu/ranks.hpp"), source.index(RING.path))
        self.assertLess(source.index(RING.path), source.index("make_dense"))
        self.assertIn("RingAllGatherMatmul<__half>, overlap::ring_all_gather::RingAllGatherMatmul<float>", source)


@unittest.skipUnless(similarity.available(), "sim_c++ (similarity-tester) is not installed")
class SimilarityTest(unittest.TestCase):
    def test_renamed_copies_are_found(self) -> None:
        honest = RING.solution.read_bytes()
        other = (ROOT / "chapters/04_copy_engine/ring_push.cuh").read_bytes()
        renamed = honest.replace(b"slot", b"place").replace(b"// ", b"//  other ")
        found = similarity.pairs([("a b", honest + b"int x;"), ("c", renamed), ("d", other), ("e", honest)], honest)
        self.assertEqual([names for _percent, *names in found], [["a b", "c"]])
        self.assertGreater(found[0][0], similarity.LEAST)


class ReadFileTest(FolderTest):
    def test_reads_a_file_and_nothing_else(self) -> None:
        self.assertEqual(grader.read_file(RING.solution), RING.solution.read_bytes())
        fifo, link, large = (self.folder / name for name in ("fifo.cuh", "link.cuh", "large.cuh"))
        os.mkfifo(fifo)
        link.symlink_to("/etc/passwd")
        large.write_bytes(b"\n" * (256 * 1024 + 1))
        for path, reason in ((ROOT, "folder"), (fifo, "a FIFO"), (link, "a symbolic link"), (large, "larger than 256 KiB")):
            with self.assertRaisesRegex(grader.Unreadable, reason):
                grader.read_file(path)


if __name__ == "__main__":
    unittest.main()
