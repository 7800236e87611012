#!/usr/bin/env python3
"""Tests of the program 13_sparse_v5_kernel."""
import json

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--rows", "97", "--features", "5", "--entries", "23", "--duplicates", "4", "--iterations", "1", "--warmup", "0")
VARIANTS = ("dense_nccl", "v4_broadcast_eq", "v5_kernel")


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assertIn("--entries", self.call("--help").stdout)
        self.assertEqual(tuple(self.call("--list").stdout.split()), VARIANTS)

    def test_bad_options(self) -> None:
        self.assert_refused({("--type", "int32"): "--type: 'int32' is not a type of this chapter",
                             ("--only", "v9"): "--only: 'v9'",
                             ("--pattern", "random"): "--pattern: 'random'"})


class RunTest(ProgramTestCase):
    def test_sizes_types_and_patterns(self) -> None:
        tiny = ("--rows", "1", "--features", "1", "--entries", "1", "--iterations", "1", "--warmup", "0")
        for arguments in [("--gpus", gpus, *SMALL) for gpus in "12348"] + [("--gpus", "8", *tiny)] + \
                [("--gpus", "3", "--type", kind, "--index", "int64", *SMALL) for kind in ("f16", "bf16", "f32")] + \
                [("--gpus", "3", "--pattern", pattern, *SMALL) for pattern in ("zipf", "identical", "disjoint")]:
            with self.subTest(arguments):
                self.assertRegex(self.call_right(*arguments).stdout,
                                 r"all \d+ rows of \d+ elements are right: " + ", ".join(VARIANTS) + "\n")

    def test_wrong_result(self) -> None:
        for variant in VARIANTS:
            self.assert_fails(1, ("--corrupt", *SMALL, "--gpus", "2", "--only", variant, "--json", "new.json"),
                              rf"wrong result.*{variant}")

    def test_more_ranks_than_gpus(self) -> None:
        machine = self.machine(gpus=2)
        self.assert_fails(77, ("--machine", machine, "--gpus", "3", *SMALL),
                          "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")

    def test_json(self) -> None:
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["gpus"]), ("13_sparse_v5_kernel", 2))
        self.assertEqual(tuple(result["variant"] for result in report["results"]), VARIANTS)


if __name__ == "__main__":
    program_test_case.main()
