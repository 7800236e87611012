#!/usr/bin/env python3
"""Tests of the program 06_reduce_scatter: its command line, its exit statuses and what it writes."""
import program_test_case
from program_test_case import REFUSED_BY_ALL, SMALL, ProgramTestCase

ALGORITHMS = ["nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all"]
PARTS = ["split_only", "communication_only"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assert_lists(ALGORITHMS + PARTS, "X by columns, W by rows")

    def test_bad_options(self) -> None:
        self.assert_refused({**REFUSED_BY_ALL,
                             ("--k", "0"): "--k: 0 is not between",
                             ("--only", "ring"): "--only: 'ring'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types("elements are right: " + ", ".join(ALGORITHMS))

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found({name: name for name in ALGORITHMS})

    def test_ranks_that_share_gpus_leave_nccl_out(self) -> None:
        machine = self.machine(gpus=2)
        result = self.call_right("--machine", machine, "--gpus", "5", *SMALL)
        self.assertIn("nccl is left out", result.stdout)
        self.assertIn("elements are right: rotating,", result.stdout)
        self.assert_fails(77, ("--machine", machine, "--gpus", "5", "--only", "nccl", *SMALL), "skipped")

    def test_json_has_times_and_errors(self) -> None:
        self.need_gpus(2)
        results = self.report(*SMALL, "--gpus", "2")["results"]
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
        self.assert_same_seed_same_schedule("5")


if __name__ == "__main__":
    program_test_case.main()
