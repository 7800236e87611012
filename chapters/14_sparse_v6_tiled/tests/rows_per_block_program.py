"""What is special about the program 14_rows_per_block, an experiment."""
import json
import re

import chapter_program

ROWS_PER_BLOCK = [1, 2, 4, 8, 16, 32, 64, 128]


class Program(chapter_program.ChapterProgram):
    variants = ("sweep",)
    help_says = ("--rows", "rows per block")
    no_variant = "v6_ordered"
    refused = {("--type", "f16"): "--type: 'f16' is not a type of this chapter"}

    def test_more_ranks_than_gpus(self) -> None:
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *self.small)
        self.assertRegex(self.call_right(*shared).stdout, r"(?m)^ *64 +\d")  # nothing is exchanged

    def test_patterns_and_indices(self) -> None:
        for pattern in ("zipf", "identical", "disjoint", "uneven"):
            for index in ("int32", "int64"):
                self.call_right(*self.small, "--gpus", "3", "--pattern", pattern, "--index", index)

    def test_json_and_table(self) -> None:
        text = self.call_right(*self.small, "--gpus", "2", "--json", "report.json").stdout
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.assertEqual(report["chapter"], "14_sparse_v6_tiled/rows_per_block")
        sweep = [result for result in report["results"] if result.get("section") == "sweep"]
        self.assertEqual([result["rows_per_block"] for result in sweep], ROWS_PER_BLOCK)
        for result in sweep:
            self.assertEqual(result["blocks"], -(-150 // result["rows_per_block"]))
            line = re.search(rf"(?m)^ *{result['rows_per_block']} +{result['blocks']} +([\d.]+(?: +[\d.]+)*) x$", text)
            self.assertIsNotNone(line, text)
            searches = [result[name] for name in ("ordered_ms", "prefetch_ms", "all_rows_ms", "all_rows_prefetch_ms", "skip_ms")]
            self.assertAlmostEqual(result["v5_by_ordered"], result["v5_ms"] / result["ordered_ms"])
            for cell, value in zip(line.group(1).split(), [*(1e3 * ms for ms in searches), result["v5_by_ordered"]]):
                self.assertAlmostEqual(float(cell), value, delta=0.051)
            if self.backend == "virtual":  # where equal work takes equal time
                self.assertEqual(len(set(searches)), len(searches), "each is another search")
