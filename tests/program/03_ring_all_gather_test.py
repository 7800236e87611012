#!/usr/bin/env python3
"""Tests of the program 03_ring_all_gather. What all chapters with ranks share is tested with chapter 02's."""
import re

import program_test_case
from program_test_case import REFUSED_BY_ALL, SMALL, ProgramTestCase


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assert_lists(["ring", "split_only", "communication_only"], "--type")

    def test_bad_options(self) -> None:
        self.assert_refused({**REFUSED_BY_ALL, ("--only", "nccl"): "--only: 'nccl'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types("elements are right: ring, split_only\n")

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found({"ring": "ring", "split_only": "split_only"})

    def test_more_ranks_than_gpus(self) -> None:
        machine = self.machine(gpus=2)
        shared = ("--machine", machine, "--gpus", "3", *SMALL)
        result = self.assert_fails(77, (*shared, "--only", "ring,communication_only"),
                                   "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")
        self.assertEqual(len(result.stderr.splitlines()), 1)
        text = self.call_right(*shared).stdout  # products need no NCCL
        self.assertRegex(text, r"(?m)^ring is left out: NCCL wants a GPU for each rank")
        self.assertIn("elements are right: split_only\n", text)

    def test_json(self) -> None:
        self.need_gpus(2)
        report = self.report(*SMALL, "--gpus", "2")
        self.assertEqual(report["options"]["gpus"], 2)
        results = {result["variant"]: result for result in report["results"]}
        self.assertEqual(list(results), ["gemm_only", "ring", "split_only", "communication_only"])
        self.assertGreater(results["ring"]["device_ms"], results["gemm_only"]["device_ms"])
        self.assertGreater(results["communication_only"]["bus_gb_per_s"], 0)

    def test_what_is_exposed_follows_from_the_table(self) -> None:
        text = self.call_right(*SMALL, "--gpus", "2").stdout
        us = {name: float(value) for name, value in re.findall(r"(?m)^ *(\w+) +(-?[\d.]+) ", text)}
        found = re.search(r"exposed: (-?[\d.]+) us by splitting the product, (-?[\d.]+) us by the transfers; "
                          r"(-?\d+) % of the communication is hidden", text)
        self.assertIsNotNone(found, text)
        splitting, transfers, hidden = map(float, found.groups())
        self.assertAlmostEqual(splitting, us["split_only"] - us["gemm_only"], delta=0.11)
        self.assertAlmostEqual(transfers, us["ring"] - us["split_only"], delta=0.11)
        self.assertAlmostEqual(hidden, 100 * (1 - transfers / us["communication_only"]), delta=2)
        self.assertNotIn("exposed:", self.call_right(*SMALL, "--gpus", "1").stdout)


if __name__ == "__main__":
    program_test_case.main()
