"""What is special about the program 20_two_nodes."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    needs_nccl = ("gather_then_multiply", "flat_ring", "two_level", "communication_only")
    help_says = ("on several nodes", "--gpus-per-node COUNT")
    RAILS = "step N: shard N to rank N, shard N comes: group"
    kernels = {"kernel_only": "multiply_specialised", "gather_then_multiply": "gather A: ncclAllGather; multiply: cuBLAS",
               "flat_ring": "step N: multiply shard N: cuBLAS; step N: pass shard N: group",
               "flat": "multiply shards as they come: multiply_on_signals",
               "two_level": f"{RAILS}; multiply shards as they come: multiply_on_signals", "communication_only": RAILS}
    counted_call = "--m 33 --n 960 --k 24 --gpus 4 --gpus-per-node 2"
    refused = {("--gpus", "4", "--gpus-per-node", "3"): "--gpus-per-node: 3 does not divide the 4 of --gpus",
               ("--gpus", "2", "--gpus-per-node", "4"): "--gpus-per-node: 4 does not divide the 2 of --gpus",
               ("--gpus-per-node", "0"): "--gpus-per-node: 0 is not between 1 and"}

    @property
    def max_gpus(self) -> int:
        return 64 if self.backend == "virtual" else 16

    def test_more_ranks_than_gpus(self) -> None:
        if self.backend != "virtual":
            super().test_more_ranks_than_gpus()
            return
        # A virtual machine has as many nodes as are asked for.
        text = self.call_right("--machine", self.machine(gpus=2), "--gpus", "5", *self.small).stdout
        self.assertIn(self.are_right(), text)

    def test_nodes_are_told_and_kept(self) -> None:
        for per_node in ("2", "4"):
            report = self.report("--gpus", "4", "--gpus-per-node", per_node, "--only", "two_level", *self.small)
            self.assertEqual(report["options"]["gpus_per_node"], int(per_node))

    def test_nodes_need_a_machine_that_knows_them(self) -> None:
        if self.backend == "virtual":
            self.assert_refused({("--gpus", "2", "--machine", "h100-pcie"): "--machine: machine description: 'h100-pcie' has no 'nodes'"})

    def test_timeline_names_both_phases(self) -> None:
        self.call_right(*self.small, "--gpus", "4", "--only", "two_level", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in ("step 1: shard 0 to rank 2, shard 2 comes", "push shard 0 to rank 1", "push shard 2 to rank 1"):
            self.assertIn(name, text)

    def test_rails_bring_first_what_is_multiplied_first(self) -> None:
        """The kernel takes the left node's tiles behind its own: so of three nodes that one's shard comes in the first step."""
        self.call_right("--m", "33", "--n", "96", "--k", "24", *self.small[-4:], "--gpus", "6", "--gpus-per-node", "2",
                        "--only", "two_level", "--timeline", "trace.json")
        text = (self.folder / "trace.json").read_text(encoding="utf-8")
        for name in ("step 1: shard 0 to rank 2, shard 4 comes", "step 2: shard 0 to rank 4, shard 2 comes"):
            self.assertTrue(name in text, name)
