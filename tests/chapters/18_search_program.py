"""What is special about the program 18_search, an experiment."""
import tensor_core_program

CHOICES = ("128x256_4_m8_by16", "128x256_4_m8_by4", "128x256_4_m8_by1", "128x256_4_n8_by16", "128x256_4_m1_by16",
           "128x256_3_m8_by16", "128x128_6_m8_by16", "64x256_5_m8_by16")


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    ranks, tiny_ranks = "2", "4"  # sixteen variants of the chapter's two kernels, which run on more in the chapter's own tests
    variants = tuple(f"{kernel}_{choice}" for kernel in ("in", "ahead") for choice in CHOICES)
    help_says = ("orders of tiles",)
