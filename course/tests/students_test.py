#!/usr/bin/env python3
"""A term of three students, outside the repository's folder: makes hand-outs with a course's key, asks for hints, solves,
tries, packs and submits all rebuild tasks; then grades the class, each by the student's own variation, and an extension. If a
chapter is not graded, ungraded_extensions_test.py tests its extension.

  students_test.py NN_name     target `teaching` of the three builds is built
"""
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from course import handout, tasks, variation  # noqa: E402

CHAPTER = ""  # of the command line
STUDENTS = ("ada", "grace", "s3")
LIMIT_S = 900


class StudentsTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="a term ")  # with a space
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.key = self.folder / "course.key"
        self.key.write_text("a key that this term's students do not have", encoding="utf-8")
        self.key.chmod(0o600)
        (self.folder / "ids.csv").write_text("\n".join(STUDENTS) + "\n", encoding="utf-8")
        self.tasks = tasks.read_tasks(ROOT / "chapters" / CHAPTER)

    def say(self, *command: str, cwd: pathlib.Path) -> str:
        """The output of a command that must succeed."""
        run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                             env={**os.environ, "OVERLAP_REPOSITORY": str(ROOT)})
        self.assertEqual(run.returncode, 0, f"{' '.join(command)}\n{run.stdout}{run.stderr}")
        return run.stdout

    def lab(self, *words: str) -> str:
        return self.say(str(ROOT / "lab"), *words, cwd=self.folder)

    def hands_in(self, student: str) -> pathlib.Path:
        """The submission of a student who has solved all rebuild tasks."""
        self.lab("start", CHAPTER[:2], "--student", student, "--key", str(self.key), "--to", str(self.folder / student))
        folder = self.folder / student / CHAPTER
        way = variation.of_student(CHAPTER, student, variation.key_of(str(self.key)))
        self.assertIn(f"For {student}.", (folder / "TASKS.md").read_text(encoding="utf-8"))
        for name, task in self.tasks.items():
            self.assertIn(way.apply(task.hints[0]), self.say("./try", "--hint", name, cwd=folder))
            if task.kind == "rebuild":
                for region in task.regions:
                    self.assertIn(way.apply(task.title), self.say("./try", "--hint", region, "--solution", cwd=folder))
        for name in handout.headers(CHAPTER, self.tasks, way):
            (folder / name).write_text(handout.solved(CHAPTER, name, way), encoding="utf-8")
        self.assertIn("All of it is right.", self.say("./try", cwd=folder))
        return folder / self.say("./try", "--pack", cwd=folder).strip()

    def test_a_term(self) -> None:
        class_folder = self.folder / "handed in"
        class_folder.mkdir()
        for student in STUDENTS:
            shutil.copy(self.hands_in(student), class_folder / f"{student}.{'zip' if len(self.headers()) > 1 else 'cuh'}")
        if not (ROOT / "chapters" / CHAPTER / "assignment" / "grade.json").is_file():
            return
        out = self.folder / "grades.csv"
        self.lab("grade", CHAPTER[:2], "--submissions", str(class_folder), "--ids", "ids.csv", "--key", str(self.key), "--csv", str(out),
                 "--reports", "reports", "--seconds", "300", "--unsafe")
        with open(out, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for student, row in zip(STUDENTS, rows):
            way = variation.of_student(CHAPTER, student, variation.key_of(str(self.key)))
            self.assertEqual((row["submission"], row["points"]), (student, "100"), row["reason"])
            self.assertEqual(row["variation"], f"{way.kind}: {way.name}" if way.kind != "none" else "")
            self.assertIn("100 of 100 points", (self.folder / "reports" / f"{student}.txt").read_text(encoding="utf-8"))

    def headers(self) -> List[str]:
        return sorted({task.file for task in self.tasks.values() if task.kind in ("rebuild", "extend")})

    def test_the_extension(self) -> None:
        if not (ROOT / "chapters" / CHAPTER / "assignment" / "grade.json").is_file():
            self.skipTest("not graded")
        (task,) = [task for task in self.tasks.values() if task.kind == "extend"]
        student = STUDENTS[0]
        way = variation.of_student(CHAPTER, student, variation.key_of(str(self.key)))
        path = self.folder / task.file
        path.write_text(way.apply(task.code), encoding="utf-8")
        self.lab("grade", CHAPTER[:2], str(path), "--extension", task.name, "--student", student, "--key", str(self.key), "--full-marks",
                 "--seconds", "300")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (ROOT / "chapters" / sys.argv[1] / "main.cu").is_file():
        sys.exit("usage: students_test.py NN_name")
    CHAPTER = sys.argv.pop(1)
    unittest.main()
