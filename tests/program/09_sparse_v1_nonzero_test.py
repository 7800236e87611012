#!/usr/bin/env python3
"""Tests of the program 09_sparse_v1_nonzero. The options that all chapters on sparse gradients have are tested with chapter
08's."""
import json
import re

import program_test_case
from program_test_case import ProgramTestCase

SMALL = ("--rows", "97", "--features", "5", "--entries", "13", "--duplicates", "4", "--iterations", "1", "--warmup", "0")
PHASES = ["coalesce", "local_indices", "global_indices", "fill", "map", "scatter", "all_reduce"]


class CommandLineTest(ProgramTestCase):
    def test_list(self) -> None:
        self.assertEqual(self.call("--list").stdout.split(), ["v1_nonzero"])

    def test_bad_options(self) -> None:
        self.assert_refused({("--only", "v2_where"): "--only: 'v2_where'",
                             ("--index", "int32", "--rows", "2147483648"): "--index: int32 cannot number so many --rows"})


class RunTest(ProgramTestCase):
    def test_sizes_types_and_patterns(self) -> None:
        for arguments in [("--gpus", gpus) for gpus in "12348"] + \
                [("--gpus", "3", "--type", kind) for kind in ("f16", "bf16")] + \
                [("--gpus", "4", "--pattern", pattern) for pattern in ("zipf", "identical", "disjoint", "uneven")] + \
                [("--gpus", "2", "--index", "int64")]:
            with self.subTest(arguments):
                self.assertIn("rows of 5 elements are right: v1_nonzero\n",
                              self.call_right(*SMALL, *arguments).stdout)
        long = ("--rows", "3000000000", *SMALL[2:])
        self.assertIn("rows of 5 elements are right", self.call_right(*long, "--gpus", "2", "--index", "int64").stdout)

    def test_a_table_of_more_than_2_to_the_31_rows(self) -> None:
        long = ("--rows", "3000000000", "--index", "int64", "--gpus", "2", *SMALL[2:])
        self.assertIn("rows of 5 elements are right: v1_nonzero\n", self.call_right(*long).stdout)

    def test_patterns_decide_how_many_rows_there_are(self) -> None:
        counts = {}
        for pattern in ("identical", "disjoint", "uneven"):
            text = self.call_right(*SMALL, "--gpus", "4", "--pattern", pattern).stdout
            found = re.search(r"N = (\d+) rows of single ranks, G = (\d+) different ones, d = N / G = ([\d.]+) \((\w+),", text)
            self.assertIsNotNone(found, text)
            self.assertEqual(found.group(4), pattern)
            self.assertAlmostEqual(float(found.group(3)), int(found.group(1)) / int(found.group(2)), delta=0.001)
            counts[pattern] = tuple(map(int, found.groups()[:2]))
        self.assertEqual(counts["identical"], (52, 13))
        self.assertEqual(counts["disjoint"], (52, 52))
        self.assertEqual(counts["uneven"][0], 3 + 6 + 9 + 13)

    def test_wrong_result(self) -> None:
        self.assert_fails(1, (*SMALL, "--corrupt", "--json", "new.json"), r"wrong result.*v1_nonzero.*row.*column")

    def test_more_ranks_than_gpus(self) -> None:
        result = self.assert_fails(77, ("--machine", self.machine(gpus=2), "--gpus", "3", *SMALL),
                                   "NCCL wants a GPU for each rank, and all ranks share one here")
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_json_has_sizes_and_phases(self) -> None:
        self.call_right(*SMALL, "--gpus", "2", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual((report["chapter"], report["options"]["entries"]), ("09_sparse_v1_nonzero", 13))
        result, = report["results"]
        self.assertEqual((result["variant"], result["rows_of_ranks"]), ("v1_nonzero", 26))
        phases = [result[f"{phase}_ms"] for phase in PHASES]
        self.assertGreater(min(phases), 0)
        if self.backend == "virtual":  # one call: each phase is the slowest rank's, and no rank has more than all of it
            self.assertLess(max(phases), result["host_ms"])
            self.assertEqual(max(phases), result["map_ms"])

    def test_the_search_is_what_the_cost_card_says(self) -> None:
        """In the timeline: for each of a rank's rows two launches, a copy to the host and one of the place."""
        self.call_right(*SMALL, "--gpus", "2", "--timeline", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        bars = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "map" in json.dumps(event)]
        self.assertEqual(len(bars), 2 * (2 + 13 * 4))  # before the first row: -1 everywhere, and the numbers of the places


if __name__ == "__main__":
    program_test_case.main()
