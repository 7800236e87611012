"""What is special about the program 11_sparse_v3_graph."""
import json
import re

import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "graph"
    kernels = {"v1_nonzero": "map: cub::DeviceSelect::Flagged mark_equal write_numbers; scatter: scatter_rows; "
                             "all_reduce: ncclAllReduce",
               "v2_where": "map: invert_sources mark_equal write_numbers write_where; scatter: scatter_rows; "
                           "all_reduce: ncclAllReduce",
               "v3_graph": "map: mark_equal reset_sources write_where; gather: count_lost gather_rows; "
                           "all_reduce: ncclAllReduce"}

    def test_one_graph_serves_calls_of_all_lengths(self) -> None:
        # 23 rows; of every third one, on rank 0 and rank 1, the rows 0, 3, ..., 21; none; 23 again.
        text = self.call_right(*self.small, "--gpus", "2", "--only", "v3_graph").stdout
        self.assertIn("v3_graph: calls of 23, 8, 0, 23 rows are right, on one graph\n", text)
        self.assertNotIn("calls of", self.call_right(*self.small, "--gpus", "2", "--no-check").stdout)

    def test_the_recording_is_told_apart(self) -> None:
        text = self.call_right(*self.small, "--gpus", "2", "--json", "report.json").stdout
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
        results = self.assert_calls(self.report_of())
        self.assertIn("gather_ms", results["v3_graph"])
        self.assertNotIn("gather_ms", results["v2_where"])

    def test_skew_and_duration_of_the_all_reduce_are_apart(self) -> None:
        text = self.call_right(*self.small, "--gpus", "2").stdout
        header = next(line for line in text.splitlines() if "all_reduce" in line)
        self.assertTrue(re.search(r"\ball_reduce\b.*\bskew\b", header), header)
