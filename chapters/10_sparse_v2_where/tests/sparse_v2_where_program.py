"""What is special about the program 10_sparse_v2_where."""
import json

import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v3_graph"
    kernels = {"v1_nonzero": "map: cub::DeviceSelect::Flagged mark_equal write_numbers; scatter: scatter_rows; "
                             "all_reduce: ncclAllReduce",
               "v2_where": "map: invert_sources mark_equal write_numbers write_where; scatter: scatter_rows; "
                           "all_reduce: ncclAllReduce"}

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
        self.call_right(*self.small, "--gpus", "2", "--only", "v2_where", "--timeline", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        bars = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "map" in json.dumps(event)]
        # Before the loop -1 everywhere, twice, and the numbers of the rounds; behind it the places.
        self.assertEqual(len(bars), 2 * (4 + 13 * 2))
