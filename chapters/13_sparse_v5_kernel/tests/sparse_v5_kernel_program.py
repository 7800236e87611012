"""What is special about the program 13_sparse_v5_kernel."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v9"
