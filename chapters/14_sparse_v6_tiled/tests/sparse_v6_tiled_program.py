"""What is special about the program 14_sparse_v6_tiled."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v4_broadcast_eq"
    kernels = {"v5_kernel": "map: search_tiles; scatter: scatter_rows; all_reduce: ncclAllReduce",
               "v6_ordered": "map: ordered_search; scatter: scatter_rows; all_reduce: ncclAllReduce",
               "v6_prefetch": "map: prefetch_search; scatter: scatter_rows; all_reduce: ncclAllReduce",
               "v6_all_rows": "map: ordered_search; scatter: scatter_rows; all_reduce: ncclAllReduce",
               "v6_skip": "map: ordered_search; scatter: scatter_rows; all_reduce: ncclAllReduce"}

    def test_json(self) -> None:
        for result in self.assert_calls(self.report_of()).values():
            self.assertGreater(result["map_ms"], 0)
