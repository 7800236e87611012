#!/usr/bin/env python3
"""Tests of the program 07_mlp_block: its command line, its exit statuses and what it writes."""
import program_test_case
from program_test_case import REFUSED_BY_ALL, SMALL, TINY, ProgramTestCase

VARIANTS = ["vanilla", "sequence_parallel", "overlapped"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assert_lists(VARIANTS, "m tokens, feed-forward size n, hidden size k")

    def test_bad_options(self) -> None:
        self.assert_refused({**REFUSED_BY_ALL,
                             ("--n", "0"): "--n: 0 is not between",
                             ("--only", "ring"): "--only: 'ring'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types("elements are right: " + ", ".join(VARIANTS))
        output = self.call_right("--gpus", "8", *TINY).stdout
        self.assertIn("all 10 elements are right", output, "5 tokens of hidden size 2")

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found({name: name for name in VARIANTS})

    def test_ranks_that_share_gpus_leave_nccl_out(self) -> None:
        machine = self.machine(gpus=2)
        result = self.call_right("--machine", machine, "--gpus", "5", *SMALL)
        self.assertIn("vanilla is left out", result.stdout)
        self.assertIn("sequence_parallel is left out", result.stdout)
        self.assertIn("elements are right: overlapped\n", result.stdout)
        self.assert_fails(77, ("--machine", machine, "--gpus", "5", "--only", "vanilla", *SMALL), "skipped")

    def test_json(self) -> None:
        self.need_gpus(2)
        report = self.report(*SMALL, "--gpus", "2")
        self.assertEqual(report["options"]["gpus"], 2)
        self.assertEqual([result["variant"] for result in report["results"]], ["gemm_only", *VARIANTS])
        for result in report["results"][1:]:
            self.assertEqual(result["role"], "algorithm")
            self.assertGreater(result["ratio_to_gemm_only"], 1)


if __name__ == "__main__":
    program_test_case.main()
