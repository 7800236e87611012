"""What is special about the program 08_sparse_baselines, and the options that all chapters on sparse gradients have."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "nccl"
    kernels = {"dense_nccl": "scatter: write_rows; all_reduce: ncclAllReduce; "
                             "find: cub::DeviceSelect::Flagged flag_nonzero_rows; gather: read_rows",
               "host_gloo": ""}
    refused = {
        ("--rows", "0"): "--rows: 0 is not between 1",
        ("--features", "0"): "--features: 0 is not between 1",
        ("--entries", "-1"): "--entries: -1 is not between 0",
        ("--pattern", "dense"): "--pattern: 'dense' is not known",
        ("--index", "int16"): "--index: 'int16' is not known",
        ("--index", "int32", "--rows", "3000000000"): "--index: int32 cannot number so many --rows",
        ("--entries", "0", "--duplicates", "1"): "--duplicates: there is no row to repeat",
        ("--rows", "20", "--entries", "1", "--duplicates", "300", "--type", "bf16", "--gpus", "2"):
            "--duplicates: 301 entries have the same row, and a sum of more than 256 is not exact in bf16",
        ("--rows", "10", "--entries", "11"): "--entries: 11 different rows are wanted of a table of 10",
        ("--rows", "10", "--entries", "4", "--gpus", "3", "--pattern", "disjoint"):
            "--entries: 12 different rows are wanted of a table of 10"}

    def test_no_rows_at_all(self) -> None:
        self.assertIn("all 0 rows of 5 elements are right",
                      self.call_right("--gpus", "3", *self.small[:4], "--entries", "0", "--duplicates", "0").stdout)

    def test_rows_that_cancel(self) -> None:
        # One feature of small integers: some rows add up to 0, and the dense way leaves just these out.
        self.call_right("--gpus", "8", "--rows", "60", "--features", "1", "--entries", "40", "--type", "bf16",
                        "--duplicates", "9", "--only", "dense_nccl,host_gloo")

    def test_the_sizes_of_a_gradient_are_printed(self) -> None:
        text = self.call_right("--gpus", "2", *self.small, "--pattern", "identical").stdout
        self.assertIn("15 entries on rank 0, N = 22 rows of single ranks, G = 11 different ones, d = N / G = 2.000", text)

    def test_more_ranks_than_gpus(self) -> None:
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *self.small)
        self.assert_fails(77, (*shared, "--only", "dense_nccl"),
                          "skipped: NCCL wants a GPU for each rank, and all ranks share one here")
        self.assert_left_out(self.report(*shared), ["dense_nccl"], "NCCL wants a GPU for each rank")
        text = self.call_right(*shared).stdout  # the host needs no NCCL
        self.assertRegex(text, r"(?m)^dense_nccl is left out: NCCL wants a GPU for each rank")
        self.assertIn("elements are right: host_gloo\n", text)

    def test_a_table_that_does_not_fit(self) -> None:
        self.assert_fails(2, ("--rows", "2000000", "--features", "2048", "--entries", "1", "--duplicates", "0", "--gpus", "2",
                              "--only", "dense_nccl"), "not enough free memory")

    def test_json(self) -> None:
        self.need_gpus(2)
        report = self.report_of()
        self.assertEqual(report["chapter"], "08_sparse_baselines")
        self.assertEqual((report["options"]["rows"], report["options"]["features"], report["options"]["entries"]), (97, 5, 11))
        self.assertEqual(self.assert_calls(report)["dense_nccl"]["rows_of_ranks"], 22)
