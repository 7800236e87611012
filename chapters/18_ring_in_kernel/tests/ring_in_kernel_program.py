"""What is special about the program 18_ring_in_kernel."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    needs_nccl = ("nccl",)
    help_says = ("one kernel",)
    kernels = {"tma_store": "multiply_specialised", "nccl": "gather A: ncclAllGather; multiply: cuBLAS",
               "ring_two_streams": "step N: multiply shard N: cuBLAS", "ring_in_kernel": "multiply and pass on: multiply_and_pass_on",
               "ring_in_turns": "multiply and pass on in turns: multiply_and_pass_on", "ring_ahead": "multiply_ahead"}
