"""What is special about the program 09_sparse_v1_nonzero."""
import json
import re

import sparse_program

PHASES = ["coalesce", "local_indices", "global_indices", "fill", "map", "scatter", "all_reduce"]


class Program(sparse_program.SparseProgram):
    no_variant = "v2_where"
    kernels = {"v1_nonzero": "map: cub::DeviceSelect::Flagged mark_equal write_numbers; scatter: scatter_rows; "
                             "all_reduce: ncclAllReduce"}

    def test_a_table_of_more_than_2_to_the_31_rows(self) -> None:
        long = ("--rows", "3000000000", "--index", "int64", "--gpus", "2", *self.small[2:])
        self.assertIn("rows of 5 elements are right: v1_nonzero\n", self.call_right(*long).stdout)

    def test_patterns_decide_how_many_rows_there_are(self) -> None:
        counts = {}
        for pattern in ("identical", "disjoint", "uneven"):
            text = self.call_right(*self.small, "--gpus", "4", "--pattern", pattern).stdout
            found = re.search(r"N = (\d+) rows of single ranks, G = (\d+) different ones, d = N / G = ([\d.]+) \((\w+),", text)
            self.assertIsNotNone(found, text)
            self.assertEqual(found.group(4), pattern)
            self.assertAlmostEqual(float(found.group(3)), int(found.group(1)) / int(found.group(2)), delta=0.001)
            counts[pattern] = tuple(map(int, found.groups()[:2]))
        self.assertEqual(counts["identical"], (52, 13))
        self.assertEqual(counts["disjoint"], (52, 52))
        self.assertEqual(counts["uneven"][0], 3 + 6 + 9 + 13)

    def test_json_has_sizes_and_phases(self) -> None:
        self.call_right(*self.small, "--gpus", "2", "--json", "report.json")
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
        self.call_right(*self.small, "--gpus", "2", "--timeline", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        bars = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "map" in json.dumps(event)]
        self.assertEqual(len(bars), 2 * (2 + 13 * 4))  # before the first row: -1 everywhere, and the numbers of the places
