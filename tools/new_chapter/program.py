"""What the tests know about the program NN_name."""
import dense_program


class Program(dense_program.DenseProgram):
    variants = ("new_chapter",)
    needs_nccl = ("new_chapter",)
