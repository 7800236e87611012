#!/usr/bin/env python3
"""Compares ./lab plan with the measurements: tools/results/planner.py prints a row for each variant. The chapters' programs
must be built.

A row is a variant of a run in docs/results that the planner predicts, under the same sizes and number of GPUs. The error is
(predicted - measured) / measured. A problem is a set of rows that were measured in one run; its winner is the fastest. The
constants of a machine file name the chapter from whose runs they were taken: only rows of other chapters are true predictions.
"""
import dataclasses
import functools
import json
import pathlib
import re
import statistics
import subprocess
import sys
from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.results import sparse_results  # noqa: E402
from tools.chapters import operation_of  # noqa: E402
from tools.results.plan_machine import PlanError  # noqa: E402
from tools.results.results import Result, Run, chapter_of, load, newest, plain_results  # noqa: E402

MACHINES = {"NVIDIA H200": "h200-nvlink"}  # machine file -> the GPU whose constants it holds
# Exceptions for single chapters. A new chapter needs none.
PRODUCTS = "16_tensor_core_gemm"  # no manifest names its operation, because no peer is compared on it
SWEEP = {"ring_one_stream_ms": "copy_engine_ring", "ring_two_streams_ms": "ring_two_streams", "gemm_only_ms": "gemm_only"}
CHAPTERS_OF_NAMES = {"17": {"gather_then_multiply": "nccl"}}  # another name of the same algorithm
SIZES = ("m", "n", "k")
INSIDE = "what makes it slower or faster is inside its kernel, and not in its cost"
# Measured algorithms that are not predicted, and why.
LEFT_OUT = {**dict.fromkeys(("without_tma", "one_stage", "ring_of_stages", "specialised", "larger_tile", "persistent", "fitting", "ring_in_turns",
                             "sum_in_epilogue", "dependent", "v6_prefetch", "v6_all_rows", "v6_skip"), INSIDE),
            "host_gloo": "a machine file does not say how fast a host adds"}
LEFT_OUT_CHAPTERS = {"20": "groups of one machine's GPUs are no nodes: what goes between them goes over the same links"}
OF_THEIR_CHAPTER = frozenset(("21_small_all_reduce/in_epilogue",))  # experiments that run variants of their chapter, too
NO_PREDICTION = "no prediction: the planner's catalogue does not hold it"  # an added chapter; an experiment


@dataclasses.dataclass(frozen=True)
class Row:
    """A variant, measured and predicted."""

    problem: Tuple[str, ...]  # chapter or experiment, sizes, GPUs
    variant: str
    measured_us: float
    predicted_us: float
    fitted: bool = False  # a constant of the machine was taken from a run of the same chapter
    contends: bool = True  # may be the fastest: a whole call with the same result as the others

    @property
    def error(self) -> float:
        """The error of the prediction, as a part of the measured time."""
        return (self.predicted_us - self.measured_us) / self.measured_us


