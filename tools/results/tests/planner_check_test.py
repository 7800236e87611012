#!/usr/bin/env python3
"""Tests of tools/results/planner.py: predictions beside measured rows, against rows computed by hand."""
import dataclasses
import json
import pathlib
import sys
import unittest
from typing import Any, Dict

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest
from tools.results import planner
from tools.pages import planner_page
from tools.results.results import load

# A stand-in for tools/results/plan.py: gives a fixed answer, and records its arguments.
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys
with open(pathlib.Path(__file__).parent / "asked", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
if "13" in sys.argv:
    sys.exit("plan: 13 is too many")
print(json.dumps({"operations": [{"operation": "x", "gemm_only_us": 90.0, "winner": "05_two_streams ring_two_streams", "variants": [
    {"chapter": "04_copy_engine", "variant": "copy_engine_ring", "predicted_us": 120.0},
    {"chapter": "05_two_streams", "variant": "ring_two_streams", "predicted_us": 110.0},
    {"chapter": "14_sparse_v6_tiled", "variant": "v6_ordered", "predicted_us": 2200.0},
    {"chapter": "15_sparse_beyond", "variant": "owners_bf16", "predicted_us": 1100.0, "differs": "in 16 bits"},
    {"chapter": "18_ring_in_kernel", "variant": "ring_ahead", "why_not": "no"}]}],
    "constants": [{"name": "a", "is": 1, "from": "05_two_streams/sweep to 07_mlp_block: 09_sparse"}, {"name": "b", "is": 2, "from": "assumed: x"}]}))
"""


def run_of(chapter: str, results: list, **options: Any) -> Dict[str, Any]:
    """A report."""
    return {"chapter": chapter, "modelled": False, "status": "ok", "date": "2026-01-01", "hardware": {"gpu": "NVIDIA H200"},
            "options": {"m": 10, "n": 20, "k": 30, "type": "f16", "gpus": 2, "variants": [], **options}, "results": results}


def result(variant: str, device_ms: float, role: str = "algorithm") -> Dict[str, Any]:
    """A variant of a dense run."""
    return {"variant": variant, "role": role, "device_ms": device_ms}


DENSE = run_of("05_two_streams", [result("gemm_only", 0.1, "gemm_only"), result("copy_engine_ring", 0.100),
                                  result("ring_two_streams", 0.125), result("unknown", 0.001),
                                  result("ring_ahead", 0.001), result("split_only", 0.1, "product")])


class StandIn(FolderTest):
    """With the stand-in for the planner."""

    def setUp(self) -> None:
        super().setUp()
        self.program = self.write("plan", STAND_IN)
        self.program.chmod(0o755)

    def rows(self, *runs: Dict[str, Any]) -> Dict[str, float]:
        """The errors of all rows, by the variant's name."""
        return {row.variant: row.error for row in planner.rows_of(runs, self.program)}


class PlannerCheckTest(StandIn):
    def test_errors_by_hand(self) -> None:
        errors = self.rows(DENSE)
        self.assertEqual(set(errors), {"gemm_only", "copy_engine_ring", "ring_two_streams"})
        self.assertAlmostEqual(errors["gemm_only"], -0.10)  # 90 for 100 us
        self.assertAlmostEqual(errors["copy_engine_ring"], 0.20)  # 120 for 100
        self.assertAlmostEqual(errors["ring_two_streams"], -0.12)  # 110 for 125
        self.assertAlmostEqual(planner.median_error(planner.rows_of([DENSE], self.program)), 0.12)

    def test_asked_for_what_was_measured(self) -> None:
        self.rows(DENSE)
        self.assertEqual((self.folder / "asked").read_text().strip(),
                         "--machine h200-nvlink --gpus 2 --operation all_gather_matmul --m 10 --n 20 --k 30 --json -")

    def test_which_rows_are_a_fit(self) -> None:
        named, other = DENSE, run_of("03_ring_all_gather", DENSE["results"], k=31)
        rows = planner.rows_of([named, other], self.program)
        self.assertEqual({(row.problem[0], row.fitted) for row in rows}, {("05_two_streams", True), ("03_ring_all_gather", False)})
        self.assertIn("3 rows of chapters that no constant was taken from: median error 12.0 %", planner.report(rows))

    def test_another_result_never_wins(self) -> None:
        results = [{"variant": name, "role": "algorithm", "host_ms": ms, "global_rows": 99, "rows_of_ranks": 100}
                   for name, ms in (("v6_ordered", 2.0), ("owners_bf16", 1.0), ("copy_engine_ring", 3.0))]
        sparse = run_of("15_sparse_beyond", results, rows=1000, features=8, entries=60, duplicates=0, pattern="uniform", index="int32")
        winner, = planner.winners_of(planner.rows_of([sparse], self.program))
        self.assertEqual((winner.measured, winner.predicted), ("v6_ordered", "copy_engine_ring"))

    def test_products_of_chapter_16(self) -> None:
        run = run_of("16_tensor_core_gemm/library", [result("copy_engine_ring", 0.1, "product"), result("ring_two_streams", 0.1, "part")])
        self.assertEqual(set(self.rows(run)), {"copy_engine_ring"})

    def test_what_is_left_out(self) -> None:
        sixteen = run_of("16_tensor_core_gemm", [result("one_stage", 0.1), result("gemm_only", 0.1, "gemm_only")], gpus=1)
        nodes = run_of("20_two_nodes", [result("flat", 0.1)])
        runs = [DENSE, sixteen, nodes]
        missing = planner.left_out(runs, planner.rows_of(runs, self.program), planner_page.catalogue(self.program))
        self.assertEqual(missing, [("05_two_streams", "unknown", ""), ("05_two_streams", "ring_ahead", ""),
                                   ("16_tensor_core_gemm", "one_stage", planner.INSIDE),
                                   ("20_two_nodes", "flat", planner.LEFT_OUT_CHAPTERS["20"])])

    def test_what_is_compared_follows_the_manifests(self) -> None:
        operations = {"03_ring_all_gather": "all_gather_matmul", "19_fused_reduce_scatter": "matmul_reduce_scatter",
                      "07_mlp_block": "mlp_block", "16_tensor_core_gemm/tiles": "matmul", "20_two_nodes": "",
                      "19_fused_reduce_scatter/block": "", "29_my_idea": ""}
        self.assertEqual({chapter: planner.compared_operation(run_of(chapter, [])) for chapter in operations}, operations)

    def test_a_wrong_winner_and_what_it_costs(self) -> None:
        winner, = planner.winners_of(planner.rows_of([DENSE], self.program))
        self.assertEqual((winner.measured, winner.predicted, winner.right), ("copy_engine_ring", "ring_two_streams", False))
        self.assertAlmostEqual(winner.cost, 0.25)  # 125 for 100

    def test_report(self) -> None:
        rows = [dataclasses.replace(row, fitted=False) for row in planner.rows_of([DENSE], self.program)]
        lines = planner.report(rows).splitlines()
        self.assertRegex(lines[1], r"copy_engine_ring +measured +100\.0 us +predicted +120\.0 us +error +\+20\.0 %")
        self.assertEqual(lines[3], "3 rows of chapters that no constant was taken from: median error 12.0 %")
        self.assertIn("predicted winner ring_two_streams, measured copy_engine_ring: 25.0 % slower", lines[4])
        self.assertEqual(lines[5], "3 rows, median error 12.0 %; winner right in 0 of 1")
        self.assertEqual(planner.report([]), "nothing that was measured is predicted")

    def test_one_algorithm_has_no_winner(self) -> None:
        alone = run_of("04_copy_engine", [result("gemm_only", 0.01, "gemm_only"), result("copy_engine_ring", 0.1)])
        self.assertEqual(planner.winners_of(planner.rows_of([alone], self.program)), [])

    def test_rows_of_the_sweep(self) -> None:
        sweep = run_of("05_two_streams/sweep", [{"section": "sweep", "gpus": 2, "m": 1, "n": 2, "k": 3, "gemm_only_ms": 0.18,
                                                 "ring_one_stream_ms": 0.24, "ring_two_streams_ms": 0.11}])
        errors = self.rows(sweep)
        self.assertAlmostEqual(errors["gemm_only"], -0.5)
        self.assertAlmostEqual(errors["copy_engine_ring"], -0.5)
        self.assertAlmostEqual(errors["ring_two_streams"], 0)
        self.assertIn("--m 1 --n 2 --k 3", (self.folder / "asked").read_text())

    def test_sparse_rows(self) -> None:
        sparse = run_of("14_sparse_v6_tiled", [{"variant": "v6_ordered", "role": "algorithm", "host_ms": 2.0, "global_rows": 99,
                                                "rows_of_ranks": 100}], rows=1000, features=8, entries=60, duplicates=0,
                        pattern="uniform", index="int32")
        self.assertAlmostEqual(self.rows(sparse)["v6_ordered"], 0.1)
        self.assertIn("--rows 1000 --features 8 --entries 50 --global 99", (self.folder / "asked").read_text())

    def test_what_is_not_compared(self) -> None:
        for change in ({"modelled": True}, {"status": "failed"}, {"hardware": {"gpu": "another"}}, {"chapter": "01_column_split"}):
            self.assertEqual(self.rows({**DENSE, **change}), {}, change)

    def test_a_refusal_is_passed_on(self) -> None:
        with self.assertRaisesRegex(planner.PlanError, "13 is too many"):
            self.rows(run_of("05_two_streams", DENSE["results"], k=13))


class PageTest(StandIn):
    """The blocks of docs/planner.md, with the stand-in for the planner."""

    def setUp(self) -> None:
        super().setUp()
        planner_page.planned.cache_clear()

    def block(self, argument: str, *runs: Dict[str, Any]) -> str:
        for run in runs:
            run["hardware"].update(gpus="2", driver="1.2", toolkit="13.0")
        return planner_page.block(argument, self.program, [{"runs": list(runs)}])

    def test_errors_of_chapters(self) -> None:
        text = self.block("errors", run_of("03_ring_all_gather", DENSE["results"]), DENSE)
        self.assertIn("/05_two_streams/README.md) * | 3 | 12.0 % | +20.0 %, `copy_engine_ring` of 10 x 20 x 30 |", text)
        self.assertIn("/03_ring_all_gather/README.md) | 3 | 12.0 %", text)
        self.assertIn("| those with * | 3 |", text)
        self.assertIn("| the others | 3 |", text)
        self.assertIn("| **all** | 6 | 12.0 %", text)
        self.assertTrue(text.endswith("Measured: 2 x NVIDIA H200, driver 1.2, CUDA 13.0.\n"))

    def test_rows_and_winners(self) -> None:
        self.assertIn("| 05_two_streams | 10 x 20 x 30 | 2 | `copy_engine_ring` | 100.0 | 120.0 | +20.0 % |", self.block("rows", DENSE))
        text = self.block("winners", DENSE)
        self.assertIn("named in 0 of 1 problems", text)
        self.assertIn("| `ring_two_streams` | `copy_engine_ring` | 25.0 % |", text)

    def test_what_nobody_explains_is_an_error(self) -> None:
        with self.assertRaisesRegex(planner_page.PageError, "neither predicted nor in LEFT_OUT .*: 05_two_streams unknown, 05_two_streams ring_ahead"):
            self.block("left_out", DENSE)
        explained = run_of("05_two_streams", [*DENSE["results"][:3], result("one_stage", 0.1)])
        text = self.block("left_out", explained)
        self.assertIn(f"| 05_two_streams | `one_stage` | {planner.INSIDE} |", text)
        self.assertIn("not measured in a way that can be compared: 04_copy_engine, 14_sparse_v6_tiled, 15_sparse_beyond, 18_ring_in_kernel.", text)

    def test_an_added_chapter_needs_no_reason(self) -> None:
        runs = planner.predictable([run for report in load(REPOSITORY / "docs" / "results") for run in report["runs"]])
        measured = next(run for run in runs if run["chapter"] == "03_ring_all_gather")
        experiment = run_of("05_two_streams/another", [result("idea", 0.1)])
        text = self.block("left_out", run_of("05_two_streams", DENSE["results"][:3]), {**measured, "chapter": "29_my_idea"}, experiment)
        self.assertRegex(text, rf"\| 29_my_idea \| .*`ring`.* \| {planner.NO_PREDICTION} \|")
        self.assertIn(f"| 05_two_streams/another | `idea` | {planner.NO_PREDICTION} |", text)

    def test_constants_and_output(self) -> None:
        self.assertIn("| `b` | 2 | assumed: x |", self.block("constants"))
        self.assertTrue(self.block("output --gpus 3").startswith("```\n$ ./lab plan --gpus 3\n{"))
        for argument, sentence in (("output 13", "13 is too many"), ("guesses", "there is no block 'planner guesses'")):
            with self.assertRaisesRegex(planner_page.PageError, sentence):
                self.block(argument)
        with self.assertRaisesRegex(planner_page.PageError, "nothing that was measured"):
            self.block("errors")


if __name__ == "__main__":
    unittest.main()
