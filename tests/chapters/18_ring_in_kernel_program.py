"""What is special about the program 18_ring_in_kernel."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    variants = ("tma_store", "nccl", "ring_two_streams", "ring_in_kernel", "ring_in_turns", "ring_ahead")
    needs_nccl = ("nccl",)
    help_says = ("one kernel",)
