#!/usr/bin/env python3
"""Builds, runs and grades the worked solutions of a chapter's extend tasks like a student's: a solution gets all points, the
chapter's own header does not, and a solution without its essential lines races or is wrong (needs target `teaching` of the
three builds).

  extensions_test.py NN_name
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Dict, List, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from course import handout, tasks, variation, work  # noqa: E402

CHAPTER = ""  # of the command line
LIMIT_S = 600

# The essential lines of a worked solution, and their replacement: ./try must then report a race or wrong results.
WRONG: Dict[str, Tuple[str, str]] = {
    "a_table_of_bits": (r"^.*return;  // another thread's\n", ""),
    "back_pressure": (r"^.*cudaStreamWaitEvent\(transfers_, multiplied_.*\n", ""),
    "half_the_slots": (r"^.*free_\.await\(0, transfer\(\)\);\n", ""),
    "halvings": ("length -= length / 2", "length /= 2"),
    "merge": (r"end = min\(first \+ share, items\)", "end = items"),
    "no_positions": (r"__syncthreads_count\(source >= 0\)", "source >= 0"),
    "one_message": (r"\(data \+ static_cast<std::size_t>\(count\)", "(data + static_cast<std::size_t>(count - 1)"),
    "one_row_for_32": (r"^.*__syncwarp\(\);.*\n", ""),
    "one_selection": ("mark_also<<<", "mark_equal<<<"),
    "two_panels": (r"^.*cudaStreamWaitEvent\(transfers_, multiplied_.*\n", ""),
    "two_partials": (r"if .*cudaStreamWaitEvent\(compute, read_.*;", "static_cast<void>(compute);"),
    "two_slots": (r"\(step - 1\) % 2 \*", "0 *"),
    "values_in_place": (r"graph_\.launch\(stream\)", "graph_.launch(frame_.rank.second_stream())"),
}
WRONG_RESULT = {
    "halvings",
    "one_message",
    "one_selection",
}


class ExtensionsTest(unittest.TestCase):
    def test_each_is_right(self) -> None:
        found = [task for task in tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER).values() if task.kind == "extend"]
        self.assertTrue(found)
        own = variation.ways(CHAPTER)[0]
        for task in found:
            with self.subTest(task.name), tempfile.TemporaryDirectory() as scratch:
                folder = handout.start(CHAPTER, "", "", scratch)
                for name in handout.headers(CHAPTER, tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER), own):
                    (folder / name).write_text(handout.solved(CHAPTER, name, own), encoding="utf-8")
                (folder / task.file).write_text(task.code, encoding="utf-8")
                self.assertEqual(self.run_try(folder), (0, ""))
                text, wrong = WRONG[task.name]
                broken, count = re.subn(text, wrong, task.code, flags=re.MULTILINE)
                self.assertEqual(count, 1)
                (folder / task.file).write_text(broken, encoding="utf-8")
                status, said = self.run_try(folder)
                self.assertEqual(status, 1)
                self.assertIn("WRONG" if task.name in WRONG_RESULT else "data race", said)

    def test_graded(self) -> None:
        for task in tasks.read_tasks(REPOSITORY / "chapters" / CHAPTER).values():
            if task.kind != "extend":
                continue
            with self.subTest(task.name):
                self.assertEqual(self.lost(task.name), [])
                lost = self.lost(task.name, str(REPOSITORY / "chapters" / CHAPTER / task.file))
                self.assertEqual([name for name in lost if name != "lesson"], ["cost"], "it may take longer, too")

    def lost(self, extension: str, *file: str) -> List[str]:
        """The criteria for which a file, or the extension's worked solution, loses points."""
        command = [sys.executable, "-I", str(REPOSITORY / "course" / "grade"), CHAPTER, *file, "--extension", extension,
                   "--json", "--seconds", "300"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        (grade,) = json.loads(run.stdout).values()
        self.assertEqual(grade["points_judged"], 100)
        return [mark["criterion"] for mark in grade["marks"] if mark["points"] != mark["most"]]

    def run_try(self, folder: pathlib.Path) -> Tuple[int, str]:
        """The exit status of ./try, and the whole report if anything is wrong."""
        run = subprocess.run([str(folder / "try")], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                             env={**os.environ, "OVERLAP_REPOSITORY": str(REPOSITORY)})
        return run.returncode, "" if run.returncode == 0 else run.stdout + run.stderr


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (work.REPOSITORY / "chapters" / sys.argv[1] / "main.cu").is_file():
        sys.exit("usage: extensions_test.py NN_name")
    CHAPTER = sys.argv.pop(1)
    unittest.main()
