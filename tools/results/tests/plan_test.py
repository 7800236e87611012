#!/usr/bin/env python3
"""Tests of ./lab plan as users call it: its output, and what it rejects."""
import dataclasses
import json
import os
import pathlib
import sys
import time
import unittest
from typing import Any, Dict, Iterator, List, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.program_test_case import MACHINES, REPOSITORY, ProgramTestCase, main  # noqa: E402

from tools.results import plan  # noqa: E402
from tools.results import plan_rules  # noqa: E402
from tools.results import planner  # noqa: E402
from tools.pages import planner_page  # noqa: E402
from tools.pages import update_pages  # noqa: E402
from tools.results.plan_machine import Machine, read_machine, without  # noqa: E402
from tools.results.results import load  # noqa: E402

ALL_GATHER = ("--operation", "all_gather_matmul")


class PlanTest(ProgramTestCase):
    def plan(self, *arguments: str) -> Dict[str, Any]:
        """The prediction as JSON."""
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
        for name in ("matmul", "all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce", "mlp_block"):
            self.assertRegex(result.stdout, rf"(?m)^{name}: ")
        self.assertEqual(result.stdout.count("predicted winner: "), 5)
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
            if variant["variant"] != "ring":  # NCCL occupies SMs
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
        self.assertLess(time.monotonic() - start, 10)  # takes a tenth of a second; the limit allows for a busy machine

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


DENSE = ("all_gather_matmul", "matmul_reduce_scatter", "mlp_block", "matmul_all_reduce")
SHAPES = ((4096, 16384, 4096), (8192, 28672, 8192), (513, 4096, 1000))
SPARSE = ("--rows", "100000", "--features", "64", "--entries", "1000")
Card = Dict[str, Any]


