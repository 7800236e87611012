"""What is special about the program 05_two_streams."""
import dense_program

ALGORITHMS = ("split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams")
OPENINGS = ["before", "beside", "copy_first", "after", "barrier_after"]


class Program(dense_program.DenseProgram):
    variants = (*ALGORITHMS, "openings", "sweep")
    right = ALGORITHMS
    timed = ALGORITHMS
    corrupted = {**{name: name for name in ALGORITHMS}, "openings": "before", "sweep": "gemm_only|split_one"}
    help_says = ("--type",)
    no_variant = "ring"

    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types(self.are_right(), self.are_right(*OPENINGS))

    def test_no_peer_access(self) -> None:
        machine = self.machine_without_peer_access()
        for variants in ("ring_two_streams,pull_two_streams", "openings", "sweep"):
            with self.subTest(variants):
                result = self.assert_fails(77, ("--machine", machine, "--gpus", "2", *self.small, "--only", variants, "--json", "x.json"),
                                           r"skipped: rank \d: (no peer access from GPU 0 to GPU 1|without the ring)")
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_what_cannot_run_is_left_out_of_the_report_and_the_rest_is_in_it(self) -> None:
        report = self.report("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small)
        self.assert_left_out(report, [*ALGORITHMS[1:], "openings", "sweep"], "no peer access from|without the ring")
        measured = [result["variant"] for result in report["results"] if "device_ms" in result]
        self.assertEqual(measured, ["gemm_only", "split_only"])

    def test_json(self) -> None:
        super().test_json()
        results = self.report_of()["results"]
        self.assertEqual([result["opening"] for result in results if result.get("section") == "openings"], OPENINGS)
        sweep = [result for result in results if result.get("section") == "sweep"]
        self.assertIn(33, [result["m"] for result in sweep])
        for result in sweep:
            for field in ("waves", "waves_one_stream", "waves_two_streams", "gemm_only_ms", "split_one_stream_ms",
                          "split_two_streams_ms", "ring_one_stream_ms", "ring_two_streams_ms", "transfers_ms"):
                self.assertGreater(result[field], 0, field)
            self.assertAlmostEqual(result["speedup_of_two_streams"],
                                   result["ring_one_stream_ms"] / result["ring_two_streams_ms"])
            self.assertAlmostEqual(result["speedup_of_overlap"],
                                   (result["gemm_only_ms"] + result["transfers_ms"]) / result["ring_two_streams_ms"])

    def test_variants_are_what_they_are_called(self) -> None:
        if self.backend != "virtual":
            self.skipTest("times of the model")
        results = self.report("--gpus", "2", "--m", "256", "--n", "640", "--k", "64", *self.small[-4:], "--only",
                              "openings,sweep")["results"]
        ms = {result["opening"]: result["device_ms"] for result in results if result.get("section") == "openings"}
        self.assertLess(ms["beside"], ms["before"])
        self.assertLess(ms["before"], ms["barrier_after"])
        self.assertLess(ms["barrier_after"], ms["after"])
        partial = [result for result in results if result.get("waves_two_streams", 0) < result.get("waves_one_stream", 0)]
        self.assertTrue(partial)
        for result in partial:
            self.assertLess(result["split_two_streams_ms"], result["split_one_stream_ms"])
            self.assertLess(result["ring_two_streams_ms"], result["ring_one_stream_ms"])

    def test_timeline_shows_the_openings(self) -> None:
        self.call_right(*self.small, "--gpus", "2", "--only", "openings,sweep", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in OPENINGS:
            self.assertIn(f"pull, opening {name}", text)
        self.assertNotIn("split_one", text, "the sweep leaves no section")
