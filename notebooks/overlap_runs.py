"""What the notebooks share: runs of chapters, predictions, results that were measured, and the words that tell which is which.

Nothing is computed here: a chapter's program runs by `./lab run ... --json`, the planner by `./lab plan ... --json`, and
measured results lie in docs/results.
"""
import json
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, List

import pandas

ROOT = pathlib.Path(__file__).resolve().parents[1]
Report = Dict[str, Any]
GPU = "NVIDIA H200"  # whose results are plotted: a plot is of one kind of GPU, and docs/results may hold several


def _lab(*arguments: str) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "report.json")
        command = [str(ROOT / "lab"), "--backend=virtual", *arguments, "--json", str(path)]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"./lab {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
        return json.loads(path.read_text(encoding="utf-8"))


def run(program: str, *arguments: str) -> Report:
    """The report of a chapter (05) or an experiment (05/sweep) on virtual GPUs: its times are modelled."""
    return _lab("run", program, *arguments)


def plan(*arguments: str, **constants: float) -> Report:
    """What the planner predicts for GPUs like the H200, or for some that differ in these constants; nothing is run."""
    machine = json.loads((ROOT / "virtual_gpu" / "machines" / "h200-nvlink.json").read_text(encoding="utf-8"))
    machine["name"] += ", changed" if constants else ""
    machine["plan"].update({name: {"is": value, "from": "chosen in a notebook"} for name, value in constants.items()})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(machine, file)
        file.flush()
        return _lab("plan", "--machine", file.name, *arguments)


def _reports(kind: str) -> List[Report]:
    files = sorted((ROOT / "docs" / "results").glob("*.json"))
    found = [report for path in files for report in json.loads(path.read_text(encoding="utf-8"))[kind]]
    return [report for report in found if report["hardware"]["gpu"] == GPU]


def measured(program: str, **options: Any) -> List[Report]:
    """The reports of a chapter or an experiment on real GPUs of that kind, of those sizes; no quick ones."""
    found = [report for report in _reports("runs") if report["chapter"] == program and not report["modelled"]
             and not report.get("bench", {}).get("quick")]
    return [report for report in found if all(report["options"].get(name) == value for name, value in options.items())]


def peers(operation: str) -> List[Report]:
    """The reports of other systems on real GPUs of that kind."""
    return [report for report in _reports("peers") if report["options"]["operation"] == operation]


def table(report: Report, section: str = "") -> pandas.DataFrame:
    """A report's results, one a row: those of its variants, or of a section."""
    return pandas.DataFrame([result for result in report["results"] if result.get("section", "") == section])


def predictions(prediction: Report) -> pandas.DataFrame:
    """The variants of a prediction's first operation, one a row, with their times against that of the GEMM alone."""
    operation = prediction["operations"][0]
    variants = pandas.DataFrame([variant for variant in operation["variants"] if "predicted_us" in variant])
    if "gemm_only_us" in operation:
        variants["x GEMM only"] = variants["predicted_us"] / operation["gemm_only_us"]
    return variants.set_index("variant")


def stamp(report: Report) -> str:
    """Where the times come from; a plot has it in its title."""
    if report.get("predicted"):
        return f"predicted: {report['machine']}, {report['gpus_per_node']} GPUs in a node, nothing was run"
    hardware = report["hardware"]
    if report["modelled"]:
        return f"modelled: {hardware['gpu']}, not measured"
    return f"measured: {hardware['gpus']} x {hardware['gpu']}, driver {hardware['driver']}, {report['date'][:10]}"
