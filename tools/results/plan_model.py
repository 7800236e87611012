"""The parts of all rules of ./lab plan: times of GEMMs, kernels and collectives on a machine, and a call's sizes and cost card.
Times are microseconds."""
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
    """The time of a GEMM, or of one of its equal parts."""

    us: float = 0  # alone: its whole waves, or the memory traffic of its operands and result, whichever is longer
    work_us: float = 0  # the multiprocessors' busy time over their number: its time if other GEMMs fill its last wave
    waves: float = 0  # number of waves of its tiles, the last one by its part
    wave_us: float = 0  # one wave of its tiles: for so long a multiprocessor is occupied


@dataclasses.dataclass(frozen=True)
class Cut:
    """A rank's GEMMs: equal parts of the rows of C."""

    shape: Shape
    parts: int = 1
    tile: Optional[Tile] = None  # tile of a kernel with a fixed one; none: the library's choice for the part

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
    """The fastest tile on the whole GPU, and how often it has been halved. The library does not know how many multiprocessors
    other kernels occupy. A tile may also be transposed, and may be halved in either direction."""
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
    """The time of a part, with 16-bit elements, on so many multiprocessors (0: all); 0 if the part is empty."""
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
    """The machine for a call whose GEMMs take so long: slower if they reach the power limit."""
    part = product_us ** 2 / (product_us ** 2 + machine.sustained_us ** 2) if machine.sustained_us > 0 else 1
    return dataclasses.replace(machine, product_rate=machine.product_rate / (1 + (1 / machine.sustained - 1) * part))


def kernel_us(machine: Machine, size: float) -> float:
    """The time of a kernel that reads and writes this number of bytes, with its launch."""
    return machine.launch_us + size / machine.memory_rate


def collective_us(machine: Machine, ranks: int, messages: int, bytes_out: float, mode: str = "plain") -> float:
    """The time of a collective of NCCL that sends so many messages along a ring, alone. On several nodes its rings use all
    network cards of a node."""
    if messages <= 0 or ranks < 2:
        return 0
    latency = {"plain": machine.collective_us, "registered": machine.registered_us, "copy-engine": machine.copy_engine_us}[mode]
    rate, network_us = machine.collective_rate, 0.0
    if ranks > machine.gpus_per_node:  # one step in so many is between nodes, and parallel rings use all network cards
        network_us = machine.network_us / machine.gpus_per_node
        rate = min(rate, machine.gpus_per_node * machine.network_rate)
    if mode == "plain" and bytes_out <= machine.flagged_bytes:
        return machine.flagged_us + messages * (machine.flagged_message_us + network_us) + 2 * bytes_out / rate
    return latency + messages * (machine.message_us + network_us) + bytes_out / rate


def products_us(machine: Machine, cut: Cut) -> float:
    """One GEMM after another on a stream."""
    return cut.parts * (part_of(machine, cut).us + machine.launch_us)


def filled_us(machine: Machine, part: Product, parts: int, between: float, ready: Callable[[int], float]) -> float:
    """A launch, then parts of a GEMM that fill each other's last waves, `between` apart, each not before its time in `ready`.
    The last wave of the last part stays unfilled."""
    now = machine.launch_us
    for i in range(parts):
        now = max(now + (between if i else 0), ready(i)) + part.work_us
    waves = parts * part.waves
    return now + ((math.ceil(waves - 1e-9) - waves) * part.wave_us if machine.whole_waves else 0)


def products_on_two_streams_us(machine: Machine, cut: Cut) -> float:
    """GEMMs on two streams: each fills the last wave of the one before."""
    return filled_us(machine, part_of(machine, cut), cut.parts, machine.launch_us, lambda step: 0)


class Call:
    """The input of a rule: the call's sizes, the variant's cost card, and its step's values, which override both."""

    def __init__(self, card: Mapping[str, Any], variant: Mapping[str, Any], step: Mapping[str, Any]) -> None:
        self.ranks: int = card["gpus"]
        self.card, self.numbers = card, {**variant.get("cost", {}), **step}
        self.size = SIZES[card["type"]]

    def __getattr__(self, name: str) -> Any:
        return self.numbers[name]

    def get(self, name: str, otherwise: Any) -> Any:
        """A value that a step may omit."""
        return self.numbers.get(name, otherwise)

    def cut(self, parts: Optional[int] = None) -> Cut:
        """The GEMM of the step, in as many parts as the cost card says, unless the rule gives a number."""
        tile = (self.tile_rows, self.tile_columns) if "tile_rows" in self.numbers else None
        shape = Shape(**self.card["products"][self.get("product", 0)])
        return Cut(shape, self.products if parts is None else parts, tile)

    def shards(self) -> Cut:
        """The GEMM in one part for each shard with rows."""
        return self.cut(min(self.cut(1).shape.m, self.ranks))

    @property
    def message(self) -> float:
        """Bytes of one of the messages."""
        return self.bytes_out / self.messages if self.messages else 0.0

    @property
    def shard(self) -> float:
        """Bytes of a whole shard: the messages send it to all other ranks, in pieces or at once."""
        return self.bytes_out / (self.ranks - 1) if self.ranks > 1 else 0.0

    def rows(self, count: float) -> float:
        """Bytes of so many rows of a gradient."""
        return float(self.size) * count * self.card["features"]
