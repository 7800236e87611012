"""What is special about the program 19_fused_reduce_scatter."""
from typing import Dict, Sequence

import dense_program
from program_test_case import ONCE

ALGORITHMS = ("nccl", "rotating", "all_to_all", "fused", "fused_f32")


class Program(dense_program.DenseProgram):
    """Each rank's share of k is a multiple of 8."""

    variants = (*ALGORITHMS, "own_product")
    right = ALGORITHMS
    needs_nccl = ("nccl",)
    help_says = ("one kernel multiplies",)
    no_variant = "ring"
    types: Sequence[str] = ("f16", "bf16")
    sizes = ("--m", "33", "--n", "72", "--k", "960", *ONCE)  # of k each of up to 8 ranks, and of 5, has a multiple of 8
    tiny_sizes = ("--m", "1", "--n", "8", "--k", "960", *ONCE)
    usual_sizes = "--m 33 --n 72 --k 960"

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        return {**super().refused_by_all(),
                ("--type", "f32"): f"--type: 'f32' is not a type of this chapter .known: {', '.join(self.types)}.",
                ("--gpus", "1", "--m", "8", "--n", "8", "--k", "9"): "19\\S+: --k: rows of 9 elements of 16 bits are no multiple of 16 bytes",
                ("--gpus", "1", "--m", "8", "--n", "12", "--k", "8"): "19\\S+: --n: rows of 12 elements of 16 bits are no multiple of 16 bytes"}
