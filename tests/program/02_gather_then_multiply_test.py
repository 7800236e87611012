#!/usr/bin/env python3
"""Tests of the program 02_gather_then_multiply. Its bad input stands for that of all chapters with ranks."""
import re

import program_test_case
from program_test_case import REFUSED_BY_ALL, SMALL, ProgramTestCase

MODES = {"plain": "nccl", "registered": "nccl_registered", "copy-engine": "nccl_copy_engine"}


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assertRegex(self.call("--help").stdout, r"(?m)^  --nccl MODE .*")
        names = self.call("--list").stdout.split()
        self.assertEqual(names[0], "nccl")
        self.assertEqual(names[-2:], ["communication_only", "one_shard"])
        if self.backend == "virtual":
            self.assertEqual(len(names), 3)

    def test_bad_options(self) -> None:
        cases = {
            ("--nccl", "fast"): "--nccl: 'fast' is not a mode of NCCL .known: plain, registered, copy-engine.",
            ("--nccl",): "--nccl: a value is missing",
            ("--only", "ring"): "--only: 'ring'",
        }
        self.assert_refused({**REFUSED_BY_ALL, **cases})

    def test_modes_of_nccl(self) -> None:
        for mode, variant in MODES.items():
            with self.subTest(mode):
                if self.backend == "virtual" and mode != "plain":
                    result = self.assert_fails(77, ("--nccl", mode, *SMALL), f"skipped: --nccl: '{mode}' needs real GPUs")
                    self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1))
                    continue
                report = self.report("--nccl", mode, *SMALL)
                self.assertEqual(report["options"]["nccl"], mode)
                self.assertEqual([result["variant"] for result in report["results"]],
                                 ["gemm_only", variant, "communication_only", "one_shard"])

    def test_more_memory_than_there_is(self) -> None:
        machine = self.machine(memory_mib=2)
        self.assert_fails(2, ("--machine", machine, "--m", "512", "--n", "512", "--k", "4096"),
                          r"GPU \d has not enough free memory; rank \d: .* [1-9]\d* MiB are asked for, \d of 2 MiB are free")


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types(r"(?m)^all \d+ elements are right: nccl\b",
                                                 r"(?m)^baseline: nccl\w*\. Lower bound: \d x one_shard")

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found({"nccl": "nccl"})

    def test_more_ranks_than_gpus(self) -> None:
        machine = self.machine(gpus=2)
        result = self.assert_fails(77, ("--machine", machine, "--gpus", "3", *SMALL),
                                   "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertNotRegex(result.stdout, "elements are right|TFLOP")
        # The product of one shard needs no NCCL.
        self.assertIn("one_shard", self.call_right("--machine", machine, "--gpus", "3", "--only", "one_shard", *SMALL).stdout)
        # Without --gpus it takes as many ranks as there are GPUs.
        self.assertIn("over 2 ranks", self.call_right("--machine", machine, *SMALL).stdout)

    def test_json(self) -> None:
        report = self.report(*SMALL, "--gpus", "2")
        self.assertEqual(report["options"]["gpus"], 2)
        results = {result["variant"]: result for result in report["results"]}
        if self.backend == "virtual":  # modelled, so the same each time
            self.assertLess(results["gemm_only"]["device_ms"], results["nccl"]["device_ms"])
        self.assertGreater(results["communication_only"]["bus_gb_per_s"], 0)
        for field in ("tflops", "ratio_to_gemm_only", "exposed_ms", "host_ms"):
            self.assertIn(field, results["nccl"])

    def test_the_bound_follows_from_the_table(self) -> None:
        if self.backend != "virtual":
            self.skipTest("the numbers printed on real GPUs are rounded medians; the model's suffice")
        text = self.call_right("--gpus", "4").stdout
        shard = float(re.search(r"(?m)^ *one_shard +([\d.]+)", text)[1])
        total = float(re.search(r"(?m)^ *nccl +([\d.]+)", text)[1])
        bound, percent = map(float, re.search(r"= ([\d.]+) us; the baseline is at (\d+) %", text).groups())
        self.assertAlmostEqual(bound, 4 * shard + 3 * 6, delta=0.3)
        self.assertAlmostEqual(percent, 100 * bound / total, delta=1)


if __name__ == "__main__":
    program_test_case.main()
