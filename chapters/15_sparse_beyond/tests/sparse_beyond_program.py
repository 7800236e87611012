"""What is special about the program 15_sparse_beyond."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v9"