class CardsTest(unittest.TestCase):
    """Properties of every prediction, whatever the constants."""

    machine = read_machine("h200-nvlink")

    def cards(self, operation: str, gpus: int, *sizes: str, per_node: int = 0) -> List[Card]:
        """The cost cards of all chapters with this operation."""
        programs = pathlib.Path(os.environ.get("OVERLAP_PROGRAMS", plan.PROGRAMS))
        words = ("--gpus", str(gpus), "--gpus-per-node", str(per_node or gpus), *sizes)
        return [plan.cards_of(programs / chapter, words) for chapter in plan.chapters_of(operation)]

    def dense(self, operation: str, gpus: int, shape: Tuple[int, int, int], per_node: int = 0) -> List[Card]:
        sizes = [word for name, size in zip("mnk", shape) for word in (f"--{name}", str(size))]
        return self.cards(operation, gpus, *sizes, per_node=per_node)

    def all_cards(self, gpus: int) -> Iterator[Card]:
        for shape in SHAPES:
            for operation in ("matmul", *DENSE):
                yield from self.dense(operation, gpus, shape)
        yield from self.cards(plan.SPARSE, gpus, *SPARSE)

    def times(self, on: Machine, card: Card) -> Dict[str, float]:
        return {variant["variant"]: plan_rules.call_us(on, card, variant) for variant in card["variants"] if "steps" in variant}

    def test_every_chapter_is_there(self) -> None:
        chapters = {card["chapter"][:2] for card in self.all_cards(4) if self.times(self.machine, card)}
        self.assertLessEqual({f"{number:02}" for number in range(2, 22)}, chapters)

    def test_every_step_has_a_rule(self) -> None:
        rules = {step["rule"] for card in self.all_cards(4) for variant in card["variants"] for step in variant.get("steps", ())}
        self.assertEqual(rules, set(plan_rules.RULES))

    def test_one_gpu_is_the_product_alone(self) -> None:
        for operation in DENSE[:2]:
            for card in self.dense(operation, 1, (4096, 4096, 4096)):
                for us in self.times(self.machine, card).values():
                    self.assertAlmostEqual(us, plan_rules.gemm_only_us(self.machine, card), delta=1e-6)

    def test_where_all_but_products_is_free_all_are_as_fast_as_the_product(self) -> None:
        on = dataclasses.replace(self.machine, smaller_tile=1)
        for bound in ("link", "latency", "memory", "waves"):
            on = without(on, bound)
        for operation in DENSE:
            for shape in SHAPES[:2]:  # equal parts: otherwise the largest counts for all
                for card in self.dense(operation, 8, shape):
                    for name, us in self.times(on, card).items():
                        self.assertAlmostEqual(us / plan_rules.gemm_only_us(on, card), 1, delta=1e-9, msg=name)

    def test_nothing_is_faster_on_a_slower_machine_or_than_its_product(self) -> None:
        slower = [dataclasses.replace(self.machine, **{name: getattr(self.machine, name) * by}) for name, by in (
            ("link_rate", 1 / 2), ("signal_us", 3), ("memory_rate", 1 / 4), ("collective_rate", 1 / 2), ("collective_us", 2),
            ("product_rate", 1 / 1.5), ("host_launch_us", 2), ("launch_us", 2), ("push_us", 4))]
        for gpus in (2, 3, 8):
            for card in self.all_cards(gpus):
                usual = self.times(self.machine, card)
                for on in slower:
                    for name, us in self.times(on, card).items():
                        # An add that misses a wave's end waits for the next one, so a slightly slower machine may be faster.
                        luck = 0.99 if name.startswith("rotating") else 1
                        self.assertGreaterEqual(us, luck * usual[name] - 1e-9, f"{card['chapter']} {name}")
                product = plan_rules.gemm_only_us(self.machine, card)
                for name, us in usual.items() if product else ():
                    self.assertGreaterEqual(us, 0.999 * product, f"{card['chapter']} {name}")

    def test_bytes_are_the_cost_cards(self) -> None:
        for card in self.dense("all_gather_matmul", 4, SHAPES[0]):
            for variant in card["variants"]:
                if "steps" in variant:  # all of A but the left neighbour's shard
                    self.assertEqual(variant["cost"]["bytes_out"], 3 * 1024 * 4096 * 2, variant["variant"])

    def test_expected_rows_of_all_ranks(self) -> None:
        for rows, entries, gpus, expected in ((5_000_000, 50_000, 1, 50_000), (5_000_000, 50_000, 2, 99_500), (10, 10, 3, 10)):
            card = self.cards(plan.SPARSE, gpus, "--rows", str(rows), "--entries", str(entries))[0]
            self.assertEqual(card["global"], expected)

    def test_two_levels_in_one_node_are_one_level(self) -> None:
        for gpus in (1, 2, 8):
            for shape in SHAPES:
                times = {name: us for card in self.dense("all_gather_matmul", gpus, shape) for name, us in self.times(self.machine, card).items()}
                self.assertAlmostEqual(times["two_level"], times["gemm_on_signals"])

    def test_of_sparse_sums_the_cards_of_chapter_15(self) -> None:
        """The cards equal the numbers on the page: F = 2048, P = 2, N = 100,000, G = 99,500; with the plan's one message."""
        card = self.cards(plan.SPARSE, 2, "--rows", "5000000", "--features", "2048", "--entries", "50000", "--global", "99500")[-1]
        found = {variant["variant"]: variant["cost"]["bytes_in"] - (16 + 4 * 50_000) for variant in card["variants"] if "steps" in variant}
        row = 2048 * 4
        self.assertLessEqual({"bitmap_plan": 99_500 * row, "range_owners": (25_000 + 49_750) * row, "contributor_owners": (250 + 49_750) * row,
                              "owners_bf16": (250 + 49_750) * row // 2, "reduce_scatter": 25_000 * row, "scatter_fetch": 50_000 * row}.items(),
                             found.items())

    def test_what_gives_another_result_never_wins(self) -> None:
        cards = self.cards(plan.SPARSE, 4, "--rows", "5000000", "--features", "2048", "--entries", "50000", "--global", "197000")
        operation = plan.predict_operation(self.machine, plan.SPARSE, cards)
        self.assertEqual(operation["winner"], "15_sparse_beyond contributor_owners")
        self.assertEqual({variant["variant"] for variant in operation["variants"] if "differs" in variant},
                         {"owners_bf16", "owners_f16", "reduce_scatter", "scatter_fetch"})

    def test_what_needs_peers_ends_at_the_node(self) -> None:
        on = dataclasses.replace(self.machine, gpus_per_node=4)
        operation = plan.predict_operation(on, "all_gather_matmul", self.dense("all_gather_matmul", 8, (8192, 32768, 4096), 4))
        for variant in operation["variants"]:
            self.assertEqual("why_not" not in variant, variant["chapter"][:2] in ("02", "03", "20"), variant["variant"])
        self.assertEqual(operation["winner"], "20_two_nodes two_level")

    def test_what_bounds_is_what_saves_most(self) -> None:
        def bound(operation: str, cards: List[Card], name: str) -> str:
            variants = plan.predict_operation(self.machine, operation, cards)["variants"]
            return str(next(variant["bound"] for variant in variants if variant["variant"] == name))
        for shape, name, expected in (((8192, 32768, 4096), "gemm_on_signals", "product"), ((8192, 2048, 8192), "ring_two_streams", "link"),
                                      ((64, 512, 512), "ring_two_streams", "latency")):
            self.assertEqual(bound(DENSE[0], self.dense(DENSE[0], 8, shape), name), expected)
        sparse = self.cards(plan.SPARSE, 8, "--rows", "5000000", "--features", "64", "--entries", "50000", "--global", "390000")
        self.assertEqual(bound(plan.SPARSE, sparse, "v2_where"), "host")


class MeasuredTest(ProgramTestCase):
    """Against docs/results: the numbers of docs/planner.md."""

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
