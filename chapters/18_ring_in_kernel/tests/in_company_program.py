"""What is special about the program 18_in_company, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    ranks, tiny_ranks = "3", "4"
    help_says = ("left to NCCL",)
    needs_nccl = tuple(f"gemm_on_signals_beside_{n}" for n in (4, 16)) + tuple(f"ring_ahead_{n}_beside" for n in (4, 8, 16))
