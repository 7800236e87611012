"""What is special about the program 13_sparse_v5_kernel."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v9"
    kernels = {"dense_nccl": "scatter: write_rows; all_reduce: ncclAllReduce; find: cub::DeviceSelect::Flagged flag_nonzero_rows; "
                             "gather: read_rows",
               "v4_broadcast_eq": "map: compare_all find_true; scatter: scatter_rows; all_reduce: ncclAllReduce",
               "v5_kernel": "map: search_tiles; scatter: scatter_rows; all_reduce: ncclAllReduce"}
