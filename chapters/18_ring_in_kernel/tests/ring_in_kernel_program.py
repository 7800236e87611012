"""What is special about the program 18_ring_in_kernel."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    needs_nccl = ("nccl",)
    help_says = ("one kernel",)
