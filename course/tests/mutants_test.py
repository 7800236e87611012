#!/usr/bin/env python3
"""Mutants of a chapter's graded headers as submissions: none gets full marks. Each is compiled without optimisation, a GEMM for
f16 only, and runs in ./lab grade's builds and cases until one of them fails; if none fails, the counts are compared with those
of the chapter's own header, which, compiled alike, must pass the gate and all cases. A mutant whose file says `full_marks:`
gets them, for the reason given there.

  mutants_test.py NN_name [MUTANT ...]     target `teaching` of build/virtual, build/race and build/check is built
"""
import contextlib
import dataclasses
import pathlib
import re
import sys
from typing import Dict, Iterator, List, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("tools", "course/grade")]
import cases  # noqa: E402
import grader  # noqa: E402
from museum_test import say  # noqa: E402
from tools import mutants  # noqa: E402
import points  # noqa: E402
import sandbox  # noqa: E402
import task  # noqa: E402
import unit  # noqa: E402
from case_run import CaseRunner, Verdict  # noqa: E402

SECRET = b"the same sizes and data each time"
QUICKLY = ["-O0", "-DOVERLAP_FIRST_TYPE_ONLY"]  # the last -O counts
PATIENCE = 4  # factor on all limits: no mutant should be caught by a limit
FIRST = {"race": "race", "illegal access": "check"}  # the build most likely to report the verdict; else the plain one


class Hand:
    """Submits headers of one task."""

    def __init__(self, chosen: task.Task, settings: grader.Settings) -> None:
        self.task, self.builds = chosen, settings.builds
        self.kit = unit.Kit(chosen, settings.builds, patience=20)
        for kind, tools in self.kit.tools.items():
            self.kit.tools[kind] = dataclasses.replace(tools, flags=[*tools.flags, *QUICKLY])
        every = cases.cases_of(chosen.problem, chosen.path, SECRET, chosen.lesson.sizes)
        self.cases = [case for case in every if case.type == "f16" or not case.only_enqueues]
        self.honest: Dict[cases.Case, Verdict] = {}

    def verdicts(self, text: str, kinds: Sequence[str], checked: bool = False) -> Iterator[Verdict]:
        """The verdicts on all cases, build by build; if `checked`, only for a unit that passes the gate and the list of
        symbols."""
        for kind in kinds:
            with sandbox.make([self.kit.folder]) as place:
                unit.place(place, self.task, text.encode())
                name = unit.build_object(place, self.kit, kind, checked)
                if checked:
                    unit.check_object(place, self.kit, name, kind)
                unit.link(place, self.kit, kind)
                judge = self.builds["plain"] / "bin" / "teaching_judge"
                runner = CaseRunner(self.kit, place, grader.command(kind), judge, SECRET, "", PATIENCE)
                for case in self.cases:
                    if case.build == kind:
                        yield runner.run(case)

    def lost(self, verdicts: Sequence[Verdict]) -> str:
        """The criteria that lose points although every case is right; empty if none does."""
        if not self.honest:
            self.honest = {each.case: each for each in self.verdicts(self.task.own.read_text(encoding="utf-8"), ["plain"])}
        marks = points.marks_of(verdicts, self.honest.__getitem__, "", self.task.lesson)
        return next((f"{mark.criterion}: {mark.reason}" for mark in marks if mark.points != mark.most), "")


def failed(verdict: Verdict) -> bool:
    """True if a case costs points."""
    return bool(verdict.race) or not verdict.right


def mutants_of(chosen: task.Task, names: Sequence[str]) -> List[mutants.Mutant]:
    """The mutants of a header."""
    found = [mutants.read_mutant(path) for path in sorted((ROOT / "chapters" / chosen.chapter / "mutants").glob("*.mutant"))]
    return [each for each in found if each.file == chosen.path and (not names or each.path.stem in names)]


def problem(hand: Hand, mutant: mutants.Mutant, honest: str) -> str:
    """The problem with a mutant's grade: it gets all points, or its race report names no line of the student's with a call."""
    text = mutants.apply_mutant(mutant, honest)
    first = FIRST.get(mutant.verdict, "plain")
    seen: List[Verdict] = []
    for verdict in hand.verdicts(text, [first, *(kind for kind in hand.builds if kind != first)]):
        seen.append(verdict)
        if failed(verdict):
            print(f"       {verdict.case.criterion}, {verdict.case.name}: {verdict.race or verdict.why}", flush=True)
            if mutant.full_marks:
                return "it says full_marks, and has lost some"
            numbers = re.findall(rf"enqueued at {hand.task.header}:(\d+)", verdict.race)
            named = "data race" not in verdict.race or any("(" in text.splitlines()[int(number) - 1] for number in numbers)
            return "" if named else "the report names no call of the student's"
    lost = hand.lost(seen)
    print(f"       {lost or mutant.full_marks}", flush=True)
    if mutant.full_marks:
        return "it says full_marks, and has lost some" if lost else ""
    return "" if lost else "it has full marks"


def main() -> int:
    chapter, *names = sys.argv[1:]
    if grader.why_not_all():
        print(f"skipped: {grader.why_not_all()}")
        return 77
    settings = grader.default_settings()
    wrong = handed_in = 0
    for chosen in task.tasks_of(chapter):
        hand = Hand(chosen, settings)
        honest = chosen.own.read_text(encoding="utf-8")
        with contextlib.closing(hand.kit):
            if not names:
                with sandbox.make([hand.kit.folder]) as place:
                    hand.kit.learn(place)
                verdicts = list(hand.verdicts(honest, list(hand.builds), checked=True))
                hand.honest = {each.case: each for each in verdicts}
                said = "; ".join(f"{each.case.name}: {each.why or each.race}" for each in verdicts if failed(each))
                wrong += say(f"the own {chosen.header}", said)
            for mutant in mutants_of(chosen, names):
                handed_in += 1
                wrong += say(f"{mutant.path.stem} ({mutant.verdict})", problem(hand, mutant, honest))
    print(f"{handed_in} mutants, {wrong} not as expected")
    return 1 if wrong or not handed_in else 0


if __name__ == "__main__":
    sys.exit(main())
