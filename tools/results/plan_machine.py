"""The machine of a prediction: a machine file of the virtual GPUs, whose section "plan" holds further constants for
predictions."""
import dataclasses
import json
import pathlib
from typing import Any, Dict, List, Tuple

MACHINES = pathlib.Path(__file__).resolve().parents[2] / "virtual_gpu" / "machines"
AT_ONCE = 1e30  # infinitely fast; a finite number, because rates are multiplied
BOUNDS = ("product", "waves", "link", "latency", "memory", "host")  # the kinds of work that can bound a call
Tile = Tuple[int, int]  # rows and columns


class PlanError(Exception):
    """A prediction is not possible: one sentence."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """Physical constants of a GPU, its links and its host. Times in microseconds, rates in bytes (products: in floating point
    operations) per microsecond. No constant belongs to an algorithm."""

    name: str
    gpus_per_node: int  # GPUs that access each other's memory

    # Products: tiles in waves.
    multiprocessors: int
    tile: Tile  # the library's largest tile of C
    product_rate: float  # rate of full waves of such tiles, on the whole GPU
    smaller_tile: float = 1  # rate of a tile of half the size, as a part of that of the next larger one
    sustained: float = 1  # rate under the power limit, as a part of `product_rate`
    sustained_us: float = 0  # if the GEMMs of a call take this long, half of that loss occurs
    whole_waves: bool = True  # False: a partial wave costs only its part, which shows the cost of waves

    memory_rate: float = 1  # the rate of kernels, reads and writes added

    # Latencies on a GPU.
    call_us: float = 0  # before the first kernel of a call and behind the last one
    launch_us: float = 0  # from one kernel of a stream to the next
    event_us: float = 0  # from one stream to another of the same GPU

    # Copies and signals between GPUs that reach each other's memory.
    push_us: float = 0  # of a copy, in addition to the time of its bytes
    pull_us: float = 0
    link_rate: float = 1  # out of a GPU, and the same into it
    signal_us: float = 0  # from a signal on one GPU until a waiting stream of another GPU continues
    trip_us: float = 0  # from a store of a kernel until a waiting kernel of another GPU continues

    # NCCL.
    nccl_blocks: int = 0  # multiprocessors that a transfer occupies
    collective_us: float = 0  # of a collective, by NCCL's protocol
    registered_us: float = 0
    copy_engine_us: float = 0
    message_us: float = 0  # of each step of its ring
    collective_rate: float = 1  # bytes out of each GPU
    flagged_bytes: float = 0  # bytes out of a GPU, up to which data carry their flags (LL): half of them are flags
    flagged_us: float = 0  # of such a collective
    flagged_message_us: float = 0  # of each step of its ring
    send_us: float = 0  # of a send and a receive
    send_rate: float = 1  # of them

    # Between nodes: one network card for each GPU.
    network_us: float = 0  # of a message
    network_rate: float = 1  # bytes out of each GPU

    # The host, for algorithms that the host drives.
    host_launch_us: float = 0  # between two launches
    host_wait_us: float = 0  # one wait for the GPU, with the copy of the awaited number
    graph_node_us: float = 0  # from a kernel of a graph to the next one
    compare_rate: float = 1  # comparisons of two row numbers per microsecond

    sources: Tuple[Dict[str, Any], ...] = ()  # of the constants of "plan", in the order of reading


def without(machine: Machine, bound: str) -> Machine:
    """The machine without one cost: that part is infinitely fast, or partial waves cost only their part."""
    fields: Dict[str, Tuple[str, ...]] = {
        "product": ("product_rate", "compare_rate"),  # comparisons are the main work of a sparse call
        "link": ("link_rate", "collective_rate", "send_rate", "network_rate"), "memory": ("memory_rate",),
        "latency": ("call_us", "launch_us", "event_us", "push_us", "pull_us", "signal_us", "collective_us", "registered_us",
                    "copy_engine_us", "message_us", "flagged_us", "flagged_message_us", "trip_us", "send_us", "network_us"),
        "host": ("host_launch_us", "host_wait_us", "graph_node_us")}
    free: Dict[str, Any] = {name: 0.0 if name.endswith("_us") else AT_ONCE for name in fields.get(bound, ())}
    if bound == "waves":
        free["whole_waves"] = False
    if bound == "link":
        free["nccl_blocks"] = 0
    return dataclasses.replace(machine, **free)


class _Plan:
    """The section "plan": each field is {"is": NUMBER, "from": TEXT}."""

    def __init__(self, path: pathlib.Path, fields: Any) -> None:
        self.path, self.sources = path, []  # type: pathlib.Path, List[Dict[str, Any]]
        if not isinstance(fields, dict):
            raise self.wrong("must be an object")
        self.fields = dict(fields)

    def wrong(self, what: str) -> PlanError:
        return PlanError(f"--machine: machine description: {self.path}: 'plan' {what}")

    def take(self, name: str, otherwise: float, low: float = 0, high: float = 1e9) -> float:
        """The constant, or `otherwise` if the section lacks it."""
        if name not in self.fields:
            return otherwise
        field = self.fields.pop(name)
        for key, kind in (("is", (int, float)), ("from", str)):
            if not isinstance(field, dict) or not isinstance(field.get(key), kind):  # type: ignore[arg-type]
                raise self.wrong(f"'{name}' needs '{key}'")
        if not low <= field["is"] <= high:
            raise self.wrong(f"'{name}' must be between {low} and {high}")
        self.sources.append({"name": name, "is": field["is"], "from": field["from"]})
        return float(field["is"])

    def rate(self, name: str, otherwise: float) -> float:
        """The same for a rate, which must not be 0."""
        return self.take(name, otherwise, 1e-6)


def _document(name_or_file: str) -> Tuple[pathlib.Path, Dict[str, Any]]:
    shipped = MACHINES / f"{name_or_file}.json"
    path = shipped if shipped.is_file() else pathlib.Path(name_or_file)
    try:
        return path, json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise PlanError(f"--machine: machine description: '{name_or_file}' is neither a shipped machine nor a readable file") from None
    except ValueError:
        raise PlanError(f"--machine: machine description: {path} is not valid JSON") from None


def read_machine(name_or_file: str, gpus_per_node: int = 0) -> Machine:
    """The machine of that name, or of that file. `gpus_per_node`: GPUs that access each other's memory; 0: as in the file."""
    path, file = _document(name_or_file)
    plan = _Plan(path, file.get("plan", {}))
    try:
        machine = _machine_of(file, plan)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(f"--machine: machine description: {path} lacks {error}" if isinstance(error, KeyError)
                        else f"--machine: machine description: {path} is none") from None
    if plan.fields:
        raise plan.wrong(f"does not know '{min(plan.fields)}'")
    return dataclasses.replace(machine, gpus_per_node=gpus_per_node or machine.gpus_per_node)


