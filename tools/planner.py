#!/usr/bin/env python3
"""What ./lab plan says against what was measured: tools/planner.py prints it, row by row, once bin/plan is built.

A row is a variant of a run in docs/results that the planner predicts, under the same sizes and number of GPUs. The error is
(predicted - measured) / measured. A problem is a set of rows that were measured in one run; its winner is the fastest.
"""
import dataclasses
import json
import pathlib
import statistics
import subprocess
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import sparse_results
from results import Run, load, newest, plain_results

MACHINES = {"NVIDIA H200": "h200-nvlink"}  # whose machine file has the constants of which GPU
OPERATIONS = {**{number: "all_gather_matmul" for number in ("02", "03", "04", "05", "17", "18")},
              **{number: "matmul_reduce_scatter" for number in ("06", "19")}, "07": "mlp_block"}
SWEEP = {"ring_one_stream_ms": "copy_engine_ring", "ring_two_streams_ms": "ring_two_streams", "gemm_only_ms": "gemm_only"}
CHAPTERS_OF_NAMES = {"17": {"gather_then_multiply": "nccl"}}  # one algorithm, another name
SIZES = ("m", "n", "k")


@dataclasses.dataclass(frozen=True)
class Row:
    """A variant, measured and predicted."""

    problem: Tuple[str, ...]  # chapter or experiment, sizes, GPUs
    variant: str
    measured_us: float
    predicted_us: float

    @property
    def error(self) -> float:
        """Of the prediction, as a part of what was measured."""
        return (self.predicted_us - self.measured_us) / self.measured_us


class PlanError(Exception):
    """The planner failed: what it said."""


def plan(program: pathlib.Path, *arguments: str) -> Dict[str, Any]:
    """What the planner predicts."""
    run = subprocess.run([program, *arguments, "--json", "-"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise PlanError(f"plan {' '.join(arguments)}: {run.stderr.strip()}")
    prediction: Dict[str, Any] = json.loads(run.stdout)
    return prediction


def predicted(operation: Mapping[str, Any]) -> Dict[str, float]:
    """Microseconds by the variant's name; of the variants that can be had."""
    times = {variant["variant"]: float(variant["predicted_us"]) for variant in operation["variants"] if "predicted_us" in variant}
    if "gemm_only_us" in operation:
        times["gemm_only"] = float(operation["gemm_only_us"])
    return times


def measured_sets(run: Run) -> Iterator[Tuple[Dict[str, Any], Dict[str, float], str]]:
    """What a run measured side by side: sizes, microseconds by the variant's name, operation."""
    number, options = run["chapter"][:2], run["options"]
    if sparse_results.is_sparse(run):
        for result in plain_results(run):
            if result.get("role") == "algorithm" and "host_ms" in result:
                sizes = {**options, "global": result["global_rows"], "entries": result["rows_of_ranks"] // options["gpus"]}
                yield (sizes, {each["variant"]: 1e3 * each["host_ms"] for each in plain_results(run)
                               if each.get("role") == "algorithm" and "host_ms" in each}, "sparse_all_reduce")
                return
        return
    if number not in OPERATIONS:
        return
    names = CHAPTERS_OF_NAMES.get(number, {})
    times = {names.get(result["variant"], result["variant"]): 1e3 * result["device_ms"] for result in plain_results(run)
             if result.get("role") in ("algorithm", "gemm_only") and "device_ms" in result}
    if times:
        yield options, times, OPERATIONS[number]
    for result in run["results"]:
        if run["chapter"] == "05_two_streams/sweep" and result.get("section") == "sweep":
            yield {**options, **{name: result[name] for name in SIZES}}, {
                variant: 1e3 * result[field] for field, variant in SWEEP.items() if field in result}, "all_gather_matmul"


def rows_of(runs: Sequence[Run], program: pathlib.Path) -> List[Row]:
    """All rows that are both measured and predicted, run by run."""
    rows = []
    for run in newest(run for run in runs if not run["modelled"]):
        machine = MACHINES.get(run["hardware"]["gpu"])
        if machine is None or run.get("status") != "ok":
            continue
        for sizes, times, operation in measured_sets(run):
            fields = ("rows", "features", "entries", "global") if operation == "sparse_all_reduce" else SIZES
            arguments = [word for name in fields for word in (f"--{name}", str(sizes[name]))]
            prediction = plan(program, "--machine", machine, "--gpus", str(sizes["gpus"]), "--operation", operation, *arguments)
            expected = predicted(prediction["operations"][0])
            problem = (run["chapter"], " x ".join(str(sizes[name]) for name in fields), str(sizes["gpus"]))
            rows += [Row(problem, name, time, expected[name]) for name, time in times.items() if name in expected]
    return rows


@dataclasses.dataclass(frozen=True)
class Winner:
    """Of a problem with two algorithms or more: which was the fastest, and which the planner says."""

    problem: Tuple[str, ...]
    measured: str
    predicted: str
    cost: float  # by how much what the planner says was slower than the fastest, as a part

    @property
    def right(self) -> bool:
        """The same one."""
        return self.measured == self.predicted


def winners_of(rows: Sequence[Row]) -> List[Winner]:
    """Of each problem."""
    problems: Dict[Tuple[str, ...], List[Row]] = {}
    for row in rows:
        if row.variant != "gemm_only":
            problems.setdefault(row.problem, []).append(row)
    found = []
    for problem, group in problems.items():
        if len(group) > 1:
            fastest = min(group, key=lambda row: row.measured_us)
            said = min(group, key=lambda row: row.predicted_us)
            found.append(Winner(problem, fastest.variant, said.variant, said.measured_us / fastest.measured_us - 1))
    return found


def median_error(rows: Sequence[Row]) -> Optional[float]:
    """Of the errors without their signs; none without rows."""
    return statistics.median(abs(row.error) for row in rows) if rows else None


def report(rows: Sequence[Row]) -> str:
    """A line for each row, and what all of them say."""
    lines = [f"{row.problem[0]:28} {row.problem[1]:32} {row.problem[2]:>4} GPUs  {row.variant:20} measured {row.measured_us:11.1f} us"
             f"  predicted {row.predicted_us:11.1f} us  error {100 * row.error:+6.1f} %" for row in rows]
    median, winners = median_error(rows), winners_of(rows)
    if median is None:
        return "nothing that was measured is predicted"
    lines += [f"{winner.problem[0]}, {winner.problem[1]}, {winner.problem[2]} GPUs: predicted winner {winner.predicted}, measured "
              f"{winner.measured}: {100 * winner.cost:.1f} % slower" for winner in winners if not winner.right]
    return "\n".join([*lines, f"{len(rows)} rows, median error {100 * median:.1f} %; winner right in "
                      f"{sum(winner.right for winner in winners)} of {len(winners)}"])


if __name__ == "__main__":
    REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
    measured = [run for each in load(REPOSITORY / "docs" / "results") for run in each["runs"]]
    print(report(rows_of(measured, REPOSITORY / "build" / "virtual" / "bin" / "plan")))
