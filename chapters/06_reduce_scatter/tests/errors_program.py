"""What is special about the program 06_errors, an experiment."""
import dense_program


class Program(dense_program.DenseProgram):
    variants = ("nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all")
    needs_nccl = ("nccl",)
    help_says = ("What rounding costs",)
    no_variant = "split_only"

    def test_json(self) -> None:
        self.need_gpus(2)
        results = self.report_of()["results"]
        errors = {result["variant"]: result for result in results if result["section"] == "error"}
        self.assertEqual(tuple(errors), self.variants)
        for name, error in errors.items():
            with self.subTest(name):
                self.assertLess(0, error["rms_error"])
                self.assertLess(error["rms_error"], error["largest_error"])
                self.assertLess(error["largest_error"], error["bound"])
        self.assertLess(errors["rotating_f32"]["bound"], errors["all_to_all"]["bound"])
