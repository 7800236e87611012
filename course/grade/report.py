"""Prints and writes grades."""
import csv
import dataclasses
import io
import json
import pathlib
from typing import Any, Dict, List, Tuple

from case_run import REPORTED
from points import CRITERIA, TITLES, Grade, Mark

OF_THE_SUBMISSION = ("race", "cost", "lesson")  # criteria that rest on reports of the submission's own process
COLUMNS = ["submission", *CRITERIA, "points", "points judged", "reason", "variation", "isolation", "counts and races", "seconds"]


def text(name: str, grade: Grade) -> str:
    """The report for the student."""
    lines = [f"{name}: {grade.points:g} of {grade.judged} points", ""]
    for mark in grade.marks:
        points = "  -" if mark.points is None else f"{mark.points:3g}"
        lines.append(f"  {points} / {mark.most:2}  {_title(mark)}: {mark.reason}")
        lines += [f"              {line}" for line in mark.details.splitlines()]
    variation = [f"variation: {grade.variation}"] if grade.variation else []
    lines += ["", *variation, f"isolation: {grade.isolation}", f"counts and races: {REPORTED}"]
    return "\n".join(lines) + "\n"


def _title(mark: Mark) -> str:
    """The criterion's title; it says if the points rest on the submission's own report."""
    return TITLES[mark.criterion] + (f" ({REPORTED})" if mark.criterion in OF_THE_SUBMISSION else "")


def values(grade: Grade) -> Dict[str, Any]:
    return {"points": grade.points, "points_judged": grade.judged, "marks": [dataclasses.asdict(mark) for mark in grade.marks],
            "isolation": grade.isolation, "variation": grade.variation, "trust": REPORTED, "seconds": round(grade.seconds, 1)}


def gradescope(grade: Grade) -> Dict[str, Any]:
    """results.json of Gradescope's autograder. Criteria that were not judged are left out, so that the maximum does not count
    them."""
    tests = [{"name": TITLES[mark.criterion], "score": mark.points, "max_score": mark.most,
              "output": mark.reason + (f"\n{mark.details}" if mark.details else ""), "visibility": "visible"}
             for mark in grade.marks if mark.points is not None]
    return {"score": grade.points, "execution_time": round(grade.seconds), "tests": tests,
            "output": f"isolation: {grade.isolation}; counts and races: {REPORTED}"}


def from_values(value: Dict[str, Any]) -> Grade:
    """A grade from its JSON values."""
    return Grade([Mark(**mark) for mark in value["marks"]], value["isolation"], value["seconds"], value["variation"])


def table(rows: List[Tuple[str, Grade]]) -> str:
    """A CSV of all submissions. No cell begins like a spreadsheet's formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, grade in rows:
        lost = next((mark for mark in grade.marks if mark.points is not None and mark.points < mark.most), None)
        lines = f"{lost.reason}\n{lost.details}".splitlines() if lost else [""]
        reason = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]  # the compiler's first error is in the second line
        cells = [name, *["not judged" if mark.points is None else f"{mark.points:g}" for mark in grade.marks], f"{grade.points:g}",
                 str(grade.judged), reason, grade.variation, grade.isolation.split(" (")[0], REPORTED, f"{grade.seconds:.1f}"]
        writer.writerow([f"'{cell}" if cell[:1] in "=+-@\t" and cell else cell for cell in cells])
    return out.getvalue()


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes the file atomically."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)
