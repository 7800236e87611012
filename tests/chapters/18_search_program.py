"""What is special about the program 18_search, an experiment."""
import tensor_core_program

CHOICES = ("128x256_{}_m8", "128x256_{}_n8", "128x256_{}_m1", "128x128_4_m8", "64x256_4_m8")


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    variants = tuple(f"{kernel}_{choice.format(stages)}" for kernel, stages in (("in", 4), ("ahead", 3)) for choice in CHOICES)
    help_says = ("orders of tiles",)
