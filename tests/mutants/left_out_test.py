#!/usr/bin/env python3
"""Tests of left_out.py, with a program that lists its calls and notices losses as one on virtual GPUs does."""
import contextlib
import io
import pathlib
import sys
import textwrap
import unittest
from typing import List, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import left_out  # noqa: E402
from left_out import Listed  # noqa: E402
from tests.programs.support import FolderTest  # noqa: E402

SOURCE = "record();\nwait();\nsynchronize();  // the end\nsend_and_receive();\n"
PROGRAM = """
    import os, sys
    root = os.environ["ROOT"]
    ring = os.path.join(root, "chapters/01_ring/ring.cuh")
    signals = os.path.join(root, "common/./overlap/gpu/signals.cpp")
    calls = [("cudaEventRecord", ring + ":1"), ("cudaStreamWaitEvent", ring + ":2"), ("cudaStreamSynchronize", ring + ":3"),
             ("cuStreamWriteValue32", signals + ":8", ring + ":4"), ("cuStreamWaitValue32", signals + ":9", ring + ":4")]
    if "VGPU_SYNC_SITES" in os.environ:
        with open(os.environ["VGPU_SYNC_SITES"], "w") as file:
            for call in calls:
                print(*call, os.path.join(root, "chapters/01_ring/main.cu:7"), sep="\\t", file=file)
    dropped = os.environ.get("VGPU_DROP")
    if dropped == "chapters/01_ring/ring.cuh:1":
        print("a deadlock")
        sys.exit(3)
    if dropped == "chapters/01_ring/ring.cuh:2" and sys.argv[-1] == "2":  # the schedule of the seed 2
        print("a data race")
        sys.exit(3)
    sys.exit(int(os.environ.get("STATUS", "0")))
"""


class LeftOutTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("chapters/01_ring/ring.cuh", SOURCE)
        self.program = self.write("program.py", f"#!{sys.executable}\n" + textwrap.dedent(PROGRAM))
        self.program.chmod(0o755)
        self.output = io.StringIO()

    def wrong(self, listed: Sequence[Listed], status: int = 0) -> List[str]:
        start = self.script("start", f'ROOT={self.folder} STATUS={status} exec "$@"')
        chapter = left_out.Chapter("01_ring", str(start), str(self.program), "", "2,3", [], self.folder)
        with contextlib.redirect_stdout(self.output):
            return left_out.judge(chapter, listed)

    def test_the_helpers_are_where_it_says(self) -> None:
        for file in left_out.WAITS:
            self.assertTrue((left_out.REPOSITORY / file).is_file(), file)

    def test_each_loss_is_noticed_or_listed(self) -> None:
        self.assertEqual(self.wrong([Listed("ring.cuh", "synchronize();", "the program has ended")]), [])
        self.assertIn("01_ring: 2 of 3 noticed (deadlock: 1, not noticed: 1, race: 1)", self.output.getvalue())
        self.assertIn("the program has ended", self.output.getvalue())
        self.assertEqual(self.wrong([Listed("ring.cuh", "synchronize();  // the end", "with its comment")]), [])

    def test_what_is_not_noticed_must_be_listed(self) -> None:
        self.assertEqual(self.wrong([]),
                         ["chapters/01_ring/ring.cuh:3: 'synchronize();  // the end' can be left out, and no run notices it"])

    def test_what_is_listed_must_be_a_site_that_is_not_noticed(self) -> None:
        listed = [Listed("ring.cuh", call, "-") for call in ("synchronize();", "wait();", "fence();")]
        self.assertEqual(self.wrong(listed), ["chapters/01_ring/ring.cuh:2: 'wait();' is listed, but its loss is noticed: race",
                                              "left_out.txt: 'fence();' of ring.cuh is no site"])

    def test_the_unchanged_program_must_be_right(self) -> None:
        with self.assertRaisesRegex(left_out.LeftOutError, "the unchanged program fails: wrong result"):
            self.wrong([], status=1)

    def test_a_site_is_one_call_alone(self) -> None:
        one, two = "chapters/01_ring/one.cuh", "chapters/01_ring/two.cuh"
        stacks = {("cudaStreamWaitEvent", f"{one}:5", f"{one}:9", f"{two}:3"),
                  ("cudaStreamWaitEvent", f"{one}:5", f"{one}:9", f"{two}:4"),
                  ("cudaEventRecord", f"{one}:6", f"{two}:4"),
                  ("cudaStreamSynchronize", "common/overlap/gpu/gemm.hpp:7", f"{one}:8"),  # the helper's own
                  ("cuda::atomic_ref", "common/overlap/gpu/kernel_signals.hpp:2", f"{one}:7"),
                  ("cuda::atomic_ref", "common/overlap/gpu/kernel_signals.hpp:2", f"{two}:8")}
        self.assertEqual(list(left_out.sites(stacks, "01_ring")),
                         [f"{one}:5", f"{one}:6", f"{one}:7", f"{two}:3", f"{two}:8",
                          "common/overlap/gpu/kernel_signals.hpp:2"])

    def test_a_list_that_cannot_be_read(self) -> None:
        file = self.folder / "left_out.txt"
        self.assertEqual(left_out.read_list(file), [])
        file.write_text("file: a.cuh\nline: b();\nwhy: c\n\nfile: a.cuh\nline: d();\nwhy: e\n")
        self.assertEqual(left_out.read_list(file), [Listed("a.cuh", "b();", "c"), Listed("a.cuh", "d();", "e")])
        file.write_text("file: a.cuh\nline: b();\n")
        with self.assertRaisesRegex(left_out.LeftOutError, "is not three lines"):
            left_out.read_list(file)


if __name__ == "__main__":
    unittest.main()
