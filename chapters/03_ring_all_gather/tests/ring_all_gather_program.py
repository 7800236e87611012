"""What is special about the program 03_ring_all_gather."""
import re

import dense_program


class Program(dense_program.DenseProgram):
    needs_nccl = ("ring",)
    help_says = ("--type",)
    no_variant = "nccl"
    kernels = {"ring": "step N: multiply shard N: cuBLAS; step N: pass shard N: group",
               "split_only": "step N: multiply shard N: cuBLAS", "communication_only": "step N: pass shard N: group"}

    def test_more_ranks_than_gpus(self) -> None:
        super().test_more_ranks_than_gpus()
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *self.small)
        self.assert_fails(77, (*shared, "--only", "ring,communication_only"), dense_program.NO_NCCL)

    def test_json(self) -> None:
        super().test_json()
        results = {result["variant"]: result for result in self.report_of()["results"]}
        self.assertGreater(results["ring"]["device_ms"], results["gemm_only"]["device_ms"])
        self.assertGreater(results["communication_only"]["bus_gb_per_s"], 0)

    def test_what_is_exposed_follows_from_the_table(self) -> None:
        text = self.call_right(*self.small, "--gpus", "2").stdout
        us = {name: float(value) for name, value in re.findall(r"(?m)^ *(\w+) +(-?[\d.]+) ", text)}
        found = re.search(r"exposed: (-?[\d.]+) us by splitting the product, (-?[\d.]+) us by the transfers; "
                          r"(-?\d+) % of the communication is hidden", text)
        self.assertIsNotNone(found, text)
        splitting, transfers, hidden = map(float, found.groups())
        self.assertAlmostEqual(splitting, us["split_only"] - us["gemm_only"], delta=0.11)
        self.assertAlmostEqual(transfers, us["ring"] - us["split_only"], delta=0.11)
        self.assertAlmostEqual(hidden, 100 * (1 - transfers / us["communication_only"]), delta=2)
        self.assertNotIn("exposed:", self.call_right(*self.small, "--gpus", "1").stdout)
