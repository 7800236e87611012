"""What is special about the program 13_sparse_v5_kernel."""
import sparse_program


class Program(sparse_program.SparseProgram):
    variants = ("dense_nccl", "v4_broadcast_eq", "v5_kernel")
    no_variant = "v9"
