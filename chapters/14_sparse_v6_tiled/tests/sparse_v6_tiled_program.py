"""What is special about the program 14_sparse_v6_tiled."""
import sparse_program


class Program(sparse_program.SparseProgram):
    no_variant = "v4_broadcast_eq"

    def test_json(self) -> None:
        for result in self.assert_calls(self.report_of()).values():
            self.assertGreater(result["map_ms"], 0)
