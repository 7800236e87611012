"""What is special about the program 06_reduce_scatter."""
import dense_program

ALGORITHMS = ("nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all")


class Program(dense_program.DenseProgram):
    variants = (*ALGORITHMS, "split_only", "communication_only")
    right = ALGORITHMS
    needs_nccl = ("nccl",)
    help_says = ("X by columns, W by rows",)
    no_variant = "ring"

    def test_json_has_errors(self) -> None:
        self.need_gpus(2)
        results = self.report_of()["results"]
        errors = {result["variant"]: result for result in results if result.get("section") == "error"}
        self.assertEqual(tuple(errors), ALGORITHMS)
        for name, error in errors.items():
            with self.subTest(name):
                self.assertLess(0, error["rms_error"])
                self.assertLess(error["rms_error"], error["largest_error"])
                self.assertLess(error["largest_error"], error["bound"])
        self.assertLess(errors["rotating_f32"]["bound"], errors["all_to_all"]["bound"])
