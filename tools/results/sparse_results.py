"""The reports of the chapters on sparse gradients. Their results have these fields:
  variant, role, gpus, host_ms, host_p99_ms, calls, rows_of_ranks, global_rows, a field PHASE_ms for each phase, skew_ms
and, as those of the other chapters, results with `section`."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

Run = Dict[str, Any]  # the JSON of one program's --json
Result = Dict[str, Any]  # one of its results

SIZES = ("rows", "features", "entries")
# Variants of chapter 15 with another result: the sums stay with their owners; a rank fetches those of its own rows; the sums
# are rounded to 16 bits for the transfer.
OTHER_RESULTS = ("reduce_scatter", "scatter_fetch", "owners_bf16", "owners_f16")
DENSE = "dense_nccl"  # the reference of all others
NOT_PHASES = ("host_ms", "host_p99_ms", "skew_ms")


def is_sparse(run: Run) -> bool:
    """True for the chapters on sparse gradients."""
    return "entries" in run["options"]


def problem_of(run: Run) -> Tuple[Any, ...]:
    """The problem: sizes, type and number of GPUs, then the fields of sparse gradients."""
    return tuple(run["options"][name] for name in (*SIZES, "type", "gpus", "pattern", "duplicates", "index"))


def size_text(run: Run) -> str:
    """The table's size, the rows of each GPU and how they are chosen; types if they are not the usual ones."""
    options = run["options"]
    text = f"{options['rows']} x {options['features']}, {options['entries']} {options['pattern']}"
    if options["duplicates"]:
        text += f" + {options['duplicates']}"
    types = [options[name] for name, usual in (("type", "f32"), ("index", "int32")) if options[name] != usual]
    return ", ".join([text, *types])


def algorithms(run: Run) -> List[Result]:
    """The results of whole calls."""
    return [result for result in run["results"] if "section" not in result and result.get("role") == "algorithm"]


def whole_sums(run: Run) -> List[Result]:
    """The whole calls after which each rank holds the whole sum in the type of the values."""
    return [result for result in algorithms(run) if result["variant"] not in OTHER_RESULTS]


def phases_of(results: Sequence[Result]) -> List[str]:
    """The names of all phases, in the order of a call: the all-reduce is the last one."""
    names = list(dict.fromkeys(name for result in results for name in result
                               if name.endswith("_ms") and name not in NOT_PHASES))
    return sorted(names, key=lambda name: name == "all_reduce_ms")


def milliseconds(value: float) -> str:
    """A time in the tables' format: three significant digits."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def table_of(runs: Sequence[Run]) -> Tuple[List[str], List[List[str]]]:
    """Header and lines: one for each variant of each run."""
    results = [result for run in runs for result in algorithms(run)]
    phases = phases_of(results)
    header = ["table, rows of each GPU", "GPUs", "N", "G", "variant", "ms", *(name[:-3].replace("_", " ") for name in phases), "skew"]
    rows = []
    for run in sorted(runs, key=lambda run: int(run["options"]["gpus"])):
        for result in algorithms(run):
            times = [milliseconds(result[name]) if name in result else "" for name in (*phases, "skew_ms")]
            rows.append([size_text(run), str(run["options"]["gpus"]), str(result["rows_of_ranks"]), str(result["global_rows"]),
                         f"`{result['variant']}`", milliseconds(result["host_ms"]), *times])
    return header, rows


def times_dense(run: Run, chosen: Result, runs: Sequence[Run]) -> Optional[float]:
    """The speed of a result relative to the dense all-reduce of the same problem on the same kind of GPU. Of several
    all-reduces, one on the same machine is preferred, then one of the same run, then the newest."""
    dense = [(other["hardware"]["gpus"] == run["hardware"]["gpus"], other is run, str(other["date"]), float(result["host_ms"]))
             for other in runs
             if is_sparse(other) and problem_of(other) == problem_of(run) and other["hardware"]["gpu"] == run["hardware"]["gpu"]
             for result in algorithms(other) if result["variant"] == DENSE]
    return max(dense)[-1] / float(chosen["host_ms"]) if dense else None
