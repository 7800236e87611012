"""What is special about the program 08_sparse_baselines, and the options that all chapters on sparse gradients have."""
import json
import os
from typing import Dict
from unittest import mock

import sparse_program


class Program(sparse_program.SparseProgram):
    variants = ("dense_nccl", "host_gloo", "transport", "through_host")
    right = ("dense_nccl", "host_gloo")
    corrupted = {name: name for name in variants}
    right_says = "every element is right\n"  # of the transports
    no_variant = "nccl"
    refused = {
        ("--rows", "0"): "--rows: 0 is not between 1",
        ("--features", "0"): "--features: 0 is not between 1",
        ("--entries", "-1"): "--entries: -1 is not between 0",
        ("--pattern", "dense"): "--pattern: 'dense' is not known",
        ("--index", "int16"): "--index: 'int16' is not known",
        ("--index", "int32", "--rows", "3000000000"): "--index: int32 cannot number so many --rows",
        ("--entries", "0", "--duplicates", "1"): "--duplicates: there is no row to repeat",
        ("--rows", "20", "--entries", "1", "--duplicates", "300", "--type", "bf16", "--gpus", "2"):
            "--duplicates: 301 entries have the same row, and a sum of more than 256 is not exact in bf16",
        ("--rows", "10", "--entries", "11"): "--entries: 11 different rows are wanted of a table of 10",
        ("--rows", "10", "--entries", "4", "--gpus", "3", "--pattern", "disjoint"):
            "--entries: 12 different rows are wanted of a table of 10"}

    def setUp(self) -> None:
        """On virtual GPUs the environment's own settings of NCCL change nothing, but they would be printed."""
        super().setUp()
        if self.backend == "virtual":
            rest = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "CUDA_"))}
            environment = mock.patch.dict(os.environ, rest, clear=True)
            environment.start()
            self.addCleanup(environment.stop)

    def settings(self) -> str:
        """What the program must print of the environment."""
        decisive = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_PROTO",
                    "CUDA_VISIBLE_DEVICES")
        set_here = [name for name in decisive if name in os.environ]
        return " ".join(f"{name}={os.environ[name]}" for name in set_here) or "default"

    def test_no_rows_at_all(self) -> None:
        self.assertIn("all 0 rows of 5 elements are right",
                      self.call_right("--gpus", "3", *self.small[:4], "--entries", "0", "--duplicates", "0").stdout)

    def test_rows_that_cancel(self) -> None:
        # One feature of small integers: some rows add up to 0, and the dense way leaves just these out.
        self.call_right("--gpus", "8", "--rows", "60", "--features", "1", "--entries", "40", "--type", "bf16",
                        "--duplicates", "9", "--only", "dense_nccl,host_gloo")

    def test_the_sizes_of_a_gradient_are_printed(self) -> None:
        text = self.call_right("--gpus", "2", *self.small, "--pattern", "identical").stdout
        self.assertIn("15 entries on rank 0, N = 22 rows of single ranks, G = 11 different ones, d = N / G = 2.000", text)

    def test_more_ranks_than_gpus(self) -> None:
        machine = self.machine(gpus=2)
        shared = ("--machine", machine, "--gpus", "3", *self.small)
        for only in ("dense_nccl", "transport"):
            self.assert_fails(77, (*shared, "--only", only),
                              "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")
        both = self.report(*shared, "--only", "dense_nccl,through_host")
        self.assert_left_out(both, ["dense_nccl"], "NCCL wants a GPU for each rank")
        self.assertEqual([result["variant"] for result in both["results"] if "host_ms" in result], ["through_host"])
        self.assert_left_out(self.report(*shared), ["dense_nccl", "transport"], "NCCL wants a GPU for each rank")
        text = self.call_right(*shared).stdout  # the host needs no NCCL
        self.assertRegex(text, r"(?m)^dense_nccl is left out: NCCL wants a GPU for each rank")
        self.assertRegex(text, r"(?m)^transport is left out: NCCL wants a GPU for each rank")
        self.assertIn("elements are right: host_gloo\n", text)

    def test_a_table_that_does_not_fit(self) -> None:
        self.assert_fails(2, ("--rows", "2000000", "--features", "2048", "--entries", "1", "--duplicates", "0", "--gpus", "2",
                              "--only", "dense_nccl"), "not enough free memory")

    def test_json(self) -> None:
        self.need_gpus(2)
        self.call_right(*self.small, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["gpus"]), ("08_sparse_baselines", 2))
        self.assertEqual((report["options"]["rows"], report["options"]["features"], report["options"]["entries"]), (97, 5, 11))
        results = {result["variant"]: result for result in report["results"]}
        self.assertEqual(tuple(results), self.variants)
        self.assertEqual(results["dense_nccl"]["rows_of_ranks"], 22)
        for variant in ("transport", "through_host"):
            result = results[variant]
            self.assertEqual((result["section"], result["bytes"]), ("transport", 97 * 5 * 4))
            self.assertEqual(sorted(result["settings"].split()), sorted(self.settings().split()))
            self.assertAlmostEqual(result["bus_gb_per_s"], result["algorithm_gb_per_s"], places=9)  # 2 (2 - 1) / 2 = 1

    def test_rates_follow_from_bytes_and_times(self) -> None:
        for gpus in (3, 4):  # with 2 the bus carries as much as the buffer has
            results = self.report("--gpus", str(gpus), *self.small, "--only", "transport,through_host")["results"]
            for result in results:
                with self.subTest(f"{result['variant']} on {gpus}"):
                    rate = result["bytes"] / (1e6 * result["host_ms"])
                    self.assertAlmostEqual(result["algorithm_gb_per_s"], rate)
                    self.assertAlmostEqual(result["bus_gb_per_s"], rate * 2 * (gpus - 1) / gpus)

    def bus(self, machine: str) -> Dict[str, float]:
        if self.backend != "virtual":
            self.skipTest("machine descriptions are for virtual GPUs")
        self.call_right("--machine", machine, "--gpus", "4", "--rows", "4096", "--features", "64", "--entries", "1",
                        "--duplicates", "0", "--only", "transport,through_host", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        return {result["variant"]: result["bus_gb_per_s"] for result in report["results"]}

    def test_links_are_faster_than_the_host_and_nvlink_than_pcie(self) -> None:
        nvlink, pcie = self.bus("h100-nvlink"), self.bus("h100-pcie")
        self.assertGreater(nvlink["transport"], nvlink["through_host"])
        self.assertGreater(nvlink["transport"], pcie["transport"])

    def test_settings_are_named(self) -> None:
        if self.backend != "virtual":
            self.skipTest("real NCCL has other settings, too")
        result = self.call("--gpus", "2", *self.small, "--only", "transport", env={**os.environ, "NCCL_P2P_DISABLE": "1"})
        self.assertIn("NCCL's settings: NCCL_P2P_DISABLE=1\n", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^ *0 +unknown +unknown +GPU 1$")
