#!/usr/bin/env python3
"""Tests of the program 11_sparse_v3_graph. What all sparse chapters share is tested with chapters 08 and 09."""
import json
import re

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--rows", "97", "--features", "5", "--entries", "23", "--duplicates", "4", "--iterations", "1",
         "--warmup", "0")
ALL = ["v1_nonzero", "v2_where", "v3_graph"]


class CommandLineTest(ProgramTestCase):
    def test_help_and_list(self) -> None:
        self.assertIn("--entries", self.call("--help").stdout)
        self.assertEqual(self.call("--list").stdout.split(), ALL)

    def test_bad_options(self) -> None:
        self.assert_refused({("--type", "int32"): "--type: 'int32' is not a type of this chapter",
                             ("--only", "graph"): "--only: 'graph'",
                             ("--gpus", "17"): "--gpus: 17 is not between 1 and 16"})


class RunTest(ProgramTestCase):
    def test_sizes_types_and_patterns(self) -> None:
        tiny = ("--rows", "2", "--features", "1", "--entries", "1", "--duplicates", "0", "--iterations", "1")
        for arguments in [("--gpus", gpus, *SMALL) for gpus in "12348"] + [("--gpus", "3", *tiny)] + \
                [("--gpus", "3", "--type", kind, *SMALL) for kind in ("bf16", "f16")] + \
                [("--gpus", "3", "--index", "int64", "--pattern", pattern, *SMALL)
                 for pattern in ("zipf", "identical", "disjoint")]:
            with self.subTest(arguments):
                self.assertIn("elements are right: v1_nonzero, v2_where, v3_graph\n",
                              self.call_right(*arguments).stdout)

    def test_wrong_result(self) -> None:
        for variant in ALL:
            self.assert_fails(1, ("--corrupt", *SMALL, "--only", variant, "--json", "new.json"),
                              rf"wrong result.*{variant}.*row")

    def test_one_graph_serves_calls_of_all_lengths(self) -> None:
        # 23 rows; of every third one, on rank 0 and rank 1, the rows 0, 3, ..., 21; none; 23 again.
        text = self.call_right(*SMALL, "--gpus", "2", "--only", "v3_graph").stdout
        self.assertIn("v3_graph: calls of 23, 8, 0, 23 rows are right, on one graph\n", text)
        self.assertNotIn("calls of", self.call_right(*SMALL, "--gpus", "2", "--no-check").stdout)

    def test_the_recording_is_told_apart(self) -> None:
        text = self.call_right(*SMALL, "--gpus", "2", "--json", "report.json").stdout
        # A kernel that forgets the last call's places, and two for each row of the capacity.
        self.assertRegex(text, r"(?m)^v3_graph: room for 23 rows of a rank and 46 different ones; 47 kernels, "
                               r"recorded and instantiated once in \d+\.\d{3} ms")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        graph = [result for result in report["results"] if result.get("section") == "graph"]
        self.assertEqual(len(graph), 1)
        self.assertEqual((graph[0]["nodes"], graph[0]["local_capacity"], graph[0]["global_capacity"]), (47, 23, 46))

    def test_no_room_beyond_the_table(self) -> None:
        text = self.call_right("--rows", "40", "--features", "3", "--entries", "23", "--gpus", "3").stdout
        self.assertIn("room for 23 rows of a rank and 40 different ones", text)

    def test_json(self) -> None:
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["gpus"]), ("11_sparse_v3_graph", 2))
        results = {result["variant"]: result for result in report["results"] if "variant" in result}
        self.assertEqual(list(results), ALL)
        for result in results.values():
            for field in ("host_ms", "fill_ms", "map_ms", "all_reduce_ms", "skew_ms"):
                self.assertGreaterEqual(result[field], 0)
        self.assertIn("gather_ms", results["v3_graph"])
        self.assertNotIn("gather_ms", results["v2_where"])

    def test_skew_and_duration_of_the_all_reduce_are_apart(self) -> None:
        text = self.call_right(*SMALL, "--gpus", "2").stdout
        header = next(line for line in text.splitlines() if "all_reduce" in line)
        self.assertTrue(re.search(r"\ball_reduce\b.*\bskew\b", header), header)

    def test_more_ranks_than_gpus(self) -> None:
        machine = self.machine(gpus=2)
        self.assert_fails(77, ("--machine", machine, "--gpus", "3", *SMALL),
                          "skipped: rank 0: NCCL wants a GPU for each rank, and all ranks share one here")


if __name__ == "__main__":
    program_test_case.main()
