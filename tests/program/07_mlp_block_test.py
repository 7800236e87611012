#!/usr/bin/env python3
"""Tests of the program 07_mlp_block: its command line, its exit statuses and what it writes."""
import json

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--m", "33", "--n", "37", "--k", "19", "--iterations", "1")
VARIANTS = ["vanilla", "sequence_parallel", "overlapped"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        result = self.call("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("m tokens, feed-forward size n, hidden size k", result.stdout)
        result = self.call("--list")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.split(), VARIANTS)

    def test_bad_options(self) -> None:
        self.assert_refused({("--type", "int32"): "--type: 'int32'.*f16",
                             ("--gpus", "17"): "--gpus: 17 is not between 1 and 16",
                             ("--n", "0"): "--n: 0 is not between",
                             ("--only", "ring"): "--only: 'ring'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        tiny = ("--m", "5", "--n", "3", "--k", "2", "--iterations", "1")  # ranks without tokens, and without columns
        for arguments in (("--gpus", "1", *SMALL), ("--gpus", "2", "--type", "f32", *SMALL),
                          ("--gpus", "3", "--type", "bf16", *SMALL), ("--gpus", "4", *tiny), ("--gpus", "8", *tiny)):
            with self.subTest(arguments):
                output = self.call_right(*arguments).stdout
                self.assertIn("elements are right: " + ", ".join(VARIANTS), output)
        self.assertIn("all 10 elements are right", output, "5 tokens of hidden size 2")

    def test_wrong_result(self) -> None:
        for variant in VARIANTS:
            with self.subTest(variant):
                arguments = ("--corrupt", "--gpus", "2", "--only", variant, "--json", "x.json", *SMALL)
                self.assert_fails(1, arguments, rf"wrong result.*{variant}.*row.*column")

    def test_ranks_that_share_gpus_leave_nccl_out(self) -> None:
        machine = self.machine(gpus=2)
        result = self.call_right("--machine", machine, "--gpus", "5", *SMALL)
        self.assertIn("vanilla is left out", result.stdout)
        self.assertIn("sequence_parallel is left out", result.stdout)
        self.assertIn("elements are right: overlapped\n", result.stdout)
        self.assert_fails(77, ("--machine", machine, "--gpus", "5", "--only", "vanilla", *SMALL), "skipped")

    def test_json(self) -> None:
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["gpus"]), ("07_mlp_block", 2))
        self.assertEqual([result["variant"] for result in report["results"]], ["gemm_only", *VARIANTS])
        for result in report["results"][1:]:
            self.assertEqual(result["role"], "algorithm")
            self.assertGreater(result["ratio_to_gemm_only"], 1)


if __name__ == "__main__":
    program_test_case.main()
