"""Products, kernels and collectives as times on a machine, and what a rule knows of a call: what all rules of ./lab plan are
made of. Times are microseconds."""
import dataclasses
import math
from typing import Any, Callable, Mapping, Optional, Tuple

from tools.results.plan_machine import Machine, Tile

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "int32": 4}  # bytes of an element


@dataclasses.dataclass(frozen=True)
class Shape:
    """C[m, n] = A[m, k] B[k, n]."""

    m: int
    n: int
    k: int

    @property
    def multiply_adds(self) -> float:
        """Half of the floating point operations."""
        return float(self.m) * self.n * self.k


@dataclasses.dataclass(frozen=True)
class Product:
    """A product, or one of equal parts of it."""

    us: float = 0  # alone: whole waves, or what its operands and its result take in memory
    work_us: float = 0  # the multiprocessors' time in it over their number: what is left of `us` if others fill its last wave
    waves: float = 0  # of its tiles, the last one by its part
    wave_us: float = 0  # one wave of its tiles: for so long a multiprocessor is not free


@dataclasses.dataclass(frozen=True)
class Cut:
    """A rank's products, cut into equal parts by rows of C."""

    shape: Shape
    parts: int = 1
    tile: Optional[Tile] = None  # of a kernel that has one for all sizes; none: the library's, as fits the part

    @property
    def part(self) -> Shape:
        """The largest part."""
        return Shape(-(-self.shape.m // self.parts), self.shape.n, self.shape.k)


def tiles_of(shape: Shape, tile: Tile) -> int:
    """Tiles of C; those at its edges may be partly empty."""
    return -(-shape.m // tile[0]) * -(-shape.n // tile[1])


def _wave_us(machine: Machine, tile: Tile, halvings: int, k: int) -> float:
    rate = machine.product_rate / machine.multiprocessors * machine.smaller_tile ** halvings
    return 2 * float(tile[0]) * tile[1] * k / rate


def _fastest_tile(machine: Machine, shape: Shape) -> Tuple[Tile, int]:
    """The tile that is done first on the whole GPU, and how often it has been halved. The library does not ask how many
    multiprocessors somebody else holds. The same tile may lie across, and a half of it may be cut either way."""
    rows, columns = machine.tile
    half = columns // 2
    tiles = (((rows, columns), 0), ((columns, rows), 0), ((rows, half), 1), ((half, rows), 1), ((rows, half // 2), 2), ((rows // 2, half), 2))
    best, least = tiles[0], 0.0
    for tile, halvings in tiles:
        if tile[0] < 1 or tile[1] < 1:
            continue
        us = -(-tiles_of(shape, tile) // machine.multiprocessors) * _wave_us(machine, tile, halvings, shape.k)
        if least == 0 or us < least:
            best, least = (tile, halvings), us
    return best


def part_of(machine: Machine, cut: Cut, multiprocessors: int = 0) -> Product:
    """A part, of 16-bit elements, on so many multiprocessors (0: all). Nothing without elements."""
    shape, many = cut.part, multiprocessors or machine.multiprocessors
    if shape.multiply_adds <= 0:
        return Product()
    tile, halvings = (cut.tile, 0) if cut.tile else _fastest_tile(machine, shape)
    tiles, wave_us = tiles_of(shape, tile), _wave_us(machine, tile, halvings, shape.k)
    work_us, us = tiles / many * wave_us, -(-tiles // many) * wave_us
    if not machine.whole_waves:  # nor edges of C
        us = work_us = shape.multiply_adds / (float(tile[0]) * tile[1] * shape.k) * wave_us / many
    memory = 2 * (float(shape.m) * shape.k + float(shape.k) * shape.n + float(shape.m) * shape.n) / machine.memory_rate
    return Product(max(us, memory), max(work_us, memory), tiles / many, wave_us)


def warm(machine: Machine, product_us: float) -> Machine:
    """The machine for a call whose products take so long: slower, if they reach the limit of power."""
    part = product_us ** 2 / (product_us ** 2 + machine.sustained_us ** 2) if machine.sustained_us > 0 else 1
    return dataclasses.replace(machine, product_rate=machine.product_rate / (1 + (1 / machine.sustained - 1) * part))


def kernel_us(machine: Machine, size: float) -> float:
    """A kernel that reads and writes so many bytes, with its launch."""
    return machine.launch_us + size / machine.memory_rate


def collective_us(machine: Machine, ranks: int, messages: int, bytes_out: float, mode: str = "plain") -> float:
    """A collective of NCCL that sends so many messages along a ring, alone. On more GPUs than a node has, its rings use all
    ways out of a node."""
    if messages <= 0 or ranks < 2:
        return 0
    latency = {"plain": machine.collective_us, "registered": machine.registered_us, "copy-engine": machine.copy_engine_us}[mode]
    rate, message_us = machine.collective_rate, machine.message_us
    if ranks > machine.gpus_per_node:  # one step in so many is between nodes, and rings side by side leave it by all its ways
        message_us += machine.network_us / machine.gpus_per_node
        rate = min(rate, machine.gpus_per_node * machine.network_rate)
    return latency + messages * message_us + bytes_out / rate


def products_us(machine: Machine, cut: Cut) -> float:
    """One product after another on a stream."""
    return cut.parts * (part_of(machine, cut).us + machine.launch_us)


def filled_us(machine: Machine, part: Product, parts: int, between: float, ready: Callable[[int], float]) -> float:
    """A launch, then parts of a product that fill each other's last waves, `between` apart, none before `ready` says. What is
    left of the last wave nobody fills."""
    now = machine.launch_us
    for i in range(parts):
        now = max(now + (between if i else 0), ready(i)) + part.work_us
    waves = parts * part.waves
    return now + ((math.ceil(waves - 1e-9) - waves) * part.wave_us if machine.whole_waves else 0)


def products_on_two_streams_us(machine: Machine, cut: Cut) -> float:
    """Products on two streams: each fills the last wave of the one before."""
    return filled_us(machine, part_of(machine, cut), cut.parts, machine.launch_us, lambda step: 0)


class Call:
    """What a rule knows: the call's sizes, the variant's cost card, and what its step says beyond or instead of them."""

    def __init__(self, card: Mapping[str, Any], variant: Mapping[str, Any], step: Mapping[str, Any]) -> None:
        self.ranks: int = card["gpus"]
        self.card, self.numbers = card, {**variant.get("cost", {}), **step}
        self.size = SIZES[card["type"]]

    def __getattr__(self, name: str) -> Any:
        return self.numbers[name]

    def get(self, name: str, otherwise: Any) -> Any:
        """What a step need not say."""
        return self.numbers.get(name, otherwise)

    def cut(self, parts: Optional[int] = None) -> Cut:
        """The product of the step, in parts: those of the cost card, unless the rule says how many."""
        tile = (self.tile_rows, self.tile_columns) if "tile_rows" in self.numbers else None
        shape = Shape(**self.card["products"][self.get("product", 0)])
        return Cut(shape, self.products if parts is None else parts, tile)

    def shards(self) -> Cut:
        """In a part for each shard with rows."""
        return self.cut(min(self.cut(1).shape.m, self.ranks))

    @property
    def message(self) -> float:
        """Bytes of one of the messages."""
        return self.bytes_out / self.messages if self.messages else 0.0

    @property
    def shard(self) -> float:
        """Messages go to all others, in pieces or whole: each gets all of a shard."""
        return self.bytes_out / (self.ranks - 1) if self.ranks > 1 else 0.0

    def rows(self, count: float) -> float:
        """Bytes of so many rows of a gradient."""
        return float(self.size) * count * self.card["features"]
