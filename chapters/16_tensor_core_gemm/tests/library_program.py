"""What is special about the program 16_library, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    help_says = ("cuBLASLt",)
