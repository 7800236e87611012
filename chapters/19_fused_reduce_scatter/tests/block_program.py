"""What is special about the program 19_block, an experiment."""
from typing import Dict, Sequence

import dense_program
from program_test_case import ONCE

OF_CHAPTER_07 = ("vanilla", "sequence_parallel", "overlapped")


class Program(dense_program.DenseProgram):
    """The variants of chapter 07, and one more, which needs rows that TMA can step over and elements of 16 bits."""

    needs_nccl = ("vanilla", "sequence_parallel")
    help_says = ("m tokens, feed-forward size n, hidden size k",)
    no_variant = "ring"
    types: Sequence[str] = ("f16", "bf16")  # of all variants
    sizes = ("--m", "33", "--n", "960", "--k", "24", *ONCE)  # each rank's share of n is a multiple of 8, on 5 ranks too
    tiny_sizes = ("--m", "1", "--n", "64", "--k", "8", *ONCE)

    def setUp(self) -> None:
        super().setUp()
        self.small = self.sizes  # the chapter's own sizes split k, not n

    def left_out(self) -> Dict[str, Sequence[str]]:
        """Why `fused` may be left out, and with which arguments."""
        return {"its kernels multiply elements of 16 bits": (*self.sizes, "--type", "f32"),
                "--k: rows of 20 elements of 16 bits": ("--m", "33", "--n", "64", "--k", "20", *ONCE),
                "--n: rows of 20 elements of 16 bits": ("--m", "33", "--n", "40", "--k", "24", *ONCE)}

    def test_others_run_where_fused_cannot(self) -> None:
        for reason, arguments in self.left_out().items():
            with self.subTest(reason):
                text = self.call_right("--gpus", "2", *arguments).stdout
                self.assertRegex(text, rf"(?m)^fused is left out: {reason}")
                self.assertIn(self.are_right(*OF_CHAPTER_07), text)
                result = self.assert_fails(77, ("--gpus", "2", *arguments, "--only", "fused"), f"skipped: {reason}")
                self.assertNotRegex(result.stdout, "elements are right|TFLOP")
                skipped, = (each for each in self.report("--gpus", "2", *arguments)["results"] if each.get("status") == "skipped")
                self.assertEqual(skipped["variant"], "fused")
                self.assertIn(reason, skipped["reason"])
