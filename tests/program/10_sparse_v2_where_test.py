#!/usr/bin/env python3
"""Tests of the program 10_sparse_v2_where. What all chapters on sparse gradients share is tested with chapter 09's."""
import json

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--rows", "97", "--features", "5", "--entries", "13", "--duplicates", "4", "--iterations", "1", "--warmup", "0")


class CommandLineTest(ProgramTestCase):
    def test_list(self) -> None:
        self.assertEqual(self.call("--list").stdout.split(), ["v1_nonzero", "v2_where"])

    def test_bad_options(self) -> None:
        self.assert_refused({("--only", "v3_graph"): "--only: 'v3_graph'"})


class RunTest(ProgramTestCase):
    def test_sizes_types_and_patterns(self) -> None:
        for arguments in [("--gpus", gpus) for gpus in "12348"] + [("--gpus", "3", "--type", "bf16", "--index", "int64")] + \
                [("--gpus", "4", "--pattern", pattern) for pattern in ("zipf", "identical", "disjoint", "uneven")]:
            with self.subTest(arguments):
                self.assertIn("rows of 5 elements are right: v1_nonzero, v2_where\n",
                              self.call_right(*SMALL, *arguments).stdout)

    def test_wrong_result(self) -> None:
        self.assert_fails(1, (*SMALL, "--corrupt", "--only", "v2_where", "--json", "new.json"),
                          r"wrong result.*v2_where.*row.*column")

    def test_json(self) -> None:
        results = self.report(*SMALL, "--gpus", "2")["results"]
        self.assertEqual([result["variant"] for result in results], ["v1_nonzero", "v2_where"])

    def test_version_2_is_faster_in_the_model(self) -> None:
        if self.backend != "virtual":
            self.skipTest("times of real GPUs are not tested")
        self.call_right("--json", "report.json")
        results = {result["variant"]: result for result in
                   json.loads((self.folder / "report.json").read_text(encoding="utf-8"))["results"]}
        self.assertEqual(list(results), ["v1_nonzero", "v2_where"])
        for name in ("host_ms", "map_ms"):
            self.assertLess(results["v2_where"][name], results["v1_nonzero"][name])
        self.assertGreater(results["v1_nonzero"]["map_ms"], 0.9 * results["v1_nonzero"]["host_ms"])

    def test_the_search_is_what_the_cost_card_says(self) -> None:
        """In the timeline: for each of a rank's rows two kernels and nothing else."""
        self.call_right(*SMALL, "--gpus", "2", "--only", "v2_where", "--timeline", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        bars = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "map" in json.dumps(event)]
        # Before the loop -1 everywhere, twice, and the numbers of the rounds; behind it the places.
        self.assertEqual(len(bars), 2 * (4 + 13 * 2))


if __name__ == "__main__":
    program_test_case.main()
