#!/usr/bin/env python3
"""Tests of the planner's rules against times computed by hand, and of the parser of machine files."""
import dataclasses
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY))
from tools.results import plan_machine  # noqa: E402
from tools.results import plan_rules  # noqa: E402
from tools.results.plan_machine import PlanError, read_machine, without  # noqa: E402
from tools.results.plan_model import Call, Cut, Shape, collective_us, part_of, products_on_two_streams_us, products_us, warm  # noqa: E402

TILE = (128, 256)
# A wave of 100 tiles, k = 1024, takes 10 us; a link transfers 1,000 bytes per us. All else takes no time.
ROUND = plan_machine.Machine(
    name="round", gpus_per_node=8, multiprocessors=100, tile=TILE, product_rate=2.0 * 100 * 128 * 256 * 1024 / 10, smaller_tile=1e-6,
    memory_rate=1e30, link_rate=1000, collective_rate=1000, send_rate=1000, network_rate=100)


def tiles(count: int) -> Shape:
    """A GEMM of `count` tiles, one below another."""
    return Shape(128 * count, 256, 1024)


def machine(**change: Any) -> plan_machine.Machine:
    """ROUND with this change."""
    return dataclasses.replace(ROUND, **change)


def us(rule: str, on: plan_machine.Machine = ROUND, of: int = 400, ranks: int = 4, per_node: int = 8, **numbers: Any) -> float:
    """A rule's time for a GEMM of `of` tiles, in one part per rank."""
    shape = dataclasses.asdict(tiles(of))
    card = {"gpus": ranks, "gpus_per_node": per_node, "type": "f16", "products": [shape]}
    step = {"products": ranks, "launches": 0, "tile_rows": TILE[0], "tile_columns": TILE[1], **numbers}
    return plan_rules.RULES[rule](on, Call(card, {}, step))


