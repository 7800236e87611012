"""The generated parts of docs/sparse.md: chapters 08 to 15 on one problem, as a table and a picture, and the fastest variant by
density and number of GPUs. Counts and predictions come from ./lab plan's program, times from docs/results."""
import math
import pathlib
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tools.pages.draw_timeline import SMALL, WIDTH, number, svg, text
from tools.results import planner
from tools.results.ladder import stamps, table
from tools.results.results import Result, Run, column_of, peers_in, runs_of
from tools.results.sparse_results import DENSE, algorithms, milliseconds

PICTURE = "docs/pictures/sparse_progression.svg"
ROWS, ENTRIES = 5_000_000, 50_000  # of the table; of each rank
VERSION_6 = "v6_ordered"
BASELINES = "08_sparse_baselines"
IN_PYTORCH = {"host_gloo": "gloo"}  # variants that PyTorch's peer calls otherwise
COLUMN = ("H200", 2)  # of all times


class Step(NamedTuple):
    """A variant, and the cost that it removes."""

    chapter: str
    variant: str
    gone: str


STEPS = (Step(BASELINES, "host_gloo", ""), Step(BASELINES, DENSE, "the way through the host"),
         Step("09_sparse_v1_nonzero", "v1_nonzero", "rows that nobody has"),
         Step("10_sparse_v2_where", "v2_where", "the host's wait in each round"),
         Step("11_sparse_v3_graph", "v3_graph", "the host's launches in each round"),
         Step("12_sparse_v4_broadcast_eq", "v4_broadcast_eq", "the rounds"),
         Step("13_sparse_v5_kernel", "v5_kernel", "the matrix in memory"),
         Step("14_sparse_v6_tiled", VERSION_6, "comparisons that the order of the lists rules out"),
         Step("15_sparse_beyond", "v6_binary", "the sweep"),
         Step("15_sparse_beyond", "bitmap_plan", "rank 0, and all waits but one"),
         Step("15_sparse_beyond", "contributor_owners", "zeros on the links"))
SEARCHES = STEPS[2:]
SHARES, GPUS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), (2, 4, 8, 16, 64)
NAMES = ("launches", "host_waits", "comparisons", "memory")  # of a cost card

Reports = Sequence[Dict[str, Any]]


def measured(step: Step, reports: Reports) -> Optional[Tuple[Run, Result]]:
    """The step's run on this problem, and its result."""
    return _found(step.variant, runs_of(step.chapter, list(reports)))


def _found(variant: str, runs: Sequence[Run]) -> Optional[Tuple[Run, Result]]:
    for run in runs:
        if run["options"].get("entries") == ENTRIES and run["options"]["pattern"] == "uniform" and column_of(run) == COLUMN:
            for result in algorithms(run):
                if result["variant"] == variant:
                    return run, result
    return None


def counted(value: float) -> str:
    """A count as text: exact if it is short, else rounded."""
    return f"{value:,}" if value < 1_000_000 else re.sub(r"e\+0?", "e", f"{value:.3g}")


def progression(program: pathlib.Path, reports: Reports) -> str:
    """A line for each step: counts of rank 0 on two GPUs, and times, also of the same version in PyTorch."""
    prediction = planner.plan(program, "--gpus", "2", "--sparse", "--rows", str(ROWS), "--entries", str(ENTRIES))
    cards = {(each["chapter"], each["variant"]): each["cost"] for each in prediction["operations"][0]["variants"]}
    peers = [peer for peer in peers_in(list(reports)) if "entries" in peer["options"]]
    rows, runs = [], []
    for step in STEPS:
        found = measured(step, reports)
        in_pytorch = _found(IN_PYTORCH.get(step.variant, step.variant), peers)
        card = cards.get(step[:2], {})  # the planner has no way through the host
        told = ("host_waits", "memory") if step.variant == DENSE else NAMES
        counts = [counted(card[name]) if card and name in told else "-" for name in NAMES]
        times = ["-", "-"]
        if found:
            run, result = found
            runs.append(run)
            times = [milliseconds(result["map_ms"]) if "map_ms" in result else "-", milliseconds(result["host_ms"])]
        rows.append([f"[{step.chapter[:2]}](../chapters/{step.chapter}/README.md) `{step.variant}`", step.gone, *counts, *times,
                     milliseconds(in_pytorch[1]["host_ms"]) if in_pytorch else "-"])
    where = stamps(runs)
    return table(["version", "what went away", "launches", "waits", "comparisons", "memory, bytes", "search, ms", "call, ms", "PyTorch, ms"],
                 rows) + (f"\n{where}.\n" if where else "")


