#!/usr/bin/env python3
"""Mutants of a chapter's graded headers, handed in: none of them passes. Each is compiled without optimisation, a product for
f16 alone, and runs in the build and the cases that ./lab grade runs, until one of them fails; the chapter's own header,
compiled alike, passes the gate and fails in none.

  mutants_test.py NN_name [MUTANT ...]     target `teaching` of build/virtual and build/race is built
"""
import contextlib
import dataclasses
import pathlib
import re
import sys
from typing import Iterator, List, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("tools", "course/grade")]
import cases  # noqa: E402
import grader  # noqa: E402
from tools import mutants  # noqa: E402
import sandbox  # noqa: E402
import task  # noqa: E402
import unit  # noqa: E402
from case_run import CaseRunner, Verdict  # noqa: E402

SECRET = b"the same sizes and data each time"
QUICKLY = ["-O0", "-DOVERLAP_FIRST_TYPE_ONLY"]  # the last -O counts
PATIENCE = 4  # all limits times this: no mutant needs a limit to be caught


class Hand:
    """Hands in headers of one task."""

    def __init__(self, chosen: task.Task, settings: grader.Settings) -> None:
        self.task, self.builds = chosen, settings.builds
        self.kit = unit.Kit(chosen, settings.builds)
        for kind, tools in self.kit.tools.items():
            self.kit.tools[kind] = dataclasses.replace(tools, flags=[*tools.flags, *QUICKLY])
        every = cases.cases_of(chosen.problem, chosen.path, SECRET)
        self.cases = [case for case in every if case.type == "f16" or not case.only_enqueues]

    def verdicts(self, text: str, kinds: Sequence[str], checked: bool = False) -> Iterator[Verdict]:
        """Of all cases, build by build; if `checked`, of what passes the gate and calls nothing that is not on the list."""
        for kind in kinds:
            with sandbox.make([self.kit.folder]) as place:
                unit.place(place, self.task, text.encode())
                name = unit.build_object(place, self.kit, kind, checked)
                if checked:
                    unit.check_object(place, self.kit, name, kind)
                unit.link(place, self.kit, kind)
                runner = CaseRunner(self.kit, place, grader.command(kind), self.builds["plain"] / "bin" / "teaching_judge", SECRET, "", PATIENCE)
                for case in self.cases:
                    if (case.criterion == "race") == (kind == "race"):
                        yield runner.run(case)


def failed(verdict: Verdict) -> bool:
    """Whether a case costs points."""
    return bool(verdict.race) or not verdict.right


def problem(found: Verdict, header: str, text: str) -> str:
    """What is wrong with how a mutant has failed: the report of a race names a line of the student's that calls something."""
    lines = [text.splitlines()[int(number) - 1] for number in re.findall(rf"enqueued at {header}:(\d+)", found.race)]
    named = "data race" not in found.race or any("(" in line for line in lines)
    return "" if named else "the report names no call of the student's"


def mutants_of(chosen: task.Task, names: Sequence[str]) -> List[mutants.Mutant]:
    """Those of a header, but for what another program than the chapter's runs."""
    found = [mutants.read_mutant(path) for path in sorted((ROOT / "chapters" / chosen.chapter / "mutants").glob("*.mutant"))]
    return [each for each in found if each.file == chosen.path and not each.program and (not names or each.path.stem in names)]


def main() -> int:
    chapter, *names = sys.argv[1:]
    settings = grader.default_settings()
    if grader.why_no_race() or "race" not in settings.builds:
        print("skipped: no race build, or the race detector cannot start")
        return 77
    unit.COMPILING = dataclasses.replace(unit.COMPILING, seconds=20 * unit.COMPILING.seconds)
    wrong = handed_in = 0
    for chosen in task.tasks_of(chapter):
        hand = Hand(chosen, settings)
        honest = chosen.own.read_text(encoding="utf-8")
        with contextlib.closing(hand.kit):
            if not names:
                with sandbox.make([hand.kit.folder]) as place:
                    hand.kit.learn(place)
                verdicts = hand.verdicts(honest, ["plain", "race"], checked=True)
                said = next((f"{each.case.name}: {each.why or each.race}" for each in verdicts if failed(each)), "")
                wrong += _said(f"the own {chosen.header}", said)
            for mutant in mutants_of(chosen, names):
                kinds = ["race", "plain"] if mutant.verdict == "race" else ["plain", "race"]
                text = mutants.apply_mutant(mutant, honest)
                verdicts = hand.verdicts(text, kinds)
                first = next((each for each in verdicts if failed(each)), None)
                handed_in += 1
                fault = "it passes" if first is None else problem(first, chosen.header, text)
                wrong += _said(f"{mutant.path.stem} ({mutant.verdict})", fault)
                if first is not None:
                    print(f"       {first.case.name}: {first.race or first.why}", flush=True)
    print(f"{handed_in} mutants, {wrong} not as expected")
    return 1 if wrong or not handed_in else 0


def _said(what: str, fault: str) -> int:
    print(f"{'FAILED' if fault else 'ok':6} {what}" + (f": {fault}" if fault else ""), flush=True)
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
