"""What is special about the program 15_ahead, an experiment."""
from typing import Any, Dict

import sparse_program


class Program(sparse_program.SparseProgram):
    variants = ("passes", "exchange", "after", "ahead", "in_chunks")
    right = ("exchange", "after", "ahead", "in_chunks")
    no_variant = "range_owners"
    refused = {("--type", "f16"): "--type: 'f16' is not a type of this chapter"}

    def command_lines(self) -> Any:
        return [line for line in super().command_lines() if "f16" not in line and "bf16" not in line]

    def rows(self, *arguments: str) -> Dict[str, Dict[str, Any]]:
        """The results, by variant."""
        results = self.report(*arguments)["results"]
        self.assertEqual({result["section"] for result in results}, {"ahead"})
        return {result["variant"]: result for result in results}

    def test_json(self) -> None:
        rows = self.rows("--gpus", "2", *self.small)
        self.assertEqual(list(rows), list(self.variants))
        for name, result in rows.items():
            self.assertGreater(result["host_ms"], 0)
            if name in ("passes", "exchange"):
                self.assertNotIn("exposed_ms", result)
            else:
                self.assertAlmostEqual(result["exposed_ms"], result["host_ms"] - rows["passes"]["host_ms"])

    def test_nothing_is_exposed_of_steps_without_the_passes_alone(self) -> None:
        rows = self.rows("--gpus", "2", *self.small, "--only", "after,in_chunks")
        self.assertEqual(list(rows), ["after", "in_chunks"])
        for result in rows.values():
            self.assertNotIn("exposed_ms", result)

    def test_the_earlier_the_less_is_exposed(self) -> None:
        if self.backend != "virtual":
            self.skipTest("times of the model")
        for gpus in ("2", "4", "8"):
            rows = self.rows("--gpus", gpus)
            exposed = {name: rows[name]["exposed_ms"] for name in ("after", "ahead", "in_chunks")}
            self.assertLess(exposed["in_chunks"], exposed["ahead"])
            self.assertLess(exposed["ahead"], exposed["after"])
            self.assertLess(exposed["in_chunks"], rows["exchange"]["host_ms"] / 2)

    def test_timeline_shows_plan_and_chunks(self) -> None:
        names = str(self.trace("--only", "in_chunks"))
        for name in ("plan", "forward", "backward 3", "send chunk 0", "add chunk 3"):
            self.assertIn(name, names)
