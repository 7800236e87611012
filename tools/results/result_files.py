"""The files of docs/results: one for each machine, with reports of chapters ("runs") and of other systems ("peers"), and
profiles of kernels."""
import csv
import json
import os
import pathlib
from typing import Any, Dict, List

from tools.results.results import same_measurement

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


def same(one: Report, other: Report) -> bool:
    """True if both say the same thing, perhaps with other numbers."""
    if "metrics" in one or "metrics" in other:
        return (one.get("chapter"), one.get("size")) == (other.get("chapter"), other.get("size"))
    return ("peer" in one) == ("peer" in other) and same_measurement(one, other)


def merge(held: Parts, new: Parts) -> None:
    """Puts the new reports into `held`: each replaces the report of the same measurement, else it follows the others of its
    chapter."""
    for part in PARTS:
        reports = held.setdefault(part, [])
        for report in new.get(part, []):
            places = [i for i, old in enumerate(reports) if same(report, old)]
            for i in reversed(places[1:]):
                del reports[i]
            if places:
                reports[places[0]] = report
            else:
                reports.append(report)
    held["runs"].sort(key=lambda run: str(run["chapter"]))


def load(path: pathlib.Path) -> Parts:
    """The content of a machine's file, with empty parts if the file does not exist."""
    parts: Parts = {part: [] for part in PARTS}
    if path.exists():
        parts.update(json.loads(path.read_text(encoding="utf-8")))
    return parts


def save(path: pathlib.Path, parts: Parts) -> None:
    """Writes the whole file or nothing: writes another file first, then renames it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(parts, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)
