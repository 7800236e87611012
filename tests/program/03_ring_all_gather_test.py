#!/usr/bin/env python3
"""Tests of the program 03_ring_all_gather. What all chapters with ranks share is tested with chapter 02's."""
import json
import re

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--m", "33", "--n", "37", "--k", "19", "--iterations", "1", "--warmup", "0")


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assertIn("--type", self.call("--help").stdout)
        self.assertEqual(self.call("--list").stdout.split(), ["ring", "split_only", "communication_only"])

    def test_bad_options(self) -> None:
        self.assert_refused({("--type", "int32"): "--type: 'int32' is not a type of this chapter",
                             ("--only", "nccl"): "--only: 'nccl'",
                             ("--gpus", "17"): "--gpus: 17 is not between 1 and 16"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        tiny = ("--m", "5", "--n", "3", "--k", "2")  # not even a row and a column for each rank
        for arguments in [("--gpus", gpus, *SMALL) for gpus in "12348"] + [("--gpus", "8", *tiny)] + \
                [("--gpus", "3", "--type", kind, *SMALL) for kind in ("bf16", "f32")]:
            with self.subTest(arguments):
                self.assertIn("elements are right: ring, split_only\n", self.call_right(*arguments).stdout)

    def test_wrong_result(self) -> None:
        for variant in ("ring", "split_only"):
            self.assert_fails(1, ("--corrupt", *SMALL, "--only", variant, "--json", "new.json"),
                              rf"wrong result.*{variant}.*row.*column")

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
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["gpus"]), ("03_ring_all_gather", 2))
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
