"""What is special about the program 18_search, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    ranks, tiny_ranks = "2", "4"  # sixteen variants of the chapter's two kernels, which run on more in the chapter's own tests
    help_says = ("orders of tiles",)
