"""What is special about the program 05_sweep, an experiment."""
import dense_program


class Program(dense_program.DenseProgram):
    variants = ("sweep",)
    corrupted = {"sweep": "gemm_only|split_one"}
    help_says = ("as waves and as times",)
    no_variant = "ring_two_streams"

    def are_right(self, *names: str) -> str:
        """The sweep compares each variant's last result, but prints no line about it."""
        return "Ring on one stream and on two"

    def test_no_peer_access(self) -> None:
        self.assert_fails(77, ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small, "--json", "x.json"),
                          r"skipped: rank \d: without the ring there is no sweep")

    def test_json(self) -> None:
        results = self.report_of()["results"]
        self.assertIn(33, [result["m"] for result in results])
        for result in results:
            self.assertEqual(result["section"], "sweep")
            for field in ("waves", "waves_one_stream", "waves_two_streams", "gemm_only_ms", "split_one_stream_ms",
                          "split_two_streams_ms", "ring_one_stream_ms", "ring_two_streams_ms", "transfers_ms"):
                self.assertGreater(result[field], 0, field)
            self.assertAlmostEqual(result["speedup_of_two_streams"],
                                   result["ring_one_stream_ms"] / result["ring_two_streams_ms"])
            self.assertAlmostEqual(result["speedup_of_overlap"],
                                   (result["gemm_only_ms"] + result["transfers_ms"]) / result["ring_two_streams_ms"])

    def test_two_streams_gain_where_waves_are_partial(self) -> None:
        if self.backend != "virtual":
            self.skipTest("times of the model")
        results = self.report("--gpus", "2", "--m", "256", "--n", "640", "--k", "64", *self.small[-4:])["results"]
        partial = [result for result in results if result["waves_two_streams"] < result["waves_one_stream"]]
        self.assertTrue(partial)
        for result in partial:
            self.assertLess(result["split_two_streams_ms"], result["split_one_stream_ms"])
            self.assertLess(result["ring_two_streams_ms"], result["ring_one_stream_ms"])
