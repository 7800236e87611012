"""What is special about the program 15_sparse_beyond."""
import sparse_program


class Program(sparse_program.SparseProgram):
    variants = ("dense_nccl", "v6_ordered", "v6_table", "v6_binary", "bitmap_plan", "range_owners", "contributor_owners",
                "owners_bf16", "owners_f16", "reduce_scatter", "scatter_fetch")
    no_variant = "v9"
