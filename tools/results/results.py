"""Reports of runs, and of the systems that they are compared with (peers): finding them, and the values of a variant.

A report of a chapter on dense GEMMs holds results with these fields; all but the first two may be missing:
  variant, role (gemm_only, algorithm, product, part, communication), gpus, device_ms, device_p99_ms, host_ms,
  back_to_back_ms, tflops, percent_of_peak, ratio_to_gemm_only, exposed_ms, bus_gb_per_s
and results with `section` and any other fields, which make a table of their own. ./lab bench adds to each report the field
`bench`: program, arguments, seconds.
"""
import dataclasses
import json
import pathlib
import re
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from tools.results import sparse_results
from tools.chapters import operation_of
from tools.results.sparse_results import Result, Run

Column = Tuple[str, int]  # the kind of GPU and how many of them


def load(folder: pathlib.Path) -> List[Dict[str, Any]]:
    """All committed reports of real machines."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def problem_of(run: Run) -> Tuple[Any, ...]:
    """The problem of a run: sizes, type and number of GPUs."""
    if sparse_results.is_sparse(run):
        return sparse_results.problem_of(run)
    return tuple(run["options"][name] for name in ("m", "n", "k", "type", "gpus"))


def column_of(run: Run) -> Column:
    """The kind of GPU, and the number that the run used."""
    return run["hardware"]["gpu"].replace("NVIDIA ", ""), int(run["options"]["gpus"])


def several_gpus(columns: Iterable[Column]) -> List[Column]:
    """The columns, each once; those of one GPU, a control, only if there are no others."""
    found = list(dict.fromkeys(columns))
    return [column for column in found if column[1] > 1] or found


def _command(run: Run) -> Optional[str]:
    """The command line with which ./lab bench measured the run; none if it was measured otherwise."""
    command: Optional[str] = run.get("bench", {}).get("arguments")
    return command


def _measured(run: Run) -> Tuple[Any, ...]:
    """The values that are equal in two runs of the same measurement, apart from the variants."""
    settings = tuple(dict.fromkeys(result.get("settings", "") for result in run["results"]))
    return (run.get("chapter") or run["peer"], run["hardware"]["gpu"], problem_of(run), run["options"].get("operation"), settings)


def same_measurement(one: Run, other: Run) -> bool:
    """True if the same command line of the same program measured both, on the same kind of GPU. For a run without its command
    line: if both solved the same problem and share a variant (the program may have new ones by now)."""
    if _measured(one) != _measured(other):
        return False
    if _command(one) is not None and _command(other) is not None:
        return _command(one) == _command(other)
    variants, others = (set(run["options"].get("variants", ())) for run in (one, other))
    return not variants or not others or not variants.isdisjoint(others)


def newest(runs: Iterable[Run]) -> List[Run]:
    """The runs without repetitions: of several runs of one measurement on one kind of GPU the latest, at the place of the
    first."""
    chosen: List[Run] = []
    for run in runs:
        for i, other in enumerate(chosen):
            if same_measurement(run, other):
                chosen[i] = run if run["date"] >= other["date"] else other
                break
        else:
            chosen.append(run)
    return chosen


def runs_of(chapter: str, reports: List[Dict[str, Any]]) -> List[Run]:
    """The chapter's runs on real GPUs, over all result files."""
    return newest(run for report in reports for run in report["runs"]
                  if run["chapter"] == chapter and not run["modelled"])


def chapter_of(run: Run) -> str:
    """The chapter's folder; the report of an experiment names NN_name/EXPERIMENT."""
    chapter: str = run["chapter"]
    return chapter.partition("/")[0]


def runs_with_section(chapter: str, section: str, reports: List[Dict[str, Any]]) -> List[Run]:
    """The runs on real GPUs, of the chapter's program and of its experiments, that hold results of the section. A run of an
    experiment replaces one of the chapter's program, which measured such sections before experiments existed."""
    def of_section(run: Run) -> Run:
        """The run without what may differ in two runs that solved the same problem: program, command line, further results."""
        rest = {name: value for name, value in run.items() if name != "bench"}
        return {**rest, "chapter": chapter, "options": {**run["options"], "variants": [section]}}
    runs = [of_section(run) for report in reports for run in report["runs"]
            if chapter_of(run) == chapter and not run["modelled"]
            and any(result.get("section") == section for result in run["results"])]
    return newest(runs)


def peers_of(run: Run, peers: Iterable[Run]) -> List[Run]:
    """The peers that were measured on the run's problem, on the same kind of GPU."""
    operation = operation_of(run["chapter"])
    return newest(peer for peer in peers if peer["options"]["operation"] == operation
                  and problem_of(peer) == problem_of(run) and peer["hardware"]["gpu"] == run["hardware"]["gpu"])


def peers_in(reports: List[Dict[str, Any]]) -> List[Run]:
    """All peers of all result files."""
    return [peer for report in reports for peer in report.get("peers", [])]


def size_text(run: Run) -> str:
    """The problem's sizes, and its type if it is not the usual one."""
    if sparse_results.is_sparse(run):
        return sparse_results.size_text(run)
    options = run["options"]
    size = " x ".join(str(options[name]) for name in "mnk")
    return size if options["type"] in ("f16", "int32") else f"{size}, {options['type']}"


def plain_results(run: Run) -> List[Result]:
    """The results outside of sections."""
    return [result for result in run["results"] if "section" not in result]


def is_dense(run: Run) -> bool:
    """True for the chapters on dense GEMMs: their results have roles."""
    return not sparse_results.is_sparse(run) and any("role" in result for result in plain_results(run))


