"""What is special about the program 17_few_rows, an experiment."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    types = ("f16",)
    help_says = ("blocks of the kernel push",)

    def test_more_ranks_than_gpus(self) -> None:
        """A rank with one multiprocessor has none that pushes; the others still run."""
        text = self.call_right("--machine", self.machine(gpus=1), "--gpus", "5", *self.small).stdout
        self.assertRegex(text, "(?m)^pushed_by_blocks is left out: each of 2 tiles, and a block that pushes, needs a multiprocessor of 1$")
        self.assertIn(self.are_right("fitting", "gemm_on_signals"), text)
