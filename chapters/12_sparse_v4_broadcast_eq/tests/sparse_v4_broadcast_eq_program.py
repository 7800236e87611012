"""What is special about the program 12_sparse_v4_broadcast_eq."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v9"

    def test_a_matrix_beyond_the_budget_is_refused(self) -> None:
        machine = self.machine(memory_mib=4)
        many = ("--rows", "4000", "--features", "1", "--entries", "2000", "--iterations", "1", "--warmup", "0")
        self.assert_fails(2, ("--machine", machine, "--gpus", "2", *many, "--only", "v4_broadcast_eq"),
                          r"the matrix of 2000 x \d+ bytes takes \d+ MiB, and its budget is 1 MiB")
