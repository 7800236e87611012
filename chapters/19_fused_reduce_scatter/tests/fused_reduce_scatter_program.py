"""What is special about the program 19_fused_reduce_scatter."""
import tensor_core_program
from program_test_case import ONCE


class Program(tensor_core_program.TensorCoreProgram):
    """Each rank's share of k is a multiple of 8."""

    needs_nccl = ("nccl",)
    help_says = ("one kernel multiplies",)
    sizes = ("--m", "33", "--n", "72", "--k", "960", *ONCE)  # each rank's share of k is a multiple of 8, on 5 ranks too
    shared = "--k"
    tiny_sizes = ("--m", "1", "--n", "8", "--k", "192", *ONCE)
    usual_sizes = "--m 33 --n 72 --k 960"
    kernels = {"nccl": "multiply: cuBLAS; reduce-scatter: ncclReduceScatter",
               "rotating": "step N: multiply chunk N: cuBLAS; add chunk N: add",
               "all_to_all": "step N: multiply chunk N: cuBLAS; sum: sum_slots",
               "fused": "multiply, send and add: scatter_tiles", "fused_f32": "multiply, send and add: scatter_tiles",
               "own_product": "multiply_specialised"}
