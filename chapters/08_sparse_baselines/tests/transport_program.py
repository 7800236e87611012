"""What is special about the program 08_transport, an experiment."""
import json
import os
from typing import Dict
from unittest import mock

import chapter_program


class Program(chapter_program.ChapterProgram):
    variants = ("nccl", "through_host")
    help_says = ("--rows", "--features")
    no_variant = "dense_nccl"

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

    def test_sizes_and_types(self) -> None:
        for gpus in "12348":
            self.assertIn("every element is right\n", self.call_right(*self.small, "--gpus", gpus).stdout)
        for kind in ("f16", "bf16", "f32"):
            self.assertIn("every element is right\n", self.call_right(*self.small, "--gpus", "3", "--type", kind).stdout)
        self.assertIn("every element is right\n", self.call_right("--gpus", "8", "--rows", "1", "--features", "1", "--entries", "1",
                                                                 "--duplicates", "0").stdout)

    def test_wrong_result(self) -> None:
        for variant in self.variants:
            with self.subTest(variant):
                self.assert_fails(1, (*self.small, "--corrupt", "--gpus", "2", "--only", variant, "--json", "new.json"),
                                  rf"wrong result.*{variant}.*row.*column")

    def test_more_ranks_than_gpus(self) -> None:
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *self.small)
        self.assert_fails(77, (*shared, "--only", "nccl"),
                          "skipped: NCCL wants a GPU for each rank, and all ranks share one here")
        self.assert_left_out(self.report(*shared), ["nccl"], "NCCL wants a GPU for each rank")
        text = self.call_right(*shared).stdout  # the host needs no NCCL
        self.assertRegex(text, r"(?m)^nccl is left out: NCCL wants a GPU for each rank")
        self.assertRegex(text, r"(?m)^through_host ")

    def test_json(self) -> None:
        self.need_gpus(2)
        report = self.report_of()
        self.assertEqual(report["chapter"], "08_sparse_baselines/transport")
        self.assertEqual([result["variant"] for result in report["results"]], list(self.variants))
        for result in report["results"]:
            self.assertEqual((result["section"], result["bytes"]), ("transport", 97 * 5 * 4))
            self.assertEqual(sorted(result["settings"].split()), sorted(self.settings().split()))
            self.assertAlmostEqual(result["bus_gb_per_s"], result["algorithm_gb_per_s"], places=9)  # 2 (2 - 1) / 2 = 1

    def test_rates_follow_from_bytes_and_times(self) -> None:
        for gpus in (3, 4):  # with 2 the bus carries as much as the buffer has
            results = self.report("--gpus", str(gpus), *self.small)["results"]
            for result in results:
                with self.subTest(f"{result['variant']} on {gpus}"):
                    rate = result["bytes"] / (1e6 * result["host_ms"])
                    self.assertAlmostEqual(result["algorithm_gb_per_s"], rate)
                    self.assertAlmostEqual(result["bus_gb_per_s"], rate * 2 * (gpus - 1) / gpus)

    def bus(self, machine: str) -> Dict[str, float]:
        if self.backend != "virtual":
            self.skipTest("machine descriptions are for virtual GPUs")
        self.call_right("--machine", machine, "--gpus", "4", "--rows", "4096", "--features", "64", "--entries", "1",
                        "--duplicates", "0", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        return {result["variant"]: result["bus_gb_per_s"] for result in report["results"]}

    def test_links_are_faster_than_the_host_and_nvlink_than_pcie(self) -> None:
        nvlink, pcie = self.bus("h100-nvlink"), self.bus("h100-pcie")
        self.assertGreater(nvlink["nccl"], nvlink["through_host"])
        self.assertGreater(nvlink["nccl"], pcie["nccl"])

    def test_settings_are_named(self) -> None:
        if self.backend != "virtual":
            self.skipTest("real NCCL has other settings, too")
        result = self.call("--gpus", "2", *self.small, "--only", "nccl", env={**os.environ, "NCCL_P2P_DISABLE": "1"})
        self.assertIn("NCCL's settings: NCCL_P2P_DISABLE=1\n", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^ *0 +unknown +unknown +GPU 1$")
