"""What is special about the program 17_gemm_on_signals."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    needs_nccl = ("gather_then_multiply",)
    help_says = ("in one kernel",)
    kernels = {"kernel_only": "multiply_specialised", "gather_then_multiply": "gather A: ncclAllGather; multiply: cuBLAS",
               "ring_two_streams": "step N: multiply shard N: cuBLAS", "communication_only": "",
               "gemm_on_signals": "multiply shards as they come: multiply_on_signals"}

    def test_no_peer_access(self) -> None:
        without = ("--machine", self.machine_without_peer_access(), "--gpus", "2", *self.small)
        self.assert_fails(77, (*without, "--only", "gemm_on_signals", "--json", "x.json"),
                          r"skipped: no peer access from GPU 0 to GPU 1")

    def test_timeline_names_transfers_and_kernel(self) -> None:
        self.call_right(*self.small, "--gpus", "3", "--only", "gemm_on_signals", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in ("step 1: push shard 0 to rank 2", "step 2: push shard 2 to rank 0", "multiply shards as they come"):
            self.assertIn(name, text)

    def test_the_first_cause_is_told(self) -> None:
        """Nine ranks on one GPU of eight multiprocessors: a kernel that waits has no room."""
        shared = ("--machine", self.machine(gpus=1), "--gpus", "9", *self.sizes_on(9))
        self.assert_fails(77, (*shared, "--only", "gemm_on_signals"), r"skipped: rank \d: the kernel waits in 1 blocks .* has room for 0")

    def test_sizes_are_refused_with_the_multiple_of_all_ranks(self) -> None:
        self.assert_fails(2, ("--gpus", "3", "--n", "16"), "--n: rows of 6 elements .* --n must be a multiple of 24")
