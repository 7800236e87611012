#!/usr/bin/env python3
"""A mutant of a chapter, judged by its log alone: the replay must say what the mutant's own run says (tests/mutants). Of a race
it must name the line that the mutant file names, or an access of the chapter against the judge's own work around the call,
which may meet first. Takes the mutant, the program that writes its log, the plain build and the race build. Without a judge
there (target `teaching`) races are judged nowhere, and this says so with status 77."""
import argparse
import pathlib
import re
import sys
import tempfile
from typing import Dict, List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import mutate  # noqa: E402
from replay_cases import ALGORITHMS, Case, judge, write_log  # noqa: E402

# Where another case shows it: these mutants' own tests are not a run of the chapter's program.
CASES = {"race_waits_for_shards_with_rows_only": ["--gpus", "3", "--m", "1"],
         "race_second_starts_too_early": ["--only", "ring_two_streams"], "race_sum_not_joined": ["--only", "all_to_all"]}


def case_of(mutant: mutate.Mutant) -> Case:
    """What the mutant's own program is run with, as far as it matters here."""
    words = [] if mutant.test else mutant.arguments
    words = ["--gpus", "3", "--m", "33", "--n", "37", "--k", "19", *words, *CASES.get(mutant.path.stem, [])]
    given: Dict[str, str] = {}
    for name, value in zip(words, words[1:]):
        if name.startswith("--"):
            given[name] = value
    first = next(algorithm for chapter, algorithm in ALGORITHMS if chapter == mutant.chapter)
    shape = [int(given[name]) for name in ("--m", "--n", "--k")]
    return Case(mutant.chapter, given.get("--only", first), int(given["--gpus"]), shape, 3)


def expected_place(mutant: mutate.Mutant) -> str:
    """Of a race: "file.cuh:12", as the report must name it."""
    return mutate.reported_place(mutant, (ROOT / "chapters" / mutant.report_file).read_text(encoding="utf-8"))


def names_the_race(mutant: mutate.Mutant, report: str) -> bool:
    """Whether the report has the lines that it must have."""
    chapter_lines = re.findall(r"enqueued at (\w+\.cuh):\d+", report)
    return expected_place(mutant) in report or ("enqueued at [judge: " in report and len(chapter_lines) == 1)


def check(mutant: mutate.Mutant, program: pathlib.Path, plain: pathlib.Path, race: str) -> List[str]:
    """Returns what is not as it must be."""
    case = case_of(mutant)
    is_race = mutant.verdict == "race"
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "calls.log"
        write_log(plain / "bin" / f"log_{case.chapter}", case, log)
        honest = judge(pathlib.Path(race) if is_race else plain, case, log, race=is_race)
        if honest["verdict"] != "right":
            return [f"the unchanged chapter is not right but: {honest}"]
        write_log(program, case, log)
        schedules = [None, 1, 2] if mutant.verdict != "race" else [None]
        found = [judge(pathlib.Path(race) if is_race else plain, case, log, schedule=schedule, race=is_race)
                 for schedule in schedules]
    verdicts = [verdict["verdict"] for verdict in found]
    if mutant.verdict not in verdicts:
        return [f"the verdicts are {verdicts}, not '{mutant.verdict}': {found[0]}"]
    print(f"{mutant.why}\n{verdicts}\n{found[verdicts.index(mutant.verdict)]['report']}", end="")
    if is_race and not names_the_race(mutant, found[0]["report"]):
        return [f"the report names neither {expected_place(mutant)} nor what the judge has around the call"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges a mutant by its log.")
    parser.add_argument("mutant", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("plain", type=pathlib.Path)
    parser.add_argument("race")
    arguments = parser.parse_args()
    mutant = mutate.read_mutant(arguments.mutant)
    if mutant.verdict == "race" and not pathlib.Path(arguments.race, "bin", f"replay_{mutant.chapter}").is_file():
        print(f"not run: no replay_{mutant.chapter} in {arguments.race or 'a race build'} (-DOVERLAP_RACE_BUILD=FOLDER)")
        return 77
    faults = check(mutant, arguments.program, arguments.plain, arguments.race)
    for fault in faults:
        print(f"replay_mutant.py: {mutant.path.stem}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
