"""What is special about the program 06_reduce_scatter."""
import dense_program


class Program(dense_program.DenseProgram):
    needs_nccl = ("nccl",)
    help_says = ("X by columns, W by rows",)
    no_variant = "ring"
