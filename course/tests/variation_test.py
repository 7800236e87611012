#!/usr/bin/env python3
"""Builds and runs the hand-out of a chapter whose tasks vary: the blank is wrong, a student's own solution is right, and the
solution of another variation is not.

  variation_test.py NN_name
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Dict, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from course import handout, tasks, variation, work  # noqa: E402

CHAPTER = ""  # of the command line
LIMIT_S = 600


class VariationTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hand out ")  # with a space
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        found: Dict[str, str] = {}
        for number in range(60):
            found.setdefault(variation.of_student(CHAPTER, f"s{number}", variation.PRACTICE_KEY).name, f"s{number}")
        self.students = found
        self.ways = {way.name: way for way in variation.ways(CHAPTER)}
        self.assertEqual(set(found), set(self.ways))
        self.assertGreater(len(found), 1)

    def attempt(self, student: str, way: variation.Variation) -> Tuple[int, str]:
        """./try of a student who submits the solution of this variation: exit status and report."""
        folder = handout.start(CHAPTER, student, "", str(self.scratch / f"{student} {way.name}"))
        all_tasks = tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER)
        for name in handout.headers(CHAPTER, all_tasks, way):
            (folder / name).write_text(handout.solved(CHAPTER, name, way), encoding="utf-8")
        return self.run_try(folder)

    def run_try(self, folder: pathlib.Path) -> Tuple[int, str]:
        run = subprocess.run([str(folder / "try")], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                             env={**os.environ, "OVERLAP_REPOSITORY": str(REPOSITORY)})
        self.assertIn(run.returncode, (0, 1), run.stdout + run.stderr)
        return run.returncode, run.stdout

    def test_own_and_others(self) -> None:
        for own, student in self.students.items():
            for other, way in self.ways.items():
                with self.subTest(student=own, solution=other):
                    status, report = self.attempt(student, way)
                    self.assertEqual(status, 0 if own == other else 1, report)
                    if own != other:
                        self.assertRegex(report, r"the data's way +WRONG\n    rank \d (sends to|begins with) rank \d; in your variation")
                        self.assertRegex(report, r"free of races and deadlocks +(yes|not judged)")

    def test_one_region_of_another_variation(self) -> None:
        """A student copies another variation's code of one task into the own header: wrong, deadlocked or racing."""
        own, other = list(self.ways.values())[:2]
        student = self.students[own.name]
        for task in tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER).values():
            source = (REPOSITORY / "chapters" / CHAPTER / task.file).read_text(encoding="utf-8") if task.kind == "rebuild" else ""
            if task.variation == "none" or not source or not self.differs(source, task, other):
                continue
            with self.subTest(task.name):
                folder = handout.start(CHAPTER, student, "", str(self.scratch / task.name))
                for name in handout.headers(CHAPTER, tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER), own):
                    (folder / name).write_text(handout.solved(CHAPTER, name, own), encoding="utf-8")
                (folder / task.file).write_text(self.mixed(source, task, own, other), encoding="utf-8")
                status, report = self.run_try(folder)
                self.assertEqual(status, 1, report)

    @staticmethod
    def differs(source: str, task: tasks.Task, other: variation.Variation) -> bool:
        """True if the other variation changes code of the task's regions."""
        lines = source.splitlines()
        regions = [region for region in tasks.blank.regions_of(lines, task.file) if region.name in task.regions]
        code = [line for region in regions for line in lines[region.content:region.closing] if not line.strip().startswith("//")]
        return any(other.apply(line) != line for line in code)

    @staticmethod
    def mixed(source: str, task: tasks.Task, own: variation.Variation, other: variation.Variation) -> str:
        """The header of one variation with the task's regions of another."""
        lines = own.apply(source).splitlines()
        others = other.apply(source).splitlines()
        for region in tasks.blank.regions_of(lines, task.file):
            if region.name in task.regions:
                lines[region.content:region.closing] = others[region.content:region.closing]
        return tasks.blank.without_markers("\n".join(lines) + "\n", task.file)

    def test_the_blank(self) -> None:
        name, student = next(iter(self.students.items()))
        folder = handout.start(CHAPTER, student, "", str(self.scratch / "blank"))
        status, report = self.run_try(folder)
        self.assertEqual(status, 1)
        self.assertRegex(report, r"--gpus 1 .* WRONG", name)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (work.REPOSITORY / "chapters" / sys.argv[1] / "main.cu").is_file():
        sys.exit("usage: variation_test.py NN_name")
    CHAPTER = sys.argv.pop(1)
    unittest.main()
