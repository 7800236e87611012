"""What is special about the program 02_gather_then_multiply. Its bad input stands for that of all chapters with ranks."""
import re

import dense_program

MODES = {"plain": "nccl", "registered": "nccl_registered", "copy-engine": "nccl_copy_engine"}


class Program(dense_program.DenseProgram):
    needs_nccl = ("nccl",)
    no_variant = "ring"
    kernels = {"nccl": "gather A: ncclAllGather; multiply: cuBLAS", "communication_only": "gather A: ncclAllGather", "one_shard": "cuBLAS"}
    counted_call = "--m 900 --n 1500 --k 64 --gpus 3"  # so large that one shard takes less time than all
    refused = {("--nccl", "fast"): "--nccl: 'fast' is not a mode of NCCL .known: plain, registered, copy-engine.",
               ("--nccl",): "--nccl: a value is missing"}

    def test_help_and_list(self) -> None:
        self.assertRegex(self.call("--help").stdout, r"(?m)^  --nccl MODE .*")
        names = self.call("--list").stdout.split()  # of the modes, what this NCCL has
        self.assertEqual(names[0], "nccl")
        self.assertEqual(names[-2:], ["communication_only", "one_shard"])
        if self.backend == "virtual":
            self.assertEqual(len(names), 3)

    def test_modes_of_nccl(self) -> None:
        for mode, variant in MODES.items():
            with self.subTest(mode):
                if self.backend == "virtual" and mode != "plain":
                    result = self.assert_fails(77, ("--nccl", mode, *self.small), f"skipped: --nccl: '{mode}' needs real GPUs")
                    self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1))
                    continue
                report = self.report("--nccl", mode, *self.small)
                self.assertEqual(report["options"]["nccl"], mode)
                self.assertEqual([result["variant"] for result in report["results"]],
                                 ["gemm_only", variant, "communication_only", "one_shard"])

    def test_more_memory_than_there_is(self) -> None:
        machine = self.machine(memory_mib=2)
        self.assert_fails(2, ("--machine", machine, "--m", "512", "--n", "512", "--k", "4096"),
                          r"GPU \d has not enough free memory; rank \d: .* [1-9]\d* MiB are requested, \d of 2 MiB are free")

    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types(r"(?m)^all \d+ elements are right: nccl\b",
                                                 r"(?m)^baseline: nccl\w*\. Lower bound: \d x one_shard")

    def test_more_ranks_than_gpus(self) -> None:
        super().test_more_ranks_than_gpus()
        machine = self.machine(gpus=2)
        self.assert_fails(77, ("--machine", machine, "--gpus", "3", *self.small), dense_program.NO_NCCL)
        # The product of one shard needs no NCCL.
        self.assertIn("one_shard", self.call_right("--machine", machine, "--gpus", "3", "--only", "one_shard", *self.small).stdout)
        # Without --gpus it takes as many ranks as there are GPUs.
        self.assertIn("over 2 ranks", self.call_right("--machine", machine, *self.small).stdout)

    def test_json(self) -> None:
        super().test_json()
        results = {result["variant"]: result for result in self.report_of()["results"]}
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
