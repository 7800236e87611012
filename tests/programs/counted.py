"""The virtual GPUs' counts for one call of each variant, from the program's own timeline: its kernels by phase, the bytes over
each link and the time. Tests compare them with cost cards and reports, so that no row reports another row's work or time."""
import collections
import json
import pathlib
import re
from typing import Any, Dict, List, Mapping, Sequence, Set

HOST = -1
LIBRARY = "cuBLAS"


class Call:
    """One call of a variant on all ranks; rank r runs on GPU r."""

    def __init__(self) -> None:
        self.bars: Dict[int, List[Dict[str, Any]]] = collections.defaultdict(list)  # by GPU
        self.links: List[Dict[str, int]] = []

    def kernels(self, gpu: int = 0) -> List[Dict[str, Any]]:
        """The bars of its kernels, including those of libraries."""
        return [bar for bar in self.bars[gpu] if bar["cat"] in ("kernel", "collective")]

    def products(self) -> int:
        return sum(bar["args"]["what"].startswith(LIBRARY) for bar in self.kernels())

    def launches(self, *phases: str) -> int:
        """The number of own kernels and calls of CUB on rank 0, in all phases or in `phases`."""
        return sum(bar["cat"] == "kernel" and not bar["args"]["what"].startswith(LIBRARY) and (not phases or phase_of(bar) in phases)
                   for bar in self.kernels())

    def bytes_between(self, come_from: Any, go_to: Any) -> int:
        """Bytes over all links whose ends the two functions accept."""
        return sum(link["bytes"] for link in self.links if link["from"] != link["to"]
                   and come_from(link["from"]) and go_to(link["to"]))

    def moved(self) -> Dict[str, int]:
        """Rank 0's counts, by the names of a cost card."""
        def own(place: int) -> bool:
            return place == 0

        def other(place: int) -> bool:
            return place not in (0, HOST)

        def host(place: int) -> bool:
            return place == HOST
        return {"bytes_out": self.bytes_between(own, other), "bytes_in": self.bytes_between(other, own),
                "bytes_to_host": self.bytes_between(own, host), "bytes_from_host": self.bytes_between(host, own)}

    def ms(self) -> float:
        """From the begin of the first operation to the end of the last one."""
        return max(bar["ts"] + bar["dur"] for bars in self.bars.values() for bar in bars) / 1000

    def signature(self, without: Mapping[str, str], told_apart_by: Sequence[str] = ()) -> str:
        """The names of rank 0's kernels by phase, without phases whose kernels are those of `without`: "map: search_tiles;
        scatter: scatter_rows". Phases are in the order in which they began; a phase's kernels are sorted and distinct, with the
        given template arguments: "multiply<Store = TmaStore>"."""
        phases: Dict[str, Set[str]] = {}
        for bar in sorted(self.kernels(), key=lambda bar: bar["ts"]):
            name = re.match(r"[\w:]+", bar["args"]["what"])
            chosen = ", ".join(given for parameter in told_apart_by
                               for given in re.findall(rf"[\[ ]({parameter} = [^;\]]+)", bar["args"].get("kernel", "")))
            phases.setdefault(phase_of(bar), set()).add((name.group() if name else bar["args"]["what"]) + (f"<{chosen}>" if chosen else ""))
        texts = {phase: " ".join(sorted(names)) for phase, names in phases.items()}
        return "; ".join(f"{phase}: {text}" if phase else text for phase, text in texts.items() if without.get(phase) != text)

    def longest_us(self, *phases: str) -> Dict[str, float]:
        """The time of each of the program's own kernels on the slowest GPU, by name, in all phases or in `phases`."""
        longest: Dict[str, float] = {}
        for bar in (bar for gpu in self.bars for bar in self.kernels(gpu)):
            name = bar["args"]["what"]
            if bar["cat"] == "kernel" and not name.startswith((LIBRARY, "cub::")) and (not phases or phase_of(bar) in phases):
                longest[name] = max(longest.get(name, 0), bar["dur"])
        return longest

    def ms_of(self, phase: str) -> List[float]:
        """The time of the phase's operations on each GPU, without waits and pauses."""
        return [sum(bar["dur"] for bar in bars if phase_of(bar) == phase) / 1000 for bars in self.bars.values()]


def phase_of(bar: Dict[str, Any]) -> str:
    """The outermost scope, without numbers, because the steps of a ring are equal."""
    return re.sub(r"\d+", "N", bar["args"].get("scope", "").partition(" / ")[0])


def calls_of(timeline: pathlib.Path) -> Dict[str, Call]:
    """By section: one more call of each variant."""
    trace = json.loads(timeline.read_text(encoding="utf-8"))
    calls: Dict[str, Call] = collections.defaultdict(Call)
    processes = {event["pid"]: event["args"] for event in trace["traceEvents"] if event["name"] == "process_labels"}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            process = processes[event["pid"]]
            calls[process["labels"]].bars[process["gpu"]].append(event)
    for section, links in trace["otherData"].get("moved", {}).items():
        calls[section].links = links
    return dict(calls)
