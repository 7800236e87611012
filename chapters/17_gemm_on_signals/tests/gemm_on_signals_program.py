"""What is special about the program 17_gemm_on_signals."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    needs_nccl = ("gather_then_multiply",)
    help_says = ("in one kernel",)

    def test_no_peer_access(self) -> None:
        without = ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small)
        self.assert_fails(77, (*without, "--only", "gemm_on_signals", "--json", "x.json"),
                          r"skipped: no peer access from GPU 0 to GPU 1")

    def test_timeline_names_transfers_and_kernel(self) -> None:
        self.call_right(*self.small, "--gpus", "3", "--only", "gemm_on_signals", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in ("step 1: push shard 0 to rank 2", "step 2: push shard 2 to rank 0", "multiply shards as they come"):
            self.assertIn(name, text)
