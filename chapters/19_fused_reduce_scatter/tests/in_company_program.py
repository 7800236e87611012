"""What is special about the program 19_in_company, an experiment."""
from typing import Sequence

import dense_program
from program_test_case import ONCE


class Program(dense_program.DenseProgram):
    """Each rank's share of k is a multiple of 8."""

    help_says = ("left to NCCL",)
    no_variant = "nccl"
    types: Sequence[str] = ("f16",)
    sizes = ("--m", "33", "--n", "72", "--k", "96", *ONCE)
    tiny_sizes = ("--m", "1", "--n", "8", "--k", "192", *ONCE)
    ranks, tiny_ranks = "3", "8"
    needs_nccl = tuple(f"fused_{n}_beside" for n in (4, 8, 16))
