"""What is special about the program 17_pieces, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    help_says = ("Each shard in pieces",)