def density(program: pathlib.Path) -> str:
    """The predicted fastest variant: a line for each share of the table that a rank has. In brackets version 6."""
    def cell(share: float, gpus: int) -> str:
        prediction = planner.plan(program, "--gpus", str(gpus), "--sparse", "--rows", str(ROWS), "--entries", str(round(share * ROWS)))
        operation = prediction["operations"][0]
        times = planner.predicted(operation)
        winner = str(operation["winner"]).rpartition(" ")[2]
        return f"`{winner}` {times[DENSE] / times[winner]:.3g} ({times[DENSE] / times[VERSION_6]:.3g})"
    return table(["rows of each rank", *(f"{gpus} GPUs" for gpus in GPUS)],
                 [[f"{100 * share:g} %", *(cell(share, gpus) for gpus in GPUS)] for share in SHARES])


LEFT, RIGHT, TOP, ROW = 190, 70, 64, 34
LOW, HIGH = 0.01, 4000.0  # milliseconds at the ends of the axis


def _across(ms: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(max(ms, LOW) / LOW) / math.log(HIGH / LOW)


def pictures(reports: Reports) -> Dict[str, str]:
    """The picture by its name; no picture if no step was measured."""
    return {PICTURE: picture(reports)} if any(measured(step, reports) for step in SEARCHES) else {}


def picture(reports: Reports) -> str:
    """The search and the rest of each call on a logarithmic axis; the dense sum of the same machine as a line."""
    def bar(y: float, ms: float, colour: str, words: str) -> List[str]:
        return [f'<rect x="{LEFT}" y="{number(y)}" width="{number(_across(ms) - LEFT)}" height="11" fill="{colour}"/>',
                text(_across(ms) + 5, y + 10, words, "note", "start", SMALL)]
    found = [(step, *held) for step in SEARCHES for held in [measured(step, reports)] if held]
    bottom = TOP + ROW * len(found)
    parts = [text(16, 26, "A call of each version: the search, and the rest", "strong", "start"),
             f'<rect x="{WIDTH - 330}" y="16" width="11" height="11" fill="#2277bb"/>', text(WIDTH - 314, 26, "search", "note", "start"),
             f'<rect x="{WIDTH - 250}" y="16" width="11" height="11" fill="#d07a00"/>',
             text(WIDTH - 234, 26, "the rest; dashed: the dense sum", "note", "start")]
    for ms in (0.01, 0.1, 1, 10, 100, 1000):
        parts += [f'<path class="grid" d="M{number(_across(ms))} {TOP - 8} V{bottom}"/>',
                  text(_across(ms), TOP - 14, f"{ms:g} ms", "note", "middle", SMALL)]
    for index, (step, run, result) in enumerate(found):
        y = TOP + ROW * index
        search = float(result.get("map_ms", 0.0))
        gpu = column_of(run)[0].split()[0]
        parts.append(text(LEFT - 8, y + 12, step.variant, "strong", "end"))
        parts.append(text(LEFT - 8, y + 25, f"chapter {step.chapter[:2]}, {gpu}", "note", "end", SMALL))
        if search:
            parts += bar(y + 2, search, "#2277bb", milliseconds(search))
        parts += bar(y + 15, float(result["host_ms"]) - search, "#d07a00", milliseconds(float(result["host_ms"]) - search))
        dense = _dense_beside(run, reports)
        if dense:
            parts.append(f'<path d="M{number(_across(dense))} {y - 2} V{y + ROW - 4}" stroke="#b0508c" stroke-width="2" '
                         f'stroke-dasharray="4 3"><title>dense: {milliseconds(dense)} ms</title></path>')
    parts.append(text(LEFT, bottom + 22, "2 GPUs, a table of 5,000,000 x 2048, 50,000 rows of each; the axis is logarithmic, so lengths do not add up",
                      "note", "start", SMALL))
    return svg(parts, bottom + 36, "search and rest of a call of versions 1 to 6 and of chapter 15, in milliseconds, on a logarithmic axis")


def _dense_beside(run: Run, reports: Reports) -> float:
    """The dense sum of the same problem on the same kind of GPU: of the same run, or of chapter 08."""
    for other in (run, *(each for each in runs_of(BASELINES, list(reports)) if column_of(each) == column_of(run)
                         and each["options"].get("entries") == ENTRIES and each["options"]["pattern"] == "uniform")):
        for result in algorithms(other):
            if result["variant"] == DENSE:
                return float(result["host_ms"])
    return 0.0
