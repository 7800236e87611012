"""What is special about the program 05_two_streams."""
import dense_program

ALGORITHMS = ("split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams")


class Program(dense_program.DenseProgram):
    help_says = ("--type",)
    no_variant = "ring"
    kernels = {name: "step N: multiply shard N: cuBLAS" for name in ALGORITHMS}

    def test_no_peer_access(self) -> None:
        without = ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small)
        result = self.assert_fails(77, (*without, "--only", "ring_two_streams,pull_two_streams", "--json", "x.json"),
                                   r"skipped: no peer access from GPU 0 to GPU 1")
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_what_cannot_run_is_left_out_of_the_report_and_the_rest_is_in_it(self) -> None:
        report = self.report("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small)
        self.assert_left_out(report, ALGORITHMS[1:], "no peer access from")
        measured = [result["variant"] for result in report["results"] if "device_ms" in result]
        self.assertEqual(measured, ["gemm_only", "split_only"])
