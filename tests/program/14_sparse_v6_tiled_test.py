#!/usr/bin/env python3
"""Tests of the program 14_sparse_v6_tiled. What all sparse chapters share is tested with chapters 08 and 09."""
import json
import re

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--rows", "2000", "--features", "3", "--entries", "150", "--duplicates", "5", "--iterations", "1", "--warmup", "0")
VERSIONS = ["v5_kernel", "v6_ordered", "v6_prefetch", "v6_all_rows", "v6_skip"]
ROWS_PER_BLOCK = [1, 2, 4, 8, 16, 32, 64, 128]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assertIn("--entries", self.call("--help").stdout)
        self.assertEqual(self.call("--list").stdout.split(), VERSIONS + ["sweep"])

    def test_bad_options(self) -> None:
        self.assert_refused({("--m", "3"): "--m",
                             ("--only", "v4_broadcast_eq"): "--only: 'v4_broadcast_eq'",
                             ("--gpus", "17"): "--gpus: 17 is not between 1 and 16"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        for arguments in [("--gpus", gpus, *SMALL) for gpus in "12348"] + \
                [("--gpus", "3", *SMALL, "--type", kind, "--index", "int64") for kind in ("bf16", "f16")] + \
                [("--gpus", "3", *SMALL, "--pattern", pattern) for pattern in ("zipf", "identical", "disjoint")] + \
                [("--gpus", "3", "--rows", "20", "--features", "3", "--entries", "0", "--duplicates", "0", "--iterations", "1")]:
            with self.subTest(arguments):
                self.assertIn(f"are right: {', '.join(VERSIONS)}\n", self.call_right(*arguments).stdout)

    def test_wrong_result(self) -> None:
        for variant in VERSIONS:
            self.assert_fails(1, ("--corrupt", *SMALL, "--only", variant, "--json", "new.json"),
                              rf"wrong result.*{variant}")

    def test_more_ranks_than_gpus(self) -> None:
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *SMALL)
        self.assert_fails(77, (*shared, "--only", "v6_ordered"),
                          "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")
        self.assertRegex(self.call_right(*shared, "--only", "sweep").stdout, r"(?m)^ *64 +\d")  # needs no NCCL

    def test_json_and_sweep(self) -> None:
        text = self.call_right(*SMALL, "--gpus", "2", "--json", "report.json").stdout
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual(report["chapter"], "14_sparse_v6_tiled")
        versions = [result for result in report["results"] if result.get("role") == "algorithm"]
        self.assertEqual([result["variant"] for result in versions], VERSIONS)
        for result in versions:
            self.assertGreater(result["map_ms"], 0)
        sweep = [result for result in report["results"] if result.get("section") == "sweep"]
        self.assertEqual([result["rows_per_block"] for result in sweep], ROWS_PER_BLOCK)
        for result in sweep:
            self.assertEqual(result["blocks"], -(-150 // result["rows_per_block"]))
            line = re.search(rf"(?m)^ *{result['rows_per_block']} +{result['blocks']} +([\d.]+(?: +[\d.]+)*) x$", text)
            self.assertIsNotNone(line, text)
            searches = [result[name] for name in ("ordered_ms", "prefetch_ms", "all_rows_ms", "all_rows_prefetch_ms", "skip_ms")]
            self.assertAlmostEqual(result["v5_by_ordered"], result["v5_ms"] / result["ordered_ms"])
            for cell, value in zip(line.group(1).split(), [*(1e3 * ms for ms in searches), result["v5_by_ordered"]]):
                self.assertAlmostEqual(float(cell), value, delta=0.051)
            if self.backend == "virtual":  # where equal work takes equal time
                self.assertEqual(len(set(searches)), len(searches), "each is another search")
        self.assertNotIn("rows per block", self.call_right(*SMALL, "--only", "v6_ordered").stdout)


if __name__ == "__main__":
    program_test_case.main()
