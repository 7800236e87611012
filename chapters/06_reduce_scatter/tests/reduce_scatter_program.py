"""What is special about the program 06_reduce_scatter."""
import dense_program


class Program(dense_program.DenseProgram):
    needs_nccl = ("nccl",)
    help_says = ("X by columns, W by rows",)
    no_variant = "ring"
    one_block_and_eight = ("--m 16 --n 256 --k 8", "--m 128 --n 256 --k 8")
    kernels = {"nccl": "multiply: cuBLAS; reduce-scatter: ncclReduceScatter",
               "rotating": "step N: multiply chunk N: cuBLAS; add chunk N: add",
               "rotating_f32": "step N: multiply chunk N: cuBLAS; add chunk N: add",
               "rotating_zero_filled": "step N: multiply chunk N: cuBLAS; add chunk N: add",
               "all_to_all": "step N: multiply chunk N: cuBLAS; sum: sum_slots",
               "split_only": "step N: multiply chunk N: cuBLAS", "communication_only": ""}
