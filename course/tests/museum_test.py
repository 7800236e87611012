#!/usr/bin/env python3
"""The museum of cheats: each has its own number of points for its own reason; the honest solution has full marks.

museum/NAME.cheat changes the header of chapter 03:
  why: what it does         refused: CRITERION: text in the reason        points: number
  header: NN_name/NAME.cuh, if it changes another header
  behind the gate: the same with the gate left open, so that the later checks must reject it (| between alternatives)
  --- original / --- cheat (both once or more) / --- end: as in tests/mutants

  museum_test.py --list                             the table
  museum_test.py [--behind-the-gate] [--turn DAY] [NAME ...]     after ./lab grade 03, which builds what is needed

--turn: a seventh of them, of which each has its turn once in seven days (tests/CMakeLists.txt).
"""
import argparse
import dataclasses
import pathlib
import re
import sys
from typing import List, Optional, Set

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "course" / "grade"))
import grader  # noqa: E402
import report  # noqa: E402
import sandbox  # noqa: E402
import task  # noqa: E402
from points import Grade  # noqa: E402
from processes import processes  # noqa: E402

MUSEUM = pathlib.Path(__file__).resolve().parent / "museum"
SECONDS = 90.0  # for each cheat; the slowest one took 60 beside other work
CANARY = pathlib.Path("/var/tmp/overlap-museum-canary")


@dataclasses.dataclass(frozen=True)
class Cheat:
    name: str
    header: str
    why: str
    refused: str
    points: float
    behind: str
    source: bytes


def read(path: pathlib.Path) -> Cheat:
    """Throws ValueError if the cheat does not apply to the header."""
    head, *changes = re.split(r"^--- original\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    values = dict(line.split(": ", 1) for line in head.splitlines())
    header = values.get("header", "03_ring_all_gather/ring_all_gather.cuh")
    source = honest = (ROOT / "chapters" / header).read_text(encoding="utf-8")
    for change in changes:
        original, cheat = re.split(r"^--- cheat\n", re.sub(r"^--- end\n", "", change, flags=re.MULTILINE), flags=re.MULTILINE)
        if source.count(original.rstrip("\n")) != 1:
            raise ValueError(f"{path.name}: its original text occurs {source.count(original)} times")
        source = source.replace(original.rstrip("\n"), cheat.rstrip("\n"))
    if not values.get("why") or source == honest:
        raise ValueError(f"{path.name}: says nothing, or changes nothing")
    return Cheat(path.stem, header, values["why"], values["refused"], float(values["points"]), values.get("behind the gate", ""),
                 source.encode())


def problem(grade: Grade, expected: str, points: Optional[float]) -> str:
    """The problem with a cheat's grade; empty if it is as expected. Behind the gate any number of points is right."""
    criterion, _, texts = expected.partition(": ")
    mark = next(mark for mark in grade.marks if mark.criterion == criterion)
    if points is not None and grade.points != points:
        return f"has {grade.points:g} points, not {points:g}"
    if texts and (mark.points == mark.most or not any(text in mark.reason + mark.details for text in texts.split("|"))):
        return f"the reason of '{criterion}' is not '{texts}'"
    return ""


def noted_users() -> Set[int]:
    """Records from now on the user ids that sandboxes choose."""
    users: Set[int] = set()
    draw = sandbox._unused_uid  # pylint: disable=protected-access

    def noted() -> int:
        uid = draw()
        users.add(uid)
        return uid
    sandbox._unused_uid = noted  # pylint: disable=protected-access
    return users


def left_over(users: Set[int]) -> List[int]:
    """Processes of these users, except the kit's own sandbox, which is idle between submissions."""
    return [pid for pid, (_parent, uid) in processes().items() if uid in users]


def _graded(header: str, cheats: List[Cheat], settings: grader.Settings, behind: bool) -> int:
    """Grades the header itself, then its cheats; returns how many are not as expected."""
    chapter, _, name = header.partition("/")
    chosen = next(each for each in task.tasks_of(chapter) if each.header == name)
    failed = 0
    users = noted_users()
    settings.gate = True
    with grader.Grader(chosen, settings) as engine:
        print(f"{header}; isolation: {engine.honest.describe()}")
        if not behind:
            grade = engine.grade(chosen.solution.read_bytes())
            failed += say("the honest solution", "" if grade.points == 100 else report.text("honest", grade))
        settings.gate = not behind
        for cheat in cheats:
            grade = engine.grade(cheat.source)
            wrong = problem(grade, cheat.behind if behind else cheat.refused, None if behind else cheat.points)
            wrong = wrong or ("processes are left" if left_over(users) else "")
            wrong = wrong or ("the canary is gone" if not (CANARY / "file").is_file() else "")
            failed += say(f"{cheat.name} ({grade.points:g} points, {grade.seconds:.0f} s)",
                           wrong and f"{wrong}\n{report.text(cheat.name, grade)}")
    return failed


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--behind-the-gate", action="store_true", dest="behind")
    parser.add_argument("--turn", type=int, metavar="DAY")
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if not (MUSEUM / f"{name}.cheat").is_file()]
    if unknown:
        parser.error(f"there is no cheat named {unknown[0]}")
    return chosen


def main() -> int:
    chosen = parse()
    behind = chosen.behind
    cheats = [read(path) for path in sorted(MUSEUM.glob("*.cheat")) if not chosen.names or path.stem in chosen.names]
    if chosen.list:
        print("\n".join(f"{cheat.name:32} {cheat.points:3g}  {cheat.refused.partition(': ')[0]:7} {cheat.why}" for cheat in cheats))
        return 0
    if behind:
        cheats = [cheat for cheat in cheats if cheat.behind]
    if chosen.turn is not None:
        cheats = cheats[chosen.turn % 7::7]
    if grader.why_not_all():
        print(f"skipped: {grader.why_not_all()}")
        return 77
    settings = grader.default_settings(seconds=SECONDS)
    if behind and sandbox.best_level() == "none":
        print("skipped: nothing isolates here")
        return 77
    CANARY.mkdir(exist_ok=True)
    (CANARY / "file").write_text("still here", encoding="utf-8")
    failed = sum(_graded(header, [cheat for cheat in cheats if cheat.header == header], settings, behind)
                 for header in sorted({cheat.header for cheat in cheats}))
    (CANARY / "file").unlink()
    CANARY.rmdir()
    print(f"{len(cheats)} cheats, {failed} not as expected")
    return 1 if failed else 0


def say(what: str, wrong: str) -> int:
    """Prints a line on a submission; returns 1 if its grade is wrong."""
    print(f"{'FAILED' if wrong else 'ok':6} {what}" + (f": {wrong}" if wrong else ""), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