class RulesTest(unittest.TestCase):
    def test_products_take_whole_waves(self) -> None:
        self.assertAlmostEqual(part_of(ROUND, Cut(tiles(100))).us, 10)
        self.assertAlmostEqual(part_of(ROUND, Cut(tiles(101))).us, 20)
        self.assertAlmostEqual(part_of(ROUND, Cut(tiles(150))).work_us, 15)
        self.assertAlmostEqual(part_of(ROUND, Cut(tiles(100)), 90).us, 20)  # 10 SMs are occupied
        self.assertAlmostEqual(part_of(without(ROUND, "waves"), Cut(tiles(150))).us, 15)
        self.assertEqual(part_of(ROUND, Cut(Shape(0, 256, 1024))).us, 0)

    def test_smaller_tiles_where_they_fill_the_gpu(self) -> None:
        smaller = machine(smaller_tile=0.8)
        self.assertAlmostEqual(part_of(smaller, Cut(tiles(50))).us, 5 / 0.8)  # 100 halves
        self.assertAlmostEqual(part_of(smaller, Cut(tiles(25))).us, 2.5 / 0.8 / 0.8)  # 100 quarters
        self.assertAlmostEqual(part_of(smaller, Cut(tiles(50), 1, TILE)).us, 10)  # a kernel with a fixed tile

    def test_memory_is_a_floor(self) -> None:
        size = 2.0 * (128 * 1024 + 1024 * 256 + 128 * 256)
        self.assertAlmostEqual(part_of(machine(memory_rate=1000), Cut(tiles(1))).us, size / 1000)

    def test_slower_at_the_limit_of_power(self) -> None:
        hot = machine(sustained=0.8, sustained_us=100)
        for product_us, slower, digits in ((1, 1, 3), (100, 1.125, 9), (1e4, 1.25, 4)):  # half of the way to 1.25
            self.assertAlmostEqual(hot.product_rate / warm(hot, product_us).product_rate, slower, digits)
        self.assertEqual(warm(ROUND, 1e4), ROUND)

    def test_collectives_leave_a_node_by_all_its_ways(self) -> None:
        on = machine(collective_us=5, message_us=1, network_us=16)
        self.assertAlmostEqual(collective_us(on, 8, 7, 7000), 5 + 7 + 7)
        self.assertAlmostEqual(collective_us(on, 16, 15, 15000), 5 + 15 * (1 + 2) + 15000 / 800)
        self.assertEqual(collective_us(on, 1, 0, 0), 0)

    def test_small_collectives_carry_their_flags(self) -> None:
        on = machine(collective_us=30, message_us=3, flagged_bytes=2000, flagged_us=7, flagged_message_us=1)
        self.assertAlmostEqual(collective_us(on, 2, 2, 1000), 7 + 2 + 2)
        self.assertAlmostEqual(collective_us(on, 2, 2, 100000), 30 + 6 + 100)
        self.assertAlmostEqual(collective_us(dataclasses.replace(on, registered_us=8), 2, 2, 1000, "registered"), 8 + 6 + 1)

    def test_trips_follow_each_other(self) -> None:
        on = machine(launch_us=2, trip_us=3)
        self.assertAlmostEqual(us("trips", on, trips=2, bytes_out=5000), 2 + 2 * 3 + 5)
        self.assertAlmostEqual(us("trips", on, trips=2, bytes_out=0), 2)  # a single rank

    def test_a_ring_hides_what_is_faster_than_a_product(self) -> None:
        for streams in (1, 2):
            self.assertAlmostEqual(us("copy_ring", messages=3, bytes_out=3 * 9000, streams=streams), 40)
            self.assertAlmostEqual(us("copy_ring", messages=3, bytes_out=3 * 15000, streams=streams), 45 + 10)

    def test_a_signal_costs_a_stream_of_products_its_time(self) -> None:
        on, cost = machine(signal_us=2), {"messages": 3, "bytes_out": 3 * 5000}
        self.assertAlmostEqual(us("copy_ring", on, **cost), 46)
        self.assertAlmostEqual(us("copy_ring", on, streams=2, **cost), 40)
        self.assertAlmostEqual(us("stepwise", on, **cost), 46)
        self.assertAlmostEqual(us("persistent", on, **cost), 40)
        self.assertAlmostEqual(us("hopping", on, messages=3, bytes_out=3 * 15000), 3 * 17 + 10)

    def test_two_streams_fill_partial_waves(self) -> None:
        cut = Cut(tiles(240), 4, TILE)  # 60 tiles each
        self.assertAlmostEqual(products_us(ROUND, cut), 40)
        self.assertAlmostEqual(products_on_two_streams_us(ROUND, cut), 30)  # 240 tiles: 3 waves

    def test_nccl_takes_multiprocessors_from_a_product(self) -> None:
        on, cost = machine(nccl_blocks=10), {"messages": 1, "bytes_out": 5000, "products": 2}
        self.assertAlmostEqual(us("nccl_ring", on, of=200, ranks=2, **cost), 20 + 10)  # a wave each, or two on 90
        self.assertAlmostEqual(us("nccl_ring", on, of=200, ranks=16, **cost), 50 + 10)  # by network

    def test_shards_come_along_a_rail_and_are_then_passed_on(self) -> None:
        def of(on: plan_machine.Machine, share: int = 10**6) -> float:  # 10 us by network, 1 us inside, of each of two shards
            return us("two_level", on, of=200, per_node=2, rail_messages=1, rail_bytes=1000, bytes_out=3000, rail_share=share)
        hosts = machine(multiprocessors=101, product_rate=ROUND.product_rate * 1.01)  # NCCL occupies one of them
        self.assertAlmostEqual(of(hosts), 20)  # a part is 50 tiles: half a wave, 5 us
        self.assertAlmostEqual(of(dataclasses.replace(hosts, network_rate=50)), 30)  # third after 20 us, fourth after 21
        self.assertAlmostEqual(of(dataclasses.replace(hosts, network_rate=50, link_rate=100)), 35)  # the fourth after 30
        self.assertAlmostEqual(of(ROUND, 5), 30)  # 2.5 waves on 80 multiprocessors

    def test_the_last_send_is_exposed_if_it_is_slow(self) -> None:
        self.assertAlmostEqual(us("send_and_sum", messages=3, bytes_out=3 * 9000, launches=1), 40)
        added = 2.0 * 5 * 128 * 100 * 256
        slow = us("send_and_sum", machine(memory_rate=added / 7), messages=3, bytes_out=3 * 20000, launches=1)
        self.assertAlmostEqual(slow, part_of(machine(memory_rate=added / 7), Cut(tiles(400), 4, TILE)).work_us + 60 + 7)

    def test_an_add_waits_for_the_wave_that_runs(self) -> None:
        # The zeros arrive early, the first partial at 10: the add could begin at once, but the second GEMM occupies the SMs.
        accumulator = 128 * 100 * 256
        numbers = {"accumulator_size": 1, "zeros": 1, "stores": 0, "messages": 2, "bytes_out": 2 * accumulator}
        on = machine(event_us=1, link_rate=accumulator / 4)
        self.assertAlmostEqual(us("rotation", on, of=200, ranks=2, **numbers), 20 + 4 + 1)  # begins at 20 instead of 11

    def test_a_scatter_ends_with_the_link(self) -> None:
        self.assertAlmostEqual(us("scattered", bytes_out=90000, bytes_in=0), 10 + 90)
        self.assertAlmostEqual(us("scattered", bytes_out=1000, bytes_in=0), 40)


