#!/usr/bin/env python3
"""Tests of the check build: each planted error is reported with its lines; correct programs give no report.
    check_test.py planted PROGRAM                        its planted errors and its fixed programs
    check_test.py chapter PROGRAM GPUS [OPTIONS...]      a chapter on each number in GPUS (1,2,3), with race_test.py's sizes"""
import pathlib
import re
import subprocess
import sys
import unittest
from typing import List

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "race"))
import race_test  # noqa: E402

LIMIT_S = 200  # of a program run
SCHEDULES = ["time", "1"]
FEW_WORDS = "a cudaMalloc of 1024 bytes on GPU 0, made at "
PINNED = "pinned host memory of 1024 bytes, made at "
# What a report says besides the lines: the accessing kernel and thread, or the host; the size; the place.
SAYS = {
    "one_past": ("store', block (4,0,0), thread (0,0,0) writes 4 bytes at ", ": 0 bytes behind " + FEW_WORDS),
    "odd_size": ("thread (2,0,0) writes 4 bytes at ", ": 0 bytes behind a cudaMalloc of 10 bytes"),
    "pinned_by_kernel": ("store', block ", "writes 4 bytes at ", ": 0 bytes behind " + PINNED),
    "pinned_by_host": ("the host writes 4 bytes at ", ": 0 bytes behind " + PINNED),
    "before": ("take_neighbours', block ", "thread (0,0,0) reads 4 bytes at ", ": 4 bytes before " + FEW_WORDS),
    "wrapped": ("take_unsigned', block ", "reads 4 bytes at ", f": {2**34 - 4 - 1024} bytes behind " + FEW_WORDS),
    "far_behind": ("thread (3,0,0) writes 4 bytes at ", ": 10000 bytes behind " + FEW_WORDS),
    "structure": ("thread (19,0,0) reads 20 bytes at ", ": 0 bytes behind a cudaMalloc of 380 bytes"),
    "atomic": ("count_up', block ", ": 0 bytes behind " + FEW_WORDS),
    "copied": ("copy_bytes', block ", "writes 516 bytes at ", ": 0 bytes behind " + FEW_WORDS),
    "cleared": ("set_bytes', block ", "writes 1027 bytes at ", ": 0 bytes behind " + FEW_WORDS),
    "copied_later": ("an operation that was issued at ", " reads 4 bytes: 0 bytes behind " + FEW_WORDS),
    "in_function": ("through_function', block ", "reads 4 bytes at ", ": 0 bytes behind " + FEW_WORDS),
    "freed": ("read_word', block ", "reads 4 bytes at ", ": inside freed memory, " + FEW_WORDS, ", freed at "),
    "pinned_freed": ("the host writes 4 bytes at ", ": inside freed memory, " + PINNED, ", freed at "),
    "shared_index": ("reverse', block ", "thread (0,0,0) uses the index 32 of 'cells', an array that is an 'int [32]' at "),
    "shared_pointer": ("by_pointer', block ", "writes 4 bytes at ",
                       ": 0 bytes behind the shared variable 'cells' of 128 bytes"),
    "shared_row": ("stencil', block (0,0,0), thread (7,0,0) uses the index 9 of 'tile[y]', an array that is an 'float [9]' at ",),
    "dynamic_too_small": ("thread (32,0,0) writes 4 bytes at ", ": 0 bytes behind the dynamic shared memory of 128 bytes"),
    "dynamic_missing": ("fill_dynamic', block (0,0,0), ", "writes 4 bytes at ",
                        " bytes behind the dynamic shared memory of 0 bytes"),
    "dynamic_before": ("thread (0,0,0) reads 4 bytes at ", ": 4 bytes before the dynamic shared memory of 32 bytes"),
    "local_index": ("histogram', block ", "uses the index 8 of 'bins', an array that is an 'int [8]' at "),
    "local_negative": ("backwards', block ", "uses the index -1 of 'last', an array that is an 'int [4]' at "),
    "local_member": ("add_lanes', block ", "uses the index 4 of 'of_lane', an array that is an 'int [4]' at "),
    "local_row": ("transpose', block ", "uses the index 3 of 'tile[words[5]]', an array that is an 'int [3]' at "),
    "misaligned": ("load_vector', block ", "'const struct float4' at ", ", whose address is no multiple of 16: inside " + FEW_WORDS),
    "misaligned_shared": ("store_pair', block ", "'struct int2' at ", ", whose address is no multiple of 8: byte 12 of the shared "
                          "variable 'cells' of block (0,0,0), declared at "),
    "host_reads": ("the host reads 4 bytes at ", ", which only GPUs can access: byte 28 of " + FEW_WORDS),
    "host_writes": ("the host writes 4 bytes at ", ", which only GPUs can access: byte 0 of " + FEW_WORDS),
    "host_copies": ("the host reads 1024 bytes at ", ", which only GPUs can access: byte 0 of " + FEW_WORDS),
    "callback": ("a function that a stream calls writes 4 bytes at ",
                 ", which only GPUs can access: byte 0 of " + FEW_WORDS),
    **{case: ("read_word', block ", "reads 4 bytes at ",
              ", which GPU 0 cannot access without cudaDeviceEnablePeerAccess(1, 0): "
              "byte 0 of a cudaMalloc of 1024 bytes on GPU 1, made at ")
       for case in ("peer_read", "peer_disabled", "peer_alone")},
    "division": ("divide', block ", "thread (0,0,0) divided an integer by zero at "),
    "remainder": ("wrap_around', block ", "divided an integer by zero at "),
    # planted_unwritten: kernel, size of the read, first byte that is not written
    **{case: (f"{kernel}', block ", f"reads {size} bytes at ", f" that nothing has written: byte {byte}")
       for kernel, size, byte, cases in (
           ("read_last", 4, "1020 of a cudaMalloc", ("never", "part", "over", "of_peer", "second_time", "summed")),
           ("read_last", 4, "2044 of a cudaMalloc", ("gathered",)),
           ("read_result", 4, "2044 of a cudaMalloc", ("scanned", "sorted", "selected")),
           ("read_result", 4, "1024 of a cudaMalloc", ("added",)),
           ("copy_in_kernel", 4, "524 of a cudaMalloc", ("in_kernel",)),
           ("copy_padded", 8, "", ("padding",)),
           ("count", 4, "0 of a cudaMalloc", ("add",)),
           ("read_corners", 4, "1020 of a cudaMalloc", ("multiplied",)),
           ("reverse", 4, "252 of the shared variable 'cells' of block (0,0,0)", ("shared",)),
           ("add_up", 4, "", ("dynamic",)),
           ("keep", 4, "0 of the shared variable 'kept' of block ", ("block_before",)),
           ("take_async", 4, "1020 of the shared variable 'slots' of block (0,0,0)", ("async",)),
           ("take_bulk", 4, "1020 of the shared variable 'tile' of block (0,0,0)", ("bulk",))) for case in cases},
    "managed": ("the host reads 4 bytes at ", " that nothing has written: byte 28 of managed memory of 1024 bytes, made at "),
    "by_host": ("the host reads 4 bytes at ", " that nothing has written: byte 28 of " + PINNED),
}


