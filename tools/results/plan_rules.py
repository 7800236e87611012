"""How an algorithm's parts follow and overlap each other, as times on a machine: a rule for each form of overlap.

A chapter's program prints the parts, their number and their sizes with --cost: sizes, cost cards, and the steps of a call, each
with the name of its rule. Because all ranks do the same at the same time, a rule follows one rank's call: a shard arrives from
the neighbour when this rank's own arrives there. Times are microseconds.
"""
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from tools.results import plan_dense as dense
from tools.results import plan_sparse as sparse
from tools.results.plan_machine import Machine
from tools.results.plan_model import Call, Cut, Shape, products_us, warm

RULES: Dict[str, Callable[[Machine, Call], float]] = {rule.__name__: rule for rule in (
    dense.kernel, dense.products, dense.collective, dense.nccl_ring, dense.copy_ring, dense.pulls, dense.send_and_sum, dense.rotation,
    dense.persistent, dense.hopping, dense.trips, dense.two_level, dense.stepwise, dense.scattered, sparse.search_by_host,
    sparse.search_by_graph, sparse.search_by_matrix, sparse.search_by_kernel, sparse.search_by_halves, sparse.search_by_table, sparse.dense_sum,
    sparse.planned_nccl, sparse.planned_copies, sparse.planned_pulls)}
# Rules that need all GPUs to reach each other's memory.
PEERS = frozenset(("copy_ring", "pulls", "send_and_sum", "rotation", "persistent", "hopping", "stepwise", "scattered", "trips",
                   "planned_copies", "planned_pulls"))


def _shapes(card: Mapping[str, Any]) -> List[Shape]:
    return [Shape(**product) for product in card["products"]]


def gemm_only_us(machine: Machine, card: Mapping[str, Any]) -> Optional[float]:
    """The rank's GEMMs alone, the reference of the dense variants."""
    def alone(on: Machine) -> Iterator[float]:
        return (products_us(on, Cut(shape)) for shape in _shapes(card))
    if not card["products"]:
        return None
    return machine.call_us + sum(alone(warm(machine, sum(alone(machine)))))


def call_us(machine: Machine, card: Mapping[str, Any], variant: Mapping[str, Any]) -> float:
    """A call of a variant: its steps, one after the other."""
    shapes, before = _shapes(card), 0.0
    if shapes:  # one GEMM of as many operations needs the same power
        first = shapes[0]
        operations = sum(shape.m * shape.n * shape.k for shape in shapes)
        whole = Shape(first.m, operations // max(first.m * first.k, 1), first.k)
        machine = warm(machine, products_us(machine, Cut(whole)))
        before = machine.call_us
    return before + sum(RULES[step["rule"]](machine, Call(card, variant, step)) for step in variant["steps"])
