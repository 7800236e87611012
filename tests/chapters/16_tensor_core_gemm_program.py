"""What is special about the program 16_tensor_core_gemm."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    variants = ("one_stage", "ring_of_stages", "specialised", "persistent", "tma_store", "cluster_multicast")
    help_says = ("by our own kernel",)
