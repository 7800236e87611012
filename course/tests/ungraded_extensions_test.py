#!/usr/bin/env python3
"""Builds and runs the worked solution of a chapter's extend task if ./lab grade does not cover the chapter. The solution passes
the chapter's own tests and the extension's (chapters/NN_name/assignment/extension_test.cu), also with the race detector; the
chapter's header fails the extension's, and a solution without its essential lines is reported.

  ungraded_extensions_test.py NN_name
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Dict, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tools" / "lab"), str(REPOSITORY)]
import build as builds  # noqa: E402
import process  # noqa: E402
from course import tasks, work  # noqa: E402

CHAPTER = ""  # of the command line
LIMIT_S = 600

# The essential lines of a worked solution, their replacement, and the expected message.
RACE = "data race"
WRONG: Dict[str, Tuple[str, str, str]] = {
    # The first block signals.
    "last_block": (r"blocks == arrivals\.call \* gridDim\.x", "blocks == (arrivals.call - 1) * gridDim.x + 1", RACE),
    "late_rank": (r"^.*__syncthreads\(\);  // what has been awaited.*\n", "", RACE),
    "no_own_slot": (r"source < owner \? source : source - 1", "source % 2", RACE),
    "one_gathered": (r"^.*arrived_\.await\(begun_signal\(receiver\), transfer\(\)\);\n", "", RACE),
    "panels": (r"^.*cudaStreamWaitEvent\(gpu\.streams\[0\], gpu\.read_b\).*\n", "", RACE),
    "ping_pong": (r"^.*await_phase\(&turn\[group\].*\n", "", RACE),
    # Sends the shard that is just arriving.
    "ring_of_nodes": (r"leaves = nodes_\.at\(1 - step, 0\)", "leaves = nodes_.at(step == 1 ? 0 : -step, 0)",
                      "ncclGroupEnd(): invalid usage"),
    "shard_by_shard": (r"^.*cudaStreamWaitEvent\(transfers_, multiplied_.*\n", "", RACE),
}
# The chapter's tests of its cost, if the extension's cost differs.
OTHER_COST = {"01_column_split": "ColumnSplitCost.IsThePagesCostCard",
              "07_mlp_block": "MlpCost.CountsUnevenTokens:MlpCost.IsThePagesCostCard",
              "17_gemm_on_signals": "CostOf.*", "19_fused_reduce_scatter": "CostOf.*"}


class UngradedExtensionsTest(unittest.TestCase):
    def setUp(self) -> None:
        chapter = REPOSITORY / "chapters" / CHAPTER
        self.assertFalse((chapter / "assignment" / "grade.json").exists(), "extensions_test.py is for chapters that are graded")
        (self.task,) = [task for task in tasks.read_tasks(chapter).values() if task.kind == "extend"]
        self.own = (chapter / self.task.file).read_text(encoding="utf-8")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name, CHAPTER)
        self.folder.mkdir()
        self.plain = builds.set_up("run", "virtual", False)

    def test_a_solution_is_right(self) -> None:
        others = f"--gtest_filter=-{OTHER_COST[CHAPTER]}" if CHAPTER in OTHER_COST else "--gtest_filter=*"
        self.assertEqual(self.run_with(self.task.code, self.plain, "test", others), (0, ""))
        self.assertEqual(self.run_with(self.task.code, self.plain, "extension"), (0, ""))

    def test_the_chapters_header_does_not_do(self) -> None:
        status, said = self.run_with(self.own, self.plain, "extension")
        self.assertNotEqual(status, 0)
        self.assertRegex(said, r"FAILED TEST|building .* failed")

    def test_races(self) -> None:
        race = self.plain.race()
        small = "--gtest_filter=*.Small*"  # a missing order is reported in any schedule
        try:
            race.need_gpus()
        except builds.Skip as skip:
            self.skipTest(str(skip))
        self.assertEqual(self.run_with(self.task.code, race, "extension", small), (0, ""))
        right, wrong, expected = WRONG[self.task.name]
        broken, count = re.subn(right, wrong, self.task.code, flags=re.MULTILINE)
        self.assertEqual(count, 1)
        status, said = self.run_with(broken, race, "extension", small)
        self.assertNotEqual(status, 0)
        self.assertIn(expected, said)

    def run_with(self, header: str, build: builds.Build, what: str, *arguments: str) -> Tuple[int, str]:
        """The exit status of the chapter's test or its extension's with this header, and the output if it fails."""
        (self.folder / self.task.file).write_text(header, encoding="utf-8")
        try:
            build.build(f"work_{CHAPTER}_{what}", "-DBUILD_TESTING=ON", f"-DOVERLAP_WORK={work.cmake_path(self.folder)}")
        except process.Refusal as refusal:
            return 1, str(refusal)
        run = subprocess.run([*build.command(f"work/{CHAPTER}_{what}"), *arguments], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT_S, check=False)
        return run.returncode, "" if run.returncode == 0 else run.stdout


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (REPOSITORY / "chapters" / sys.argv[1] / "assignment" / "extension_test.cu").is_file():
        sys.exit("usage: ungraded_extensions_test.py NN_name")
    CHAPTER = sys.argv.pop(1)
    unittest.main()
