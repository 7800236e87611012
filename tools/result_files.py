"""The files of docs/results: one for each machine, with reports of chapters ("runs") and of other systems ("peers"), and
profiles of kernels."""
import csv
import json
import os
import pathlib
from typing import Any, Dict, Iterable, List

from results import replaces, same_measurement

CHANGING = {"sm_clock"}  # what may differ from run to run
PARTS = ("runs", "peers", "profiles")

Report = Dict[str, Any]
Parts = Dict[str, List[Report]]  # the content of a file


class Refused(Exception):
    """A report that must not be published; the text is the reason."""


def profile(path: pathlib.Path) -> Report:
    """The metrics of one kernel, from ncu's table of one row for each."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    if not rows:
        raise Refused(f"{path}: no metrics")
    chapter, size = path.name.split(".")[0].split("-", 1)
    metrics = {row["Metric Name"]: {"value": float(row["Metric Value"].replace(",", "")), "unit": row["Metric Unit"]}
               for row in rows}
    return {"chapter": chapter, "size": size, "kernel": rows[0]["Kernel Name"], "metrics": metrics}


def require_published(report: Report, name: str) -> None:
    """Throws Refused unless it is a finished run on real GPUs."""
    if report["modelled"] or report["status"] != "ok":
        raise Refused(f"{name}: not a finished run on real GPUs")


def read(paths: Iterable[pathlib.Path]) -> Parts:
    """The reports, each in the part of a file that it belongs to."""
    parts: Parts = {part: [] for part in PARTS}
    for path in paths:
        if path.suffix == ".csv":
            parts["profiles"].append(profile(path))
            continue
        report: Report = json.loads(path.read_text())
        require_published(report, str(path))
        parts["peers" if "peer" in report else "runs"].append(report)
    return parts


def lasting(hardware: Dict[str, str]) -> Dict[str, str]:
    """What must not differ."""
    return {name: value for name, value in hardware.items() if name not in CHANGING}


def require_one_machine(parts: Parts) -> None:
    """All from one machine, and the chapters of one commit. Peers stamp less of the hardware; that must agree."""
    for what, values in (("commit", {run["commit"] for run in parts["runs"]}),
                         ("hardware", {json.dumps(lasting(run["hardware"])) for run in parts["runs"]})):
        if len(values) > 1:
            raise Refused(f"the reports differ in {what}: {sorted(values)}")
    machine = next((run["hardware"] for run in parts["runs"]), None)
    for peer in parts["peers"]:
        machine = machine or peer["hardware"]
        differs = [name for name, value in peer["hardware"].items() if machine.get(name) != value]
        if differs:
            raise Refused(f"the reports differ in hardware: {peer['peer']} has another {', '.join(differs)}")


def same(one: Report, other: Report) -> bool:
    """True if both say the same thing, perhaps with other numbers."""
    if "metrics" in one or "metrics" in other:
        return (one.get("chapter"), one.get("size")) == (other.get("chapter"), other.get("size"))
    return ("peer" in one) == ("peer" in other) and same_measurement(one, other)


def merge(held: Parts, new: Parts) -> List[Report]:
    """Puts the new reports into `held`: each in the place of what measured the same, else behind the others of its chapter.
    Returns those that stayed out, since what is held counts more (a full run counts more than a quick one)."""
    out: List[Report] = []
    for part in PARTS:
        reports = held.setdefault(part, [])
        for report in new.get(part, []):
            places = [i for i, old in enumerate(reports) if same(report, old)]
            if part != "profiles" and any(not replaces(report, reports[i]) for i in places):
                out.append(report)
                continue
            for i in reversed(places[1:]):
                del reports[i]
            if places:
                reports[places[0]] = report
            else:
                reports.append(report)
    held["runs"].sort(key=lambda run: str(run["chapter"]))
    return out


def load(path: pathlib.Path) -> Parts:
    """A machine's file; empty parts if there is none yet."""
    parts: Parts = {part: [] for part in PARTS}
    if path.exists():
        parts.update(json.loads(path.read_text(encoding="utf-8")))
    return parts


def save(path: pathlib.Path, parts: Parts) -> None:
    """Writes the whole file, or nothing: beside it first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(parts, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)
