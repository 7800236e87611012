"""What is special about the program 05_openings, an experiment."""
import dense_program


class Program(dense_program.DenseProgram):
    variants = ("before", "beside", "copy_first", "after", "barrier_after")
    help_says = ("The five openings",)
    no_variant = "openings"

    def test_no_peer_access(self) -> None:
        self.assert_fails(77, ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small, "--json", "x.json"),
                          r"skipped: rank \d: no peer access from GPU 0 to GPU 1")

    def test_json(self) -> None:
        results = self.report_of()["results"]
        self.assertEqual([result["opening"] for result in results], list(self.variants))
        self.assertEqual({result["section"] for result in results}, {"openings"})
        for result in results:
            self.assertGreater(result["device_ms"], 0)

    def test_openings_are_what_they_are_called(self) -> None:
        if self.backend != "virtual":
            self.skipTest("times of the model")
        results = self.report("--gpus", "2", "--m", "256", "--n", "640", "--k", "64", *self.small[-4:])["results"]
        ms = {result["opening"]: result["device_ms"] for result in results}
        self.assertLess(ms["beside"], ms["before"])
        self.assertLess(ms["before"], ms["barrier_after"])
        self.assertLess(ms["barrier_after"], ms["after"])

    def test_timeline_shows_the_openings(self) -> None:
        self.call_right(*self.small, "--gpus", "2", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in self.variants:
            self.assertIn(f"pull, opening {name}", text)
        self.call_right(*self.small, "--gpus", "2", "--only", "after", "--timeline", "trace.json")
        self.assertNotIn("opening before", (self.folder / "trace.json").read_text(encoding="utf-8"))
