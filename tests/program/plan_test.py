#!/usr/bin/env python3
"""Tests of bin/plan as its users call it: what it prints, what it refuses."""
import json
import pathlib
import sys
import time
import unittest
from typing import Any, Dict

from program_test_case import MACHINES, REPOSITORY, ProgramTestCase, main

sys.path.append(str(REPOSITORY / "tools"))
import planner  # noqa: E402
import planner_page  # noqa: E402
import update_pages  # noqa: E402
from results import load  # noqa: E402

ALL_GATHER = ("--operation", "all_gather_matmul")


class PlanTest(ProgramTestCase):
    def plan(self, *arguments: str) -> Dict[str, Any]:
        """The prediction, as JSON."""
        result = self.call(*arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        prediction: Dict[str, Any] = json.loads(result.stdout)
        return prediction

    def machine(self, **plan: object) -> pathlib.Path:
        """A machine file whose section "plan" has these fields."""
        machine = json.loads((MACHINES / "h100-nvlink.json").read_text())
        machine["plan"] = {name: {"is": value, "from": "a test"} for name, value in plan.items()}
        path = self.folder / "machine.json"
        path.write_text(json.dumps(machine))
        return path

    def test_says_that_it_predicts(self) -> None:
        result = self.call("--gpus", "4")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith("Predicted, not run: 4 GPUs of h200-nvlink"))
        for name in ("matmul", "all_gather_matmul", "matmul_reduce_scatter", "mlp_block"):
            self.assertRegex(result.stdout, rf"(?m)^{name}: ")
        self.assertEqual(result.stdout.count("predicted winner: "), 4)
        self.assertIn("Predicted", self.call("--sparse").stdout)
        self.assertIs(self.plan(*ALL_GATHER)["predicted"], True)

    def test_help(self) -> None:
        result = self.call("--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--m", "--gpus", "--gpus-per-node", "--machine", "--type", "--sparse", "--json"):
            self.assertIn(option, result.stdout)

    def test_json_holds_what_the_table_shows(self) -> None:
        file = self.folder / "plan.json"
        result = self.call("--gpus", "2", "--json", str(file), *ALL_GATHER)
        prediction = json.loads(file.read_text())
        operation, = prediction["operations"]
        self.assertEqual((prediction["gpus"], prediction["type"], prediction["machine"]), (2, "f16", "h200-nvlink"))
        self.assertGreater(len(prediction["constants"]), 20)
        for variant in operation["variants"]:
            self.assertRegex(result.stdout, rf"{variant['variant']} +{variant['predicted_us']:.1f} ")
        best = min(operation["variants"], key=lambda variant: variant["predicted_us"])
        self.assertEqual(operation["winner"], f"{best['chapter']} {best['variant']}")

    def test_bf16_is_as_fast(self) -> None:
        one, other = (self.plan(*ALL_GATHER, "--type", kind) for kind in ("f16", "bf16"))
        self.assertEqual(one["operations"], other["operations"])
        self.assertEqual(other["type"], "bf16")

    def test_an_infinite_link_without_latencies_leaves_the_product(self) -> None:
        latencies = {name: 0 for name in ("call_us", "launch_us", "event_us", "push_us", "pull_us", "signal_us", "nccl_us",
                                          "nccl_message_us", "nccl_send_us", "nccl_registered_us", "nccl_copy_engine_us")}
        rates = {name: 1e9 for name in ("link_gb_per_s", "nccl_gb_per_s", "nccl_send_gb_per_s", "memory_gb_per_s")}
        file = self.machine(**latencies, **rates)
        operation, = self.plan(*ALL_GATHER, "--gpus", "4", "--m", "16896", "--n", "4096", "--machine", str(file))["operations"]
        product = operation["gemm_only_us"]  # 132 tiles in each of 4 parts, of 128 x 256: whole waves, cut or not
        for variant in operation["variants"]:
            if variant["variant"] != "ring":  # NCCL holds multiprocessors
                self.assertAlmostEqual(variant["predicted_us"] / product, 1, delta=1e-3, msg=variant["variant"])

    def test_peer_memory_ends_at_the_node(self) -> None:
        operation, = self.plan(*ALL_GATHER, "--gpus", "16")["operations"]
        without = {variant["variant"] for variant in operation["variants"] if "why_not" in variant}
        self.assertIn("ring_two_streams", without)
        self.assertNotIn("nccl", without)
        operation, = self.plan(*ALL_GATHER, "--gpus", "16", "--gpus-per-node", "16")["operations"]
        self.assertFalse(any("why_not" in variant for variant in operation["variants"]))
        operation, = self.plan(*ALL_GATHER, "--gpus", "17", "--gpus-per-node", "17")["operations"]
        refused = {variant["variant"]: variant["why_not"] for variant in operation["variants"] if "why_not" in variant}
        self.assertEqual(refused, dict.fromkeys(("ring_in_kernel", "ring_ahead"), "its kernel takes at most 16 ranks"))

    def test_nodes_are_whole_or_one(self) -> None:
        for gpus, per_node in (("3", "8"), ("16", "8"), ("9", "3")):
            self.assertEqual(self.plan("--gpus", gpus, "--gpus-per-node", per_node)["gpus_per_node"], int(per_node))
        operation, = self.plan(*ALL_GATHER, "--gpus", "128")["operations"]
        refused = {variant["variant"]: variant.get("why_not") for variant in operation["variants"]}
        self.assertEqual(refused["two_level"], "its kernel takes at most 64 ranks")

    def test_fast_enough_for_4096_gpus(self) -> None:
        start = time.monotonic()
        self.plan("--gpus", "4096")
        self.assertLess(time.monotonic() - start, 10)  # takes a tenth of a second; a busy machine is no failure

    def test_bad_input_is_one_sentence(self) -> None:
        unknown = self.machine(speed_of_light=3)
        for arguments, sentence in {
                ("--gpus", "0"): "--gpus",
                ("--gpus", "4097"): "--gpus",
                ("--m", "0"): "--m",
                ("--m", "many"): "--m",
                ("--m", "60000000", "--k", "60000000"): "a matrix of more elements than any machine holds",
                ("--gpus", "many"): "--gpus",
                ("--gpus-per-node", "0"): "--gpus-per-node",
                ("--gpus", "12", "--gpus-per-node", "8"): "nodes of 8 GPUs cannot hold 12",
                ("--gpus", "12", "--machine", "h200-nvlink"): "nodes of 8 GPUs cannot hold 12",
                ("--type", "f32"): "f32",
                ("--operation", "sort"): "sort",
                ("--sparse", "--operation", "mlp_block"): "mlp_block is not sparse",
                ("--sparse", "--entries", "10", "--rows", "9"): "more than the table has rows",
                ("--sparse", "--global", "1"): "--global",
                ("--machine", "nowhere"): "neither a shipped machine nor a readable file",
                ("--machine", str(unknown)): "does not know 'speed_of_light'",
                ("--json", str(self.folder / "no" / "folder")): "cannot be written",
                ("--speed",): "--speed",
                ("everything",): "everything",
        }.items():
            with self.subTest(arguments):
                result = self.call(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn(sentence, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)


class MeasuredTest(ProgramTestCase):
    """Against docs/results: what docs/planner.md shows."""

    def setUp(self) -> None:
        super().setUp()
        self.reports = load(REPOSITORY / "docs" / "results")
        self.runs = [run for report in self.reports for run in report["runs"]]
        self.rows = planner.rows_of(self.runs, pathlib.Path(self.program))

    def test_errors(self) -> None:
        others = [row for row in self.rows if not row.fitted]
        self.assertGreater(len(self.rows), 100)
        self.assertGreater(len(others), 40)
        self.assertLess(planner.median_error(self.rows), 0.10)
        self.assertLess(planner.median_error(others), 0.10)

    def test_winners(self) -> None:
        winners = planner.winners_of(self.rows)
        self.assertGreaterEqual(len(winners), 20)
        self.assertGreaterEqual(sum(winner.right for winner in winners), 0.9 * len(winners))

    def test_the_page_has_not_drifted(self) -> None:
        page = (REPOSITORY / "docs" / "planner.md").read_text(encoding="utf-8")
        blocks = [block for block in update_pages.BLOCK.finditer(page) if block.group(1) == "planner"]
        self.assertEqual(len(blocks), 7)
        for block in blocks:
            with self.subTest(block.group(2)):
                self.assertEqual(block.group(3), planner_page.block(block.group(2), pathlib.Path(self.program), self.reports))
        for name in planner_page.PICTURES:
            with self.subTest(name):
                self.assertEqual((REPOSITORY / name).read_text(encoding="utf-8"), planner_page.picture(name, pathlib.Path(self.program)))
                self.assertIn(f"({pathlib.PurePath(name).relative_to('docs')})", page)

    def test_what_is_left_out_has_a_reason(self) -> None:
        missing = planner.left_out(self.runs, self.rows, planner_page.catalogue(pathlib.Path(self.program)))
        self.assertEqual([row for row in missing if not row[2]], [])
        self.assertEqual(set(planner.LEFT_OUT) - {variant for _, variant, _ in missing}, set())


if __name__ == "__main__":
    main()
