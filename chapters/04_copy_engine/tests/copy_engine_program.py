"""What is special about the program 04_copy_engine."""
import dense_program
from program_test_case import ONCE


class Program(dense_program.DenseProgram):
    timed = ("split_only", "copy_engine_ring", "communication_only")
    corrupted = {name: "" for name in ("first_push", "split_only", "copy_engine_ring")}
    help_says = ("copy engines",)
    no_variant = "pull"
    kernels = {"split_only": "step N: multiply shard N: cuBLAS", "copy_engine_ring": "step N: multiply shard N: cuBLAS",
               "communication_only": ""}

    def test_each_variant_alone(self) -> None:
        for variant in self.all_variants():
            with self.subTest(variant):
                self.call_right("--gpus", "2", "--only", variant, *self.small)

    def test_wrong_result(self) -> None:
        for variant in self.corrupted:
            with self.subTest(variant):
                self.assert_fails(1, ("--corrupt", "--gpus", "2", "--only", variant, *self.small, "--json", "x.json"),
                                  r"wrong result|are wrong")

    def test_takes_two(self) -> None:
        self.assert_fails(77, ("--gpus", "1", "--only", "first_push", *self.small), "skipped.*two ranks")
        one = self.call_right("--gpus", "1", *self.small).stdout
        self.assertIn("first_push is left out", one)

    def test_no_peer_access(self) -> None:
        machine = self.machine_without_peer_access()
        without = ("--machine", machine, "--gpus", "2", *self.small)
        for variants in ("first_push", "copy_engine_ring,communication_only"):
            self.assert_fails(77, (*without, "--only", variants, "--json", "x.json"), "skipped: .*no peer access from GPU 0 to")
        report = self.report(*without)
        self.assert_left_out(report, ["first_push", "copy_engine_ring", "communication_only"], "no peer access")
        measured = [result["variant"] for result in report["results"] if "device_ms" in result]
        self.assertEqual(measured, ["gemm_only", "split_only"])

    def test_sums_without_a_bound(self) -> None:
        self.assert_fails(2, ("--gpus", "1", "--m", "1", "--n", "1", "--k", str(2**22), *ONCE, "--only", "split_only"),
                          "--k: sums of so many products")
