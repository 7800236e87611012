"""What is special about the program 06_reduce_scatter."""
import dense_program

ALGORITHMS = ("nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all")


class Program(dense_program.DenseProgram):
    variants = (*ALGORITHMS, "split_only", "communication_only")
    right = ALGORITHMS
    needs_nccl = ("nccl",)
    help_says = ("X by columns, W by rows",)
    no_variant = "ring"