class MachineTest(unittest.TestCase):
    def read(self, plan: Any, gpus_per_node: int = 0) -> plan_machine.Machine:
        """A shipped machine with another section "plan"."""
        shipped = json.loads((plan_machine.MACHINES / "h100-nvlink.json").read_text(encoding="utf-8"))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({**shipped, "plan": plan}, file)
            file.flush()
            return read_machine(file.name, gpus_per_node)

    def test_constants_of_the_plan_and_their_sources(self) -> None:
        found = self.read({"signal_us": {"is": 7.5, "from": "a row"}}, 4)
        self.assertEqual((found.signal_us, found.gpus_per_node, found.multiprocessors), (7.5, 4, 132))
        self.assertEqual(found.sources, ({"name": "signal_us", "is": 7.5, "from": "a row"},))

    def test_without_a_plan_the_models_constants(self) -> None:
        found = read_machine("h100-nvlink")
        self.assertEqual((found.sources, found.gpus_per_node, found.signal_us, found.sustained), ((), 8, 6, 1))
        self.assertAlmostEqual(found.link_rate, 390e3)
        self.assertAlmostEqual(found.product_rate, 810e6)
        self.assertEqual(found.tile, (256, 128))  # the file's tile is that of a column-major C

    def test_nodes_of_a_file(self) -> None:
        found = read_machine("h200-nodes")
        self.assertEqual((found.gpus_per_node, found.network_rate, found.network_us), (8, 47e3, 10))  # of 64

    def test_every_shipped_constant_says_its_source(self) -> None:
        sources = read_machine("h200-nvlink").sources
        self.assertGreater(len(sources), 20)
        self.assertGreater(min(len(source["from"]) for source in sources), 10)

    def test_one_sentence_for_what_is_wrong(self) -> None:
        for plan, sentence in ((3, "must be an object"), ({"signal_us": 7}, "'signal_us' needs 'is'"),
                               ({"signal_us": {"is": 7}}, "'signal_us' needs 'from'"),
                               ({"signal_us": {"is": -1, "from": "x"}}, "must be between"),
                               ({"link_gb_per_s": {"is": 0, "from": "x"}}, "must be between"),
                               ({"signal": {"is": 7, "from": "x"}}, "does not know 'signal'")):
            with self.subTest(sentence), self.assertRaisesRegex(PlanError, sentence):
                self.read(plan)

    def test_without_a_bound(self) -> None:
        found = read_machine("h200-nvlink")
        for bound, fields in {"link": ("link_rate",), "product": ("product_rate", "compare_rate"), "memory": ("memory_rate",)}.items():
            self.assertGreater(min(getattr(without(found, bound), field) for field in fields), 1e20)
        self.assertEqual(without(found, "latency").signal_us, 0)
        self.assertEqual(without(found, "latency").link_rate, found.link_rate)
        self.assertEqual(without(found, "host").host_wait_us, 0)
        self.assertFalse(without(found, "waves").whole_waves)


if __name__ == "__main__":
    unittest.main()
