"""What is special about the program 16_tensor_core_gemm."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    help_says = ("by our own kernel",)
