#!/usr/bin/env python3
"""Tests of the program 06_reduce_scatter: its command line, its exit statuses and what it writes."""
import json
import re

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--m", "33", "--n", "37", "--k", "19", "--iterations", "1")
ALGORITHMS = ["nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all"]
PARTS = ["split_only", "communication_only"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        result = self.call("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("X by columns, W by rows", result.stdout)
        result = self.call("--list")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.split(), ALGORITHMS + PARTS)

    def test_bad_options(self) -> None:
        self.assert_refused({("--type", "int32"): "--type: 'int32'.*f16",
                             ("--gpus", "17"): "--gpus: 17 is not between 1 and 16",
                             ("--k", "0"): "--k: 0 is not between",
                             ("--only", "ring"): "--only: 'ring'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        tiny = ("--m", "5", "--n", "3", "--k", "2", "--iterations", "1")  # ranks without rows, ranks without columns
        for arguments in (("--gpus", "1", *SMALL), ("--gpus", "2", "--type", "f32", *SMALL),
                          ("--gpus", "3", "--type", "bf16", *SMALL), ("--gpus", "4", *tiny), ("--gpus", "8", *tiny)):
            with self.subTest(arguments):
                self.assertIn("elements are right: " + ", ".join(ALGORITHMS), self.call_right(*arguments).stdout)

    def test_wrong_result(self) -> None:
        for variant in ALGORITHMS:
            with self.subTest(variant):
                arguments = ("--corrupt", "--gpus", "2", "--only", variant, "--json", "x.json", *SMALL)
                self.assert_fails(1, arguments, rf"wrong result.*{variant}.*row.*column")

    def test_ranks_that_share_gpus_leave_nccl_out(self) -> None:
        machine = self.machine(gpus=2)
        result = self.call_right("--machine", machine, "--gpus", "5", *SMALL)
        self.assertIn("nccl is left out", result.stdout)
        self.assertIn("elements are right: rotating,", result.stdout)
        self.assert_fails(77, ("--machine", machine, "--gpus", "5", "--only", "nccl", *SMALL), "skipped")

    def test_json_has_times_and_errors(self) -> None:
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        results = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))["results"]
        times = {result["variant"]: result for result in results if "device_ms" in result}
        self.assertEqual(list(times), ["gemm_only"] + ALGORITHMS + PARTS)
        self.assertTrue(all(result["device_ms"] > 0 for result in times.values()))
        errors = {result["variant"]: result for result in results if result.get("section") == "error"}
        self.assertEqual(list(errors), ALGORITHMS)
        for name, error in errors.items():
            with self.subTest(name):
                self.assertLess(0, error["rms_error"])
                self.assertLess(error["rms_error"], error["largest_error"])
                self.assertLess(error["largest_error"], error["bound"])
        self.assertLess(errors["rotating_f32"]["bound"], errors["all_to_all"]["bound"])

    def test_schedules(self) -> None:
        if self.backend != "virtual":
            self.skipTest("schedules are for virtual GPUs")
        first, second = (self.call_right("--gpus", "3", "--schedule", "5", *SMALL).stdout for _ in range(2))
        self.assertRegex(first, "schedule 5, hash [0-9a-f]+")
        self.assertEqual(re.findall("hash [0-9a-f]+", first), re.findall("hash [0-9a-f]+", second))


if __name__ == "__main__":
    program_test_case.main()
