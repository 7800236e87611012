#!/usr/bin/env python3
"""Runs the cases of ./try and ./lab break --fix with the unchanged chapters: all must pass, or no student could pass them.

  cases_test.py FOLDER     the folder of the chapters' programs (build/virtual/bin)
"""
import pathlib
import subprocess
import sys
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from course import planted, tasks  # noqa: E402

PROGRAMS = pathlib.Path()  # of the command line
LIMIT_S = 120


class CasesTest(unittest.TestCase):
    def test_chapters_pass_them(self) -> None:
        for chapter in tasks.chapters_with_tasks():
            errors = planted.errors_of(chapter.name).values()
            cases = planted.runs(chapter.name) + [error.mutant.arguments for error in errors if not error.mutant.test]
            for arguments in cases:
                with self.subTest(chapter=chapter.name, arguments=" ".join(arguments)):
                    run = subprocess.run([str(PROGRAMS / chapter.name), *arguments], capture_output=True, text=True, timeout=LIMIT_S,
                                         check=False)
                    self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit("usage: cases_test.py FOLDER")
    PROGRAMS = pathlib.Path(sys.argv.pop(1))
    unittest.main()
