"""What is special about the program 07_mlp_block."""
import dense_program
from program_test_case import TINY


class Program(dense_program.DenseProgram):
    needs_nccl = ("vanilla", "sequence_parallel")
    help_says = ("m tokens, feed-forward size n, hidden size k",)
    no_variant = "ring"
    one_block_and_eight = ("--m 2 --n 2048 --k 2048", "--m 16 --n 2048 --k 2048")
    kernels = {"vanilla": "normalise: normalise_rows; cuBLAS ncclAllReduce; activate: activate_elements; add the residual: add_elements",
               "sequence_parallel": "normalise: normalise_rows; cuBLAS ncclAllGather ncclReduceScatter; activate: activate_elements; "
                                    "add the residual: add_elements",
               "overlapped": "normalise: normalise_rows; step N: multiply shard N: cuBLAS; activate: activate_elements; "
                             "step N: multiply chunk N: cuBLAS; sum: sum_slots; add the residual: add_elements"}

    def test_sizes_and_types(self) -> None:
        super().test_sizes_and_types()
        output = self.call_right("--gpus", "8", *TINY).stdout
        self.assertIn("all 10 elements are right", output, "5 tokens of hidden size 2")

    def test_json(self) -> None:
        super().test_json()
        for result in self.report_of()["results"][1:]:
            self.assertEqual(result["role"], "algorithm")
            self.assertGreater(result["ratio_to_gemm_only"], 1)
