#!/usr/bin/env python3
"""A class hands in chapter 03: solutions, halves, mutants, cheats, in any order, some of which eat memory, fork, print without end
or delete what they can. Everybody gets the grade of the own header, whoever was graded before; the CSV's rows are compared.

  class_test.py [--students N] [--seconds S]     12 unless it says more; 60 is a class. Target `teaching` of build/virtual and
                                                 build/race is built; S as of ./lab grade
"""
import argparse
import csv
import dataclasses
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from typing import Dict, Iterator, List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("tools", "tools/teaching/grade", "tests/teaching")]
import blank  # noqa: E402
import grader  # noqa: E402
import museum_test  # noqa: E402
import mutants  # noqa: E402
import task  # noqa: E402
from teaching import tasks  # noqa: E402

HARMFUL = ("eats_memory", "fork", "prints_without_end", "deletes_what_it_can")
CANARY = museum_test.CANARY  # which deletes_what_it_can looks for


@dataclasses.dataclass(frozen=True)
class Student:
    """A submission, and the points that it must have."""

    name: str
    source: str
    least: float
    most: float


def solutions(chosen: task.Task) -> Iterator[Student]:
    """The chapter's header and the extension's, each time with another comment, so that no two are the same."""
    honest = chosen.solution.read_text(encoding="utf-8")
    extension = tasks.read_tasks(chosen.solution.parent)["back_pressure"].code
    for number in itertools.count():
        source = extension if number % 4 == 3 else honest
        yield Student(f"solution {number}", f"// Solution {number}\n{source}", 100, 100)


def halves(chosen: task.Task) -> Iterator[Student]:
    """Some of the regions are blank."""
    source = chosen.solution.read_text(encoding="utf-8")
    names = [region.name for region in blank.regions_of(source.splitlines(), chosen.header)]
    for count in (1, 2, len(names)):
        for some in itertools.combinations(names, count):
            yield Student(f"without {' '.join(some)}", blank.blanked(source, chosen.header, some), 10, 80)


def mutants(chosen: task.Task) -> Iterator[Student]:
    """The chapter's planted errors."""
    for path in sorted((ROOT / "tests" / "mutants" / chosen.chapter).glob("*.mutant")):
        mutant = mutants.read_mutant(path)
        if mutant.file.endswith(chosen.header):
            source = mutants.apply_mutant(mutant, chosen.solution.read_text(encoding="utf-8"))
            yield Student(f"mutant {path.stem}", source, 10, 99)


def cheats(chosen: task.Task) -> Iterator[Student]:
    """The museum's, those first that do harm."""
    honest = chosen.solution.read_text(encoding="utf-8")
    paths = sorted(museum_test.MUSEUM.glob("*.cheat"), key=lambda path: (path.stem not in HARMFUL, path.stem))
    for path in paths:
        cheat = museum_test.read(path, honest)
        yield Student(f"cheat {path.stem}", cheat.source.decode(), 0, cheat.points)


def a_class(chosen: task.Task, size: int) -> List[Student]:
    """So many of all kinds, in an order that is always the same; solutions come first and last."""
    kinds = [list(itertools.islice(kind(chosen), size)) for kind in (halves, mutants, cheats)]
    taken = [student for row in itertools.zip_longest(*kinds) for student in row if student is not None]
    harmful = [student for student in taken if student.name.removeprefix("cheat ") in HARMFUL]
    others = [student for student in taken if student not in harmful]
    honest = list(itertools.islice(solutions(chosen), max(4, size // 5)))
    middle = [*honest[2:], *harmful, *others][:size - 2]
    random.Random(3).shuffle(middle)
    return [honest[0], *middle, honest[1]]


def compared(student: Student, row: Dict[str, str]) -> str:
    """What is wrong with a row."""
    points = float(row["points"])
    if row["points judged"] != "100":
        return f"{row['points judged']} points were judged"
    if not student.least <= points <= student.most:
        return f"{points:g} points, not {student.least:g} to {student.most:g}"
    return "" if points == 100 or row["reason"] else "no reason is given"


def main() -> int:
    parser = argparse.ArgumentParser(description="Grades a class.")
    parser.add_argument("--students", type=int, default=12)
    parser.add_argument("--seconds", default="60")
    arguments = parser.parse_args()
    if grader.why_no_race() or len(grader.default_settings().builds) < 2:
        print("skipped: no race build, or the race detector cannot start")
        return 77
    students = a_class(task.tasks_of("03_ring_all_gather")[0], arguments.students)
    CANARY.mkdir(exist_ok=True)
    (CANARY / "file").write_text("still here", encoding="utf-8")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        handed_in, table = pathlib.Path(scratch, "in"), pathlib.Path(scratch, "grades.csv")
        handed_in.mkdir()
        for number, student in enumerate(students):
            (handed_in / f"{number:02} {student.name}.cuh").write_text(student.source, encoding="utf-8")
        started = time.monotonic()
        # These submissions may read the repository: they are of it.
        command = [sys.executable, "-I", str(ROOT / "tools" / "teaching" / "grade"), "03", "--submissions", str(handed_in), "--csv",
                   str(table), "--unsafe", "--seconds", arguments.seconds]
        status = subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
        minutes = (time.monotonic() - started) / 60
        with open(table, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    for student, row in zip(students, rows):
        wrong = compared(student, row)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok':6} {student.name}: {row['points']} points, {row['seconds']} s {wrong}")
    failed += _said("the canary is gone", (CANARY / "file").is_file())
    (CANARY / "file").unlink(missing_ok=True)
    CANARY.rmdir()
    failed += _said(f"status {status}, {len(rows)} rows for {len(students)} students", status == 0 and len(rows) == len(students))
    slowest = max(float(row["seconds"]) for row in rows)
    print(f"{len(students)} submissions in {minutes:.1f} minutes, the slowest in {slowest:.0f} s; {failed} not as expected")
    return 1 if failed else 0


def _said(problem: str, fine: bool) -> int:
    if not fine:
        print(f"FAILED {problem}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