def algorithms(run: Run, runs: Iterable[Run] = ()) -> List[Result]:
    """The measured algorithms of the run, without those that an earlier chapter of `runs` has by the same name: they are here
    for comparison."""
    of_others = {result.get("variant") for each in runs if chapter_of(each) < chapter_of(run) for result in plain_results(each)}
    return [result for result in plain_results(run) if result.get("role") == "algorithm" and result["variant"] not in of_others
            and ("device_ms" in result or sparse_results.is_sparse(run))]


def best_algorithm(run: Run, runs: Iterable[Run] = ()) -> Optional[Result]:
    """The fastest of the results."""
    return min(algorithms(run, runs), key=lambda result: float(result["device_ms"]), default=None)


@dataclasses.dataclass(frozen=True)
class Row:
    """One variant's line of a table, as text. A cell without a value is empty."""
    name: str
    role: str
    time: str = ""
    rate: str = ""
    ratio: str = ""
    exposed: str = ""
    with_host: str = ""
    at_once: str = ""

    def cells(self) -> List[str]:
        """The cells without the role, which only decides what is shown."""
        return [self.name, self.time, self.rate, self.ratio, self.exposed, self.with_host, self.at_once]


COLUMNS = ("variant", "time, us", "TFLOP/s", "x GEMM only", "exposed, us", "x GEMM only, with the host",
           "x GEMM only, of 20 at once")  # VariantTimes::calls_at_once() on real GPUs


def microseconds(milliseconds: float) -> str:
    """A time in the tables' format."""
    return f"{1e3 * milliseconds:.1f}"


def rate_text(result: Result) -> str:
    """TFLOP/s of each GPU with the share of its peak; of communication alone the bus bandwidth."""
    if "bus_gb_per_s" in result:
        return f"{result['bus_gb_per_s']:.0f} GB/s"
    if "tflops" not in result:
        return ""
    rate = f"{result['tflops']:.0f}" if result["tflops"] >= 10 else f"{result['tflops']:.2g}"
    return f"{rate} ({result['percent_of_peak']:.0f} %)" if "percent_of_peak" in result else rate


def gemm_only_of(run: Run) -> Optional[Result]:
    """The result to which the run's ratios refer."""
    return next((result for result in plain_results(run) if result.get("role") == "gemm_only"), None)


def ratio_of(result: Result, gemm_only: Optional[Result], measure: str) -> str:
    """A whole call's `measure` over that of `gemm_only`; nothing if one of them lacks it."""
    if not gemm_only or result.get("role") not in ("gemm_only", "algorithm", "product") \
            or not result.get(measure) or not gemm_only.get(measure):
        return ""
    return f"{result[measure] / gemm_only[measure]:.3f}"


def row_of(result: Result, name: str, gemm_only: Optional[Result]) -> Row:
    """The line of one result; `gemm_only` is the result of the same run."""
    role = result.get("role", "")
    if "device_ms" not in result:
        return Row(name, role, result.get("status", "not measured"))
    exposed = result.get("exposed_ms")
    if exposed is None and "gemm_only_ms" in result:
        exposed = result["device_ms"] - result["gemm_only_ms"]
    time = microseconds(result["device_ms"])
    if "device_max_ms" in result:  # a peer whose time is that of its fastest GPU
        time += f" to {microseconds(result['device_max_ms'])}"
    return Row(name, role, time, rate_text(result),
               f"{result['ratio_to_gemm_only']:.3f}" if "ratio_to_gemm_only" in result else "",
               microseconds(exposed) if exposed is not None else "", ratio_of(result, gemm_only, "host_ms"),
               ratio_of(result, gemm_only, "back_to_back_ms"))


def run_rows(run: Run) -> List[Row]:
    """One line for each variant of a chapter's run."""
    gemm_only = gemm_only_of(run)
    return [row_of(result, result["variant"], gemm_only) for result in plain_results(run) if "role" in result]


def peer_rows(peer: Run) -> List[Row]:
    """One line for each variant of a peer, without its GEMM only: the chapter has its own."""
    return [row_of(result, f"{peer['peer']}: {result['variant']}", None) for result in peer["results"]
            if result.get("role") != "gemm_only"]


# Older names of variants in saved results of a section, and their present names.
RENAMED = {("transport", "transport"): "nccl"}


def is_time(name: str, value: Any) -> bool:
    """True if a field of a section is in milliseconds."""
    return name.endswith("ms") and isinstance(value, float)


def are_microseconds(runs: Sequence[Run], section: str) -> bool:
    """True if all times of a section are so short that microseconds are easier to read."""
    times = [value for run in runs for result in run["results"] if result.get("section") == section
             for name, value in result.items() if is_time(name, value)]
    return bool(times) and max(times) < 0.1


def section_fields(run: Run, section: str, microseconds: bool = False) -> Tuple[List[str], List[List[str]]]:
    """Header and lines of a section's table: the fields of its results."""
    results = [{name: value for name, value in result.items() if name != "section"}
               for result in run["results"] if result.get("section") == section]
    for result in results:
        if "variant" in result:
            result["variant"] = RENAMED.get((section, result["variant"]), result["variant"])
    if microseconds:
        results = [{re.sub("ms$", "us", name): 1e3 * value if is_time(name, value) else value for name, value in result.items()}
                   for result in results]
    names = list(dict.fromkeys(name for result in results for name in result))
    return [name.replace("_", " ") for name in names], \
        [[field_text(result.get(name, "")) for name in names] for result in results]


def field_text(value: Any) -> str:
    """A field of a section as text: numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
