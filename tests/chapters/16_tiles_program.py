"""What is special about the program 16_tiles, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    ranks, tiny_ranks = "2", "4"  # which have nothing to do with each other
    variants = ("128x256_2", "128x256_3", "128x256_4", "128x128_4", "128x128_6", "64x256_4", "64x256_5", "64x128_8", "64x64_8", "pairs_128x256_4", "fitting")
    help_says = ("other tiles",)
