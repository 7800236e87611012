#!/usr/bin/env python3
"""Tests of course/patches.py: applying and regenerating patches, and that the repository's patches apply to the lessons."""
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from course import patches, work  # noqa: E402

LESSON = "".join(f"line {number};\n" for number in range(1, 41))
HEADER = "chapters/03_ring/lesson.cuh"
SOLUTION = LESSON.replace("line 10;", "\n+ten;").replace("line 30;\n", "")


class AppliedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.patch = patches.difference(LESSON, SOLUTION, HEADER)

    def test_both_ways(self) -> None:
        self.assertEqual(patches.header_of(self.patch), HEADER)
        self.assertEqual(patches.applied(self.patch, LESSON), SOLUTION)
        self.assertEqual(patches.difference(LESSON, LESSON, HEADER), "")
        with self.assertRaisesRegex(patches.PatchError, "it changes 2 files"):
            patches.header_of(self.patch * 2)

    def test_lines_may_have_moved(self) -> None:
        for first in ("new;\n", LESSON.replace("line", "other")):
            self.assertEqual(patches.applied(self.patch, first + LESSON), first + SOLUTION)
        self.assertEqual(patches.applied(self.patch, LESSON.replace("line 20;\n", "")), SOLUTION.replace("line 20;\n", ""))

    def test_where_there_are_two_places_the_line_decides(self) -> None:
        self.assertEqual(patches.applied(self.patch, LESSON + LESSON), SOLUTION + LESSON)
        with self.assertRaisesRegex(patches.PatchError, "at line 7 fit in 2 places"):
            patches.applied(self.patch, "new;\n" + LESSON + LESSON)

    def test_what_does_not_fit(self) -> None:
        for number, line in ((7, 7), (10, 7), (33, 27)):  # of the context and of the changed lines
            with self.assertRaisesRegex(patches.PatchError, f"at line {line} fit in 0 places"):
                patches.applied(self.patch, LESSON.replace(f"line {number};", "new;"))
        with self.assertRaisesRegex(patches.PatchError, "begins with none of"):
            patches.applied("@@ -1 +1 @@\nline 1;\n", LESSON)


class RemakeTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        for name, value in (("REPOSITORY", self.folder), ("FOLDER", self.folder / "work")):
            change = mock.patch.object(work, name, value)
            change.start()
            self.addCleanup(change.stop)
        self.lesson = self.write(HEADER, LESSON)
        self.patch = self.write(self.lesson.parent / "assignment" / "more.patch")
        self.header = self.write(f"mine/{self.lesson.name}", SOLUTION)
        self.assertEqual(self.call(str(self.patch), str(self.header)), (0, ""))

    def call(self, *words: str) -> "tuple[int, str]":
        """Exit status and output."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return patches.main(words), said.getvalue()

    def edit(self, old: str, new: str) -> str:
        """Edits the lesson; returns its new text."""
        text = LESSON.replace(old, new)
        self.lesson.write_text(text, encoding="utf-8")
        return text

    def test_of_a_header(self) -> None:
        self.assertEqual(patches.solution_of(self.patch, self.lesson), SOLUTION)
        self.assertEqual(self.call(), (0, ""))

    def test_lines_that_moved(self) -> None:
        text = self.edit("line 2;\n", "")
        self.assertEqual(self.call(), (0, "chapters/03_ring/assignment/more.patch is made anew\n"))
        self.assertEqual(self.patch.read_text(encoding="utf-8"), patches.difference(text, SOLUTION.replace("line 2;\n", ""), HEADER))
        self.assertEqual(self.call(), (0, ""))

    @unittest.skipUnless(shutil.which("patch"), "the program patch is not here")
    def test_context_that_changed(self) -> None:
        self.edit("line 8;", "eight;")
        self.assertEqual(self.call()[0], 0)
        self.assertEqual(patches.solution_of(self.patch, self.lesson), SOLUTION.replace("line 8;", "eight;"))
        self.assertEqual(list(work.FOLDER.glob("**/*.cuh")), [])

    @unittest.skipUnless(shutil.which("patch"), "the program patch is not here")
    def test_a_conflict(self) -> None:
        self.edit("line 10;", "10;")
        before = self.patch.read_bytes()
        status, said = self.call()
        self.assertEqual((status, self.patch.read_bytes()), (1, before))
        marked = work.FOLDER / "patches/more/03_ring/lesson.cuh"
        self.assertIn(f"then: {patches.COMMAND} {self.patch} {marked}", said)
        self.assertRegex(marked.read_text(encoding="utf-8"), "<<<<<<<.*\n10;\n=======\n\n\\+ten;\n>>>>>>>")
        marked.write_text(SOLUTION, encoding="utf-8")
        self.assertEqual(self.call(str(self.patch), str(marked)), (0, ""))
        self.assertEqual(self.call(), (0, ""))
        self.assertEqual(patches.solution_of(self.patch, self.lesson), SOLUTION)


class OurPatchesTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("git"), "git is not here")
    def test_git_takes_them_all(self) -> None:
        """Each applies (see tasks_test.py), and git makes the same header from the lesson's."""
        found = sorted(REPOSITORY.glob("chapters/*/assignment/*.patch"))
        self.assertGreater(len(found), 15)
        for patch in found:
            path = patches.header_of(patch.read_text(encoding="utf-8"))
            with self.subTest(patch.name), tempfile.TemporaryDirectory() as folder:
                header = pathlib.Path(folder, path)
                header.parent.mkdir(parents=True)
                header.write_bytes((REPOSITORY / path).read_bytes())
                subprocess.run(["git", "init", "--quiet", folder], check=True)  # else git apply uses a parent folder's
                run = subprocess.run(["git", "apply", str(patch)], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(header.read_text(encoding="utf-8"), patches.solution_of(patch, REPOSITORY / path))


if __name__ == "__main__":
    unittest.main()
