"""What is special about the program 21_small_all_reduce."""
import dense_program


class Program(dense_program.DenseProgram):
    types = ("bf16", "f16", "f32")
    needs_nccl = ("nccl",)
    help_says = ("few rows",)
    one_block_and_eight = ("--m 4 --n 1024 --k 8", "--m 32 --n 1024 --k 8")
    kernels = {"nccl": "multiply: cuBLAS; all-reduce: ncclAllReduce",
               "one_shot_with_exit": "multiply: cuBLAS; one-shot all-reduce: one_shot", "one_shot": "multiply: cuBLAS; one-shot all-reduce: one_shot",
               "two_shot": "multiply: cuBLAS; two-shot all-reduce: two_shot",
               "flag_in_data": "multiply: cuBLAS; flag-in-data all-reduce: flag_in_data",
               "word_is_flag": "multiply: cuBLAS; word-is-flag all-reduce: word_is_flag"}
