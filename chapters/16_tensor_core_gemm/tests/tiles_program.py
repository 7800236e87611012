"""What is special about the program 16_tiles, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    ranks, tiny_ranks = "2", "4"  # ranks do not communicate
    help_says = ("other tiles",)
