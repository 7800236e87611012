"""Tests of chapter 16's programs: each rank computes its own columns, whose row pitch must be valid for TMA."""
from typing import Dict, Sequence

import dense_program
from program_test_case import ONCE


class TensorCoreProgram(dense_program.DenseProgram):
    """Sizes are multiples of 8, and so is each rank's share of n."""

    types: Sequence[str] = ("f16", "bf16")
    sizes = ("--m", "33", "--n", "960", "--k", "24", *ONCE)  # n / ranks is a multiple of 8 for 1 to 6 and 8 ranks
    shared = "--n"  # grows with the number of ranks, because kernels are slow on virtual GPUs
    tiny_sizes = ("--m", "1", "--n", "64", "--k", "8", *ONCE)
    usual_sizes = "--m 33 --n 960 --k 24"
    no_variant = "ring"

    def sizes_on(self, ranks: int) -> Sequence[str]:
        sizes = list(self.sizes)
        value = sizes.index(self.shared) + 1
        sizes[value] = str(int(sizes[value]) // 8 * ranks)
        return sizes

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        return {**super().refused_by_all(),
                ("--type", "f32"): f"--type: 'f32' is not a type of this chapter .known: {', '.join(self.types)}.",
                ("--gpus", "1", "--m", "8", "--n", "8", "--k", "9"): f"{self.program.name[:2]}\\S+: --k: rows of 9 elements of 16 bits are no multiple of 16 bytes",
                ("--gpus", "1", "--m", "8", "--n", "12", "--k", "8"): f"{self.program.name[:2]}\\S+: --n: rows of 12 elements of 16 bits are no multiple of 16 bytes"}