def _machine_of(file: Dict[str, Any], plan: _Plan) -> Machine:
    """Derives missing constants of "plan" from the rest of the file."""
    gpu, host, peer, nccl, nodes = file["gpu"], file["host"], file["peer"], file["nccl"], file.get("nodes", {})
    per_node = nodes.get("gpus_per_node", file["gpus"]) if peer["access"] else 1
    launch, product = gpu["launch_us"], gpu["product"]
    machine = {
        "name": file["name"], "gpus_per_node": per_node, "multiprocessors": gpu["multiprocessors"],
        "tile": (product["tile_columns"], product["tile_rows"]),  # the tile in the file is that of a column-major C
        "product_rate": 1e6 * plan.rate("f16_tflops", product["f16_tflops"]),
        "smaller_tile": plan.take("smaller_tile_rate", 1, 1e-6, 1), "sustained": plan.take("sustained_rate", 1, 1e-6, 1),
        "sustained_us": plan.take("sustained_us", 0), "memory_rate": 1e3 * plan.rate("memory_gb_per_s", gpu["memory_gb_per_s"]),
        "call_us": plan.take("call_us", launch), "launch_us": plan.take("launch_us", launch), "event_us": plan.take("event_us", 0)}
    push = plan.take("push_us", peer["copy_latency_us"])
    machine.update(push_us=push, pull_us=plan.take("pull_us", push), link_rate=1e3 * plan.rate("link_gb_per_s", peer["copy_gb_per_s"]),
                   signal_us=plan.take("signal_us", peer["signal_us"]), nccl_blocks=nccl["channels"])
    machine["trip_us"] = plan.take("trip_us", machine["signal_us"])
    collective = plan.take("nccl_us", nccl["latency_us"])
    machine.update(
        collective_us=collective, registered_us=plan.take("nccl_registered_us", collective),
        copy_engine_us=plan.take("nccl_copy_engine_us", collective), message_us=plan.take("nccl_message_us", 0),
        flagged_bytes=plan.take("nccl_flagged_bytes", 0), flagged_us=plan.take("nccl_flagged_us", 0),
        flagged_message_us=plan.take("nccl_flagged_message_us", 0),
        collective_rate=1e3 * plan.rate("nccl_gb_per_s", nccl["gb_per_s"]), send_us=plan.take("nccl_send_us", collective),
        send_rate=1e3 * plan.rate("nccl_send_gb_per_s", nccl["gb_per_s"]),
        network_us=plan.take("network_us", nodes.get("rail_latency_us", 5)),
        network_rate=1e3 * plan.rate("network_gb_per_s", nodes.get("rail_gb_per_s", 50)),
        host_launch_us=plan.take("host_launch_us", launch), host_wait_us=plan.take("host_wait_us", host["copy_latency_us"]),
        graph_node_us=plan.take("graph_node_us", gpu.get("graph_node_us", launch / 2)),
        # By default one comparison a lane in two cycles: a load and a comparison.
        compare_rate=1e3 * plan.rate("comparisons_per_ns",
                                     gpu["multiprocessors"] * gpu["lanes_per_multiprocessor"] * gpu["clock_ghz"] / 2))
    return Machine(**machine, sources=tuple(plan.sources))
