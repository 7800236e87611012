"""What is special about the program 04_transports, an experiment."""
import json

import dense_program


class Program(dense_program.DenseProgram):
    variants = ("transports", "patterns", "sizes")
    help_says = ("messages by their size",)
    no_variant = "copy_engine_ring"

    def test_sizes_and_types(self) -> None:
        for gpus in ("2", "3", "8"):
            for kind in ("f16", "bf16", "f32"):
                with self.subTest(gpus=gpus, type=kind):
                    self.call_right("--gpus", gpus, "--type", kind, *self.small)

    def test_each_variant_alone(self) -> None:
        for variant in self.variants:
            with self.subTest(variant):
                results = self.report("--gpus", "2", "--only", variant, *self.small)["results"]
                self.assertEqual({result["section"] for result in results}, {variant})

    def test_wrong_result(self) -> None:
        for variant in self.variants:
            with self.subTest(variant):
                self.assert_fails(1, ("--corrupt", "--gpus", "2", *self.small, "--only", variant, "--json", "x.json"),
                                  r"wrong result|are wrong")

    def test_takes_two(self) -> None:
        self.assert_fails(77, ("--gpus", "1", *self.small), "skipped.*two ranks")

    def test_no_peer_access(self) -> None:
        for variant in self.variants:
            self.assert_fails(77, ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small, "--only", variant,
                                   "--json", "x.json"), "skipped: .*no peer access from GPU 0 to")

    def test_more_ranks_than_gpus(self) -> None:
        for gpus in (2, 1):
            text = self.call_right("--machine", self.machine(gpus=gpus), "--gpus", "3", *self.small).stdout
            self.assertIn("all on one GPU", text)
            self.assertIn("NCCL is left out", text)

    def test_json(self) -> None:
        report = self.report("--gpus", "3", *self.small)
        self.assertEqual(report["chapter"], "04_copy_engine/transports")
        self.assertEqual({result["section"] for result in report["results"]}, {"transports", "patterns", "sizes"})
        for result in report["results"]:
            for name, value in result.items():
                if name.endswith("gb_per_s"):
                    self.assertGreater(value, 0, result)

    def test_rates_follow_from_bytes_and_times(self) -> None:
        results = self.report("--gpus", "3", *self.small)["results"]
        fits = {result["variant"].removesuffix(", fit"): result for result in results if "fixed_us" in result}
        for result in results:
            with self.subTest(f"{result['section']}: {result['variant']}"):
                if result["section"] == "patterns":  # from two others into each GPU
                    self.assertAlmostEqual(result["gb_per_s"], 2 * result["bytes"] / (1e6 * result["device_ms"]))
                elif result["section"] == "sizes" and "bytes" in result:
                    self.assertAlmostEqual(result["gb_per_s"], result["bytes"] / (1e6 * result["device_ms"]))
                elif result["section"] == "transports":
                    self.assertEqual(result["shards"], 2)
                    self.assertAlmostEqual(result["product_slow_down"], result["product_beside_ms"] / result["product_alone_ms"])
                    fit = fits.get(result["variant"])
                    if fit and self.backend == "virtual":  # a shard takes as long there as a message of its size
                        self.assertAlmostEqual(1e-3 * result["bytes"] / result["alone_gb_per_s"],
                                               fit["fixed_us"] + 1e-3 * result["bytes"] / fit["gb_per_s"], delta=0.01)

    def test_what_transports_take_from_a_product(self) -> None:
        if self.backend != "virtual":
            self.skipTest("tiles and multiprocessors are those of the virtual machine")
        # Sub-products of 8 tiles: 1 wave on all 8 multiprocessors, 2 on 4 of them, or beside NCCL's channel.
        size = ("--gpus", "4", "--m", "512", "--n", "2048", "--k", "64", *self.small[-4:], "--only", "transports", "--no-check")
        text = self.call_right(*size, "--json", "report.json").stdout
        self.assertRegex(text, r"(?m)^copy kernel, 4 SMs .* 1 +2$")
        self.assertRegex(text, r"(?m)^copy engine, push .* 1\.000 +1 +1$")
        self.assertRegex(text, r"(?m)^NCCL send and receive .* 1\.[34]\d\d +1 +NCCL decides$")
        results = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))["results"]
        slow_down = {result["variant"]: result["product_slow_down"] for result in results
                     if result["section"] == "transports"}
        self.assertGreater(slow_down["NCCL send and receive"], 1.2)
        self.assertLess(slow_down["copy engine, push"], 1.1)
