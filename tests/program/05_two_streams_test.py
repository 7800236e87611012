#!/usr/bin/env python3
"""Tests of the program 05_two_streams. What all chapters with ranks share is tested with chapter 02's."""
import program_test_case
from program_test_case import REFUSED_BY_ALL, SMALL, ProgramTestCase

ALGORITHMS = ["split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams"]
OPENINGS = ["before", "beside", "copy_first", "after", "barrier_after"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assert_lists([*ALGORITHMS, "openings", "sweep"], "--type")

    def test_bad_options(self) -> None:
        self.assert_refused({**REFUSED_BY_ALL, ("--only", "ring"): "--only: 'ring'"})


class RunTest(ProgramTestCase):
    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types("elements are right: " + ", ".join(ALGORITHMS),
                                                 "elements are right: " + ", ".join(OPENINGS))

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found({**{name: name for name in ALGORITHMS},
                                         "openings": "before", "sweep": "gemm_only|split_one"})

    def test_ranks_may_share_a_gpu(self) -> None:
        for machine in (self.machine(gpus=2), self.machine(gpus=1)):
            text = self.call_right("--machine", machine, "--gpus", "3", *SMALL).stdout
            self.assertIn("all on one GPU", text)
            self.assertIn("elements are right: " + ", ".join(ALGORITHMS), text)

    def test_no_peer_access(self) -> None:
        machine = self.machine_without_peer_access()
        for variants in ("ring_two_streams,pull_two_streams", "openings", "sweep"):
            with self.subTest(variants):
                result = self.assert_fails(77, ("--machine", machine, "--gpus", "2", *SMALL, "--only", variants, "--json", "x.json"),
                                           r"skipped: rank \d: (no peer access from GPU 0 to GPU 1|without the ring)")
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_what_cannot_run_is_left_out_of_the_report_and_the_rest_is_in_it(self) -> None:
        report = self.report("--machine", self.machine_without_peer_access(), "--gpus", "2", *SMALL)
        self.assert_left_out(report, [*ALGORITHMS[1:], "openings", "sweep"], "no peer access from|without the ring")
        measured = [result["variant"] for result in report["results"] if "device_ms" in result]
        self.assertEqual(measured, ["gemm_only", "split_only"])

    def test_json(self) -> None:
        report = self.report(*SMALL, "--gpus", "2")
        self.assertEqual(report["options"]["gpus"], 2)
        results = report["results"]
        self.assertEqual([result["variant"] for result in results if "variant" in result], ["gemm_only", *ALGORITHMS])
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
        results = self.report("--gpus", "2", "--m", "256", "--n", "640", "--k", "64", *SMALL[6:], "--only",
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
        self.call_right(*SMALL, "--gpus", "2", "--only", "openings,sweep", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in OPENINGS:
            self.assertIn(f"pull, opening {name}", text)
        self.assertNotIn("split_one", text, "the sweep leaves no section")


if __name__ == "__main__":
    program_test_case.main()