@functools.lru_cache(maxsize=None)
def plan(program: pathlib.Path, *arguments: str) -> Dict[str, Any]:
    """The planner's predictions. Throws PlanError."""
    run = subprocess.run([program, *arguments, "--json", "-"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise PlanError(f"plan {' '.join(arguments)}: {run.stderr.strip()}")
    prediction: Dict[str, Any] = json.loads(run.stdout)
    return prediction


def contenders(operation: Mapping[str, Any]) -> Set[str]:
    """The names of the variants that may be the fastest."""
    return {variant["variant"] for variant in operation["variants"] if "differs" not in variant}


def predicted(operation: Mapping[str, Any]) -> Dict[str, float]:
    """Microseconds by the variant's name, for the variants that can run on the machine."""
    times = {variant["variant"]: float(variant["predicted_us"]) for variant in operation["variants"] if "predicted_us" in variant}
    if "gemm_only_us" in operation:
        times["gemm_only"] = float(operation["gemm_only_us"])
    return times


def is_algorithm(run: Run, result: Result) -> bool:
    """True for whole calls, not for parts of them. In chapter 16 a whole call is a GEMM."""
    return result.get("role") == "algorithm" or chapter_of(run) == PRODUCTS and result.get("role") == "product"


def compared_operation(run: Run) -> str:
    """The operation of the planner that a dense run is compared with; nothing if it is not compared."""
    if chapter_of(run) == PRODUCTS:
        return "matmul"
    chapter = run["chapter"].partition("/")[0] if run["chapter"] in OF_THEIR_CHAPTER else run["chapter"]
    return "" if chapter[:2] in LEFT_OUT_CHAPTERS else operation_of(chapter)


def measured_sets(run: Run) -> Iterator[Tuple[Dict[str, Any], Dict[str, float], str]]:
    """The measurements of a run: sizes, microseconds by the variant's name, operation."""
    options, operation = run["options"], compared_operation(run)
    if sparse_results.is_sparse(run):
        for result in plain_results(run):
            if result.get("role") == "algorithm" and "host_ms" in result:
                sizes = {**options, "global": result["global_rows"], "entries": result["rows_of_ranks"] // options["gpus"]}
                yield (sizes, {each["variant"]: 1e3 * each["host_ms"] for each in plain_results(run)
                               if each.get("role") == "algorithm" and "host_ms" in each}, "sparse_all_reduce")
                return
        return
    names = CHAPTERS_OF_NAMES.get(run["chapter"][:2], {})
    times = {names.get(result["variant"], result["variant"]): 1e3 * result["device_ms"] for result in plain_results(run)
             if (is_algorithm(run, result) or result.get("role") == "gemm_only") and "device_ms" in result}
    if times and operation:
        yield options, times, operation
    for result in run["results"]:
        if run["chapter"] == "05_two_streams/sweep" and result.get("section") == "sweep":
            yield {**options, **{name: result[name] for name in SIZES}}, {
                variant: 1e3 * result[field] for field, variant in SWEEP.items() if field in result}, "all_gather_matmul"


def fitted_chapters(prediction: Mapping[str, Any]) -> Set[str]:
    """The numbers of the chapters from which the machine's constants were taken."""
    return {number for constant in prediction.get("constants", ()) for number in re.findall(r"\b(\d\d)_\w+", constant["from"].partition(":")[0])}


def predictable(runs: Iterable[Run]) -> List[Run]:
    """The runs that are compared: on real GPUs of a kind whose constants are known."""
    return [run for run in newest(run for run in runs if not run["modelled"])
            if run["hardware"]["gpu"] in MACHINES and run.get("status") == "ok"]


def rows_of(runs: Sequence[Run], program: pathlib.Path) -> List[Row]:
    """All rows that are both measured and predicted, run by run."""
    rows = []
    for run in predictable(runs):
        machine = MACHINES[run["hardware"]["gpu"]]
        for sizes, times, operation in measured_sets(run):
            fields = ("rows", "features", "entries", "global") if operation == "sparse_all_reduce" else SIZES
            arguments = [word for name in fields for word in (f"--{name}", str(sizes[name]))]
            prediction = plan(program, "--machine", machine, "--gpus", str(sizes["gpus"]), "--operation", operation, *arguments)
            expected, may_win = predicted(prediction["operations"][0]), contenders(prediction["operations"][0])
            problem = (run["chapter"], " x ".join(str(sizes[name]) for name in fields), str(sizes["gpus"]))
            fitted = problem[0][:2] in fitted_chapters(prediction)
            rows += [Row(problem, name, time, expected[name], fitted, name in may_win)
                     for name, time in times.items() if name in expected]
    return rows


def left_out(runs: Sequence[Run], rows: Sequence[Row], catalogue: AbstractSet[str]) -> List[Tuple[str, str, str]]:
    """Chapter, variant and reason of each measured algorithm that is not predicted; "" if there is none, which is an error
    for a chapter of `catalogue`, those that the planner knows."""
    have = {(row.problem[0], row.variant) for row in rows}
    missing = []
    for run in predictable(runs):
        names = CHAPTERS_OF_NAMES.get(run["chapter"][:2], {})
        for result in plain_results(run):
            if result.get("role") == "algorithm" and (run["chapter"], names.get(result["variant"], result["variant"])) not in have:
                default = "" if run["chapter"] in catalogue else NO_PREDICTION
                reason = LEFT_OUT.get(result["variant"]) or LEFT_OUT_CHAPTERS.get(run["chapter"][:2], default)
                missing.append((run["chapter"], result["variant"], reason))
    return list(dict.fromkeys(missing))


TIE = 0.01  # less than one algorithm differs in two runs: chapter 06's in its own run and in 19's, on 2 x H200, by 1.6 to 2.4 %


@dataclasses.dataclass(frozen=True)
class Winner:
    """For a problem with at least two algorithms: the fastest one, and the one that the planner names."""

    problem: Tuple[str, ...]
    measured: str
    predicted: str
    cost: float  # by how much the named one was slower than the fastest, as a part

    @property
    def right(self) -> bool:
        """True if both are the same."""
        return self.measured == self.predicted


def winners_of(rows: Sequence[Row]) -> List[Winner]:
    """The verdict on each problem that has a winner: whose two fastest algorithms are further apart than TIE."""
    problems: Dict[Tuple[str, ...], List[Row]] = {}
    for row in rows:
        if row.contends:
            problems.setdefault(row.problem, []).append(row)
    found = []
    for problem, group in problems.items():
        if len(group) > 1:
            fastest, second = sorted(group, key=lambda row: row.measured_us)[:2]
            if second.measured_us < (1 + TIE) * fastest.measured_us:
                continue
            said = min(group, key=lambda row: row.predicted_us)
            found.append(Winner(problem, fastest.variant, said.variant, said.measured_us / fastest.measured_us - 1))
    return found


def median_error(rows: Sequence[Row]) -> Optional[float]:
    """The median of the absolute errors; none without rows."""
    return statistics.median(abs(row.error) for row in rows) if rows else None


def report(rows: Sequence[Row]) -> str:
    """A line for each row, and a summary."""
    lines = [f"{row.problem[0]:28} {row.problem[1]:32} {row.problem[2]:>4} GPUs  {row.variant:20} measured {row.measured_us:11.1f} us"
             f"  predicted {row.predicted_us:11.1f} us  error {100 * row.error:+6.1f} %" for row in rows]
    median, winners = median_error(rows), winners_of(rows)
    if median is None:
        return "nothing that was measured is predicted"
    others = [row for row in rows if not row.fitted]
    if others:
        lines.append(f"{len(others)} rows of chapters that no constant was taken from: median error {100 * median_error(others):.1f} %")
    lines += [f"{winner.problem[0]}, {winner.problem[1]}, {winner.problem[2]} GPUs: predicted winner {winner.predicted}, measured "
              f"{winner.measured}: {100 * winner.cost:.1f} % slower" for winner in winners if not winner.right]
    return "\n".join([*lines, f"{len(rows)} rows, median error {100 * median:.1f} %; winner right in "
                      f"{sum(winner.right for winner in winners)} of {len(winners)}"])


if __name__ == "__main__":
    REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
    measured = [run for each in load(REPOSITORY / "docs" / "results") for run in each["runs"]]
    print(report(rows_of(measured, REPOSITORY / "tools" / "results" / "plan.py")))