class CheckTest(unittest.TestCase):
    program: pathlib.Path
    arguments: List[str]

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(self.program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)

    def assert_quiet(self, result: "subprocess.CompletedProcess[str]") -> None:
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.returncode, 0, result.stdout)


class PlantedTest(CheckTest):
    def test_finds_each_with_its_lines(self) -> None:
        for case in self.call("--list").stdout.split():
            for schedule in SCHEDULES if case in SAYS else []:
                with self.subTest(case=case, schedule=schedule):
                    self.assert_quiet(self.call(case, "fixed", schedule))
                    self.assert_said(case, self.call(case, "bug", schedule))

    def test_finds_a_store_one_past_an_array_of_every_size(self) -> None:
        for case in set(self.call("--list").stdout.split()) - set(SAYS):
            for kind in ("bug", "fixed"):
                result = self.call(case, kind, "time")
                self.assert_quiet(result)
                self.assertIn("300 of 300 sizes\n", result.stdout)

    def assert_said(self, case: str, result: "subprocess.CompletedProcess[str]") -> None:
        """The report is one line, names all marked lines and contains the words in SAYS."""
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"\Avirtual GPUs: (kernel |the host |a function |an operation )[^\n]*\n\Z")
        source = HERE / f"{self.program.name}.cu"
        marked = race_test.marked_lines(source, case)
        self.assertTrue(marked, f"{source.name} has no mark @{case}")
        for line in marked:
            self.assertRegex(result.stderr, rf"\b{source.name}:{line}\b")
        self.assertRegex(result.stderr, ".*".join(map(re.escape, SAYS[case])))


class ChapterTest(CheckTest):
    def test_gives_no_report(self) -> None:
        gpus, *options = self.arguments
        sparse = "--rows" in self.call("--help").stdout
        small = race_test.ONCE if "--m" in options else race_test.SMALL_SPARSE if sparse else race_test.SMALL
        for count in gpus.split(","):
            with self.subTest(gpus=count):
                self.assert_quiet(self.call("--gpus", count, *small, *options))


TESTS = {"planted": PlantedTest, "chapter": ChapterTest}


def main() -> None:
    test, program, *arguments = sys.argv[1:]
    chosen = TESTS[test]
    chosen.program, chosen.arguments = pathlib.Path(program), arguments
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(chosen)
    result = unittest.TextTestRunner().run(suite)
    sys.exit(0 if result.testsRun > 0 and result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
