"""What is special about the program 12_sparse_v4_broadcast_eq."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v9"
    kernels = {"dense_nccl": "scatter: write_rows; all_reduce: ncclAllReduce; find: cub::DeviceSelect::Flagged flag_nonzero_rows; "
                             "gather: read_rows",
               "v2_where": "map: invert_sources mark_equal write_numbers write_where; scatter: scatter_rows; "
                           "all_reduce: ncclAllReduce",
               "v3_graph": "map: mark_equal reset_sources write_where; gather: count_lost gather_rows; "
                           "all_reduce: ncclAllReduce",
               "v4_broadcast_eq": "map: compare_all find_true; scatter: scatter_rows; all_reduce: ncclAllReduce"}

    def test_a_matrix_beyond_the_budget_is_refused(self) -> None:
        machine = self.machine(memory_mib=4)
        many = ("--rows", "4000", "--features", "1", "--entries", "2000", "--iterations", "1", "--warmup", "0")
        self.assert_fails(2, ("--machine", machine, "--gpus", "2", *many, "--only", "v4_broadcast_eq"),
                          r"the matrix of 2000 x \d+ bytes takes \d+ MiB, and its budget is 1 MiB")
