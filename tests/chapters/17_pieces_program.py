"""What is special about the program 17_pieces, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    variants = ("pieces_1", "pieces_2", "pieces_4")
    help_says = ("Each shard in one piece",)
