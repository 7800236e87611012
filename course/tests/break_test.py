#!/usr/bin/env python3
"""Builds and runs ./lab break 03: its output, its questions, and which cures it accepts and rejects."""
import json
import pathlib
import re
import shutil
import subprocess
import unittest
from typing import List, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
WORK = REPOSITORY / "work" / "planted"
PLANTED = WORK / "too_early"
HEADER = PLANTED / "03_ring_all_gather" / "ring_all_gather.cuh"
LIMIT_S = 800


class BreakTest(unittest.TestCase):
    kept = WORK.with_name("planted.kept_by_test")  # the reader's own files in this folder

    @classmethod
    def setUpClass(cls) -> None:
        if WORK.exists():
            WORK.rename(cls.kept)

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(WORK, ignore_errors=True)
        if cls.kept.exists():
            cls.kept.rename(WORK)

    def lab(self, *words: str) -> Tuple[int, str]:
        run = subprocess.run([str(REPOSITORY / "lab"), "break", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        return run.returncode, run.stdout

    def test_from_error_to_cure(self) -> None:
        status, text = self.lab("03")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"wrong result: rank \d: ring: \d+ of \d+ elements are wrong")
        places = re.findall(r"enqueued at ring_all_gather\.cuh:(\d+)", text)
        self.assertEqual(len(places), 2, text)
        lines = HEADER.read_text(encoding="utf-8").splitlines()
        calls = " ".join(lines[int(place) - 1] + lines[int(place)] for place in places)
        self.assertIn("ncclRecv", calls)
        self.assertIn("matmul_row_major", calls)
        picture = (PLANTED / "timelines.svg").read_text(encoding="utf-8")
        self.assertIn("as in the chapter", picture)
        self.assertIn("with the error", picture)
        begins = [self.products(PLANTED / f"{name}.json") for name in ("as_in_the_chapter", "with_the_error")]
        self.assertEqual(len(begins[0]), len(begins[1]))
        self.assertTrue(all(wrong <= right for right, wrong in zip(*begins)))
        self.assertLess(begins[1][-1], begins[0][-1])  # GEMMs begin before their shards have arrived
        self.assertRegex(text, "4. The question\n\nOne line of the ring")

        status, text = self.lab("03", "--fix")
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "is unchanged.*\n\n +\\d+  ")

        broken = HEADER.read_text(encoding="utf-8")
        self.mend(broken, "if (step > 1) await_shard(step, stream);")  # right except for the last timed call's operands
        status, text = self.lab("03", "--fix")
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "not right yet, with --gpus 3")

        # Whenever it runs, it writes the value that it read. But the GEMM writes there, too.
        self.mend(broken, "if (step > 0) await_shard(step, stream);\n"
                          "      else CUDA_CHECK(cudaMemcpyAsync(c, c, sizeof(T), cudaMemcpyDefault, transfers_));")
        status, text = self.lab("03", "--fix")
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "right: in all 5 runs\n(.*\n)?not free of races yet, with --gpus 3")

        self.mend(broken, "if (step > 0) await_shard(step, stream);")
        status, text = self.lab("03", "--fix")
        self.assertEqual(status, 0, text)
        self.assertIn("right: in all 5 runs\n", text)
        self.assertIn("free of races: in all 5 runs\n", text)
        self.assertIn("Corrected.", text)

    def test_check_in_place_of_the_race_report(self) -> None:
        status, text = self.lab("01", "next_row", "--check")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"\n2\. The report of ./lab check\n\n\$ \./lab check 01 ")
        line = re.search(r" at column_split\.cuh:(\d+): 0 bytes behind a cudaMalloc of ", text)
        assert line is not None, text
        self.assertRegex(text, rf"The lines that are named there:\n(.*\n)*column_split\.cuh:{line.group(1)}  \S")
        self.assertNotIn("The race report", text)

    @staticmethod
    def products(trace: pathlib.Path) -> List[float]:
        """When the ring's GEMMs begin on GPU 0."""
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        first = min(event["pid"] for event in events)
        return sorted(event["ts"] for event in events
                      if event["ph"] == "X" and event["pid"] == first and event["cat"] == "kernel")

    def mend(self, broken: str, line: str) -> None:
        """Replaces the missing line by `line`."""
        before = "      const int shard = shard_in_step("
        self.assertEqual(broken.count(before), 1)
        HEADER.write_text(broken.replace(before, f"      {line}\n{before}"), encoding="utf-8")

    def test_refusals(self) -> None:
        for words, sentence in ((("03", "nothing"), "lab: 03_ring_all_gather has no planted error 'nothing'; its errors are: "),
                                (("99",), "lab: there is no chapter '99'"), ((), "lab: the following arguments are required: NN")):
            status, text = self.lab(*words)
            self.assertEqual((status, len(text.splitlines())), (2, 1), text)
            self.assertIn(sentence, text)

    def test_list(self) -> None:
        status, text = self.lab("03", "--list")
        self.assertEqual((status, [line.split()[0] for line in text.splitlines()]), (0, ["too_early", "odd_sizes", "silence"]))


if __name__ == "__main__":
    unittest.main()
