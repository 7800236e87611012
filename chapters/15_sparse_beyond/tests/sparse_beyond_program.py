"""What is special about the program 15_sparse_beyond."""
import counted
import sparse_program
from program_test_case import ONCE


class Program(sparse_program.SparseProgram):
    no_variant = "v9"
    SUM = "cub::DeviceRadixSort::SortPairs cub::DeviceRunLengthEncode::Encode cub::DeviceScan::ExclusiveSum number_entries"
    PLAN = "count_bits cub::DeviceScan::ExclusiveSum list_rows mark_rows ncclAllGather write_header"
    RANGES = "count_bits cub::DeviceScan::ExclusiveSum find_ranges list_rows mark_rows ncclAllGather write_header"
    HOMES = "count_bits cub::DeviceScan::ExclusiveSum flag_homes list_homes list_rows mark_rows ncclAllGather write_header"
    kernels = {
        "dense_nccl": "scatter: write_rows; all_reduce: ncclAllReduce; "
                      "find: cub::DeviceSelect::Flagged flag_nonzero_rows; gather: read_rows",
        "v6_ordered": "map: ordered_search; scatter: scatter_rows; all_reduce: ncclAllReduce",
        "v6_table": "map: look_up_places note_places; scatter: scatter_rows; all_reduce: ncclAllReduce",
        "v6_binary": "map: search_by_halves; scatter: scatter_rows; all_reduce: ncclAllReduce",
        "bitmap_plan": f"coalesce: {SUM}; plan: {PLAN}; sum: sum_entries; all_reduce: fill_rows ncclAllReduce",
        "range_owners": f"coalesce: {SUM}; plan: {RANGES}; sum: sum_entries; all_reduce: add_range",
        "contributor_owners": f"coalesce: {SUM}; plan: {PLAN}; sum: sum_given_rows; all_reduce: add_owned_rows",
        "owners_bf16": f"coalesce: {SUM}; plan: {PLAN}; sum: sum_given_rows; all_reduce: add_owned_rows widen_rows",
        "owners_f16": f"coalesce: {SUM}; plan: {PLAN}; sum: sum_given_rows; all_reduce: add_owned_rows widen_rows",
        "reduce_scatter": f"coalesce: {SUM}; plan: {HOMES}; sum: sum_given_rows; all_reduce: add_rows_at_home",
        "scatter_fetch": f"coalesce: {SUM}; plan: {HOMES}; sum: sum_given_rows; all_reduce: add_rows_at_home; fetch: fetch_rows"}

    def test_owners_share_the_rows(self) -> None:
        """If all ranks have the same rows, each of them adds up about equally many."""
        if self.backend != "virtual":
            self.skipTest("in the model")
        owners = ("range_owners", "contributor_owners", "owners_bf16", "owners_f16", "reduce_scatter", "scatter_fetch")
        self.call_right("--gpus", "4", "--rows", "128", "--features", "2048", "--entries", "64", "--duplicates", "0",
                        "--pattern", "identical", *ONCE, "--no-check", "--only", ",".join(owners), "--timeline", "trace.json")
        calls = counted.calls_of(self.folder / "trace.json")
        self.assertEqual(set(calls), set(owners))
        for name, call in calls.items():
            with self.subTest(name):
                us = [sum(bar["dur"] for bar in call.kernels(gpu) if bar["args"]["what"].startswith("add_")) for gpu in call.bars]
                self.assertEqual(len(us), 4)
                self.assertLess(max(us), 1.3 * min(us))

    def test_a_gradient_that_no_gpu_holds_is_refused_at_once(self) -> None:
        self.assert_fails(2, ("--entries", str(10**12), "--rows", str(2 * 10**12), "--index", "int64"),
                          r"--entries: those of one GPU take \d+ MiB, and GPU 0 has ")

    def test_rows_that_the_host_cannot_draw_are_refused_at_once(self) -> None:
        large = ("--gpus", "2", "--rows", str(10**12), "--index", "int64", "--features", "1", "--only", "contributor_owners")
        if self.backend == "virtual":  # real GPUs have their own memory
            self.assert_fails(2, (*large, "--entries", str(6 * 10**9), "--machine", "h100-nvlink"),
                              r"--entries --rows: to draw the rows of all GPUs takes \d+ MiB, and this computer has \d+")
        self.assert_fails(2, (*large, "--entries", "10", "--pattern", "zipf"),
                          r"--entries --rows: to draw the rows of all GPUs takes \d+ MiB, and this computer has \d+")

    def test_the_last_row_of_a_table_of_2_to_the_10_by_lists(self) -> None:
        self.call_right("--gpus", "8", "--rows", "1024", "--entries", "31", "--duplicates", "5", "--pattern", "uneven", "--seed", "17",
                        *self.small[-4:])
