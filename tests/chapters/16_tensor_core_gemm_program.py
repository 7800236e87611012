"""What is special about the program 16_tensor_core_gemm."""
from typing import Dict, Sequence

import dense_program
from program_test_case import ONCE


class Program(dense_program.DenseProgram):
    variants = ("one_stage", "ring_of_stages", "specialised", "persistent", "tma_store")
    types = ("f16", "bf16")
    sizes = ("--m", "33", "--n", "960", "--k", "24", *ONCE)  # of n each of up to 8 ranks has a multiple of 8
    tiny_sizes = ("--m", "1", "--n", "64", "--k", "8", *ONCE)
    help_says = ("by our own kernel",)
    no_variant = "ring"

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        return {**super().refused_by_all(),
                ("--type", "f32"): "--type: 'f32' is not a type of this chapter .known: f16, bf16.",
                ("--m", "8", "--n", "8", "--k", "9"): "--k: rows of 9 elements of 16 bits are no multiple of 16 bytes",
                ("--m", "8", "--n", "12", "--k", "8"): "--n: rows of 12 elements of 16 bits are no multiple of 16 bytes"}
