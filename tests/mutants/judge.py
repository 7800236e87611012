#!/usr/bin/env python3
"""Runs a chapter's program, or a test of it, and a changed copy with the same arguments, and judges whether the change was noticed.

  judge.py mutant MUTANT_FILE PROGRAM CHANGED [START]      as the mutant's file says; START starts a program, as virtual_gpu/tools/race_run does
  judge.py blank VERDICT,... PROGRAM CHANGED ARGUMENT...   a blank (course/blank.py), with one of these verdicts

The unchanged program must exit with 0: otherwise the other's failure would prove nothing. The test passes only with the expected
verdict (tools/mutants.py) and, for a race, if the report names the line that the mutant file says; any other exit status, a signal
or a time-out fails.
"""
import pathlib
import re
import sys
from typing import List, Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from tools import mutants  # noqa: E402
from tools.mutants import NoVerdict  # noqa: E402

LIMIT_S = 60  # of each of the two programs


def judge(expected: Sequence[str], program: pathlib.Path, changed: pathlib.Path, arguments: List[str], limit: float = LIMIT_S,
          place: str = "", start: Sequence[str] = ()) -> str:
    """Runs both programs. Returns the changed one's output if the change was noticed as one of `expected` and if it names `place`,
    such as "file.cuh:12"; throws NoVerdict otherwise."""
    unchanged = mutants.run(program, arguments, limit, start)
    if unchanged.returncode != 0:
        raise NoVerdict(f"the unchanged program exits with {unchanged.returncode}, not 0:\n{unchanged.stdout}")
    run = mutants.run(changed, arguments, limit, start)
    try:
        verdict = mutants.verdict_of(run.returncode, run.stdout)
    except NoVerdict as reason:
        raise NoVerdict(f"the changed program: {reason}:\n{run.stdout}") from None
    if verdict not in expected:
        raise NoVerdict(f"the verdict is '{verdict}', not '{' or '.join(expected)}':\n{run.stdout}")
    if place and not re.search(rf"(?<![\w.]){re.escape(place)}\b", run.stdout):
        raise NoVerdict(f"the report does not name {place}:\n{run.stdout}")
    return run.stdout


def judge_mutant(file: pathlib.Path, program: pathlib.Path, changed: pathlib.Path, start: Sequence[str]) -> str:
    """The mutant's output if it was noticed as its file says. Throws NoVerdict, MutantError."""
    mutant, place = mutants.read_mutant(file), ""
    if mutant.report:
        place = mutants.reported_place(mutant, (REPOSITORY / "chapters" / mutant.report_file).read_text(encoding="utf-8"))
    output = judge([mutant.verdict], program, changed, mutant.arguments, place=place, start=start)
    return f"{mutant.why}\nnoticed: {mutant.verdict}\n{output}"


def main(words: Sequence[str]) -> int:
    kind, first, *rest = words
    program, changed = map(pathlib.Path, rest[:2])
    try:
        if kind == "mutant":
            print(judge_mutant(pathlib.Path(first), program, changed, rest[2:]), end="")
        else:
            print(judge(first.split(","), program, changed, list(rest[2:])), end="")
    except (NoVerdict, mutants.MutantError, OSError, ValueError) as error:
        print(f"judge.py: {changed.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in ("mutant", "blank"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
