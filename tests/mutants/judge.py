#!/usr/bin/env python3
"""Runs a chapter's program, or a test of it, and its mutant with the same arguments, and judges whether the error was noticed.

The unchanged program must exit with 0: otherwise the mutant's failure would prove nothing. Then the mutant's exit
status is its verdict: 0 not noticed, 1 wrong result, 3 race or deadlock (the report says which). A kernel that leaves
its arrays ends in a failed call, status 2, and is an illegal access only if CUDA's error says so; one that reads with too
small a scope what another GPU has written ends likewise, and the sentence says that. The test passes only
if the verdict is the one that the mutant file names, and, for a race, if the report names the line that the mutant file
says; any other exit status, a signal or a time-out fails.
"""
import argparse
import pathlib
import re
import subprocess
import sys
from typing import List, Sequence

import mutate


CHAPTERS = pathlib.Path(__file__).resolve().parents[2] / "chapters"


class Refused(Exception):
    """The test fails, for the reason given."""


def run(program: pathlib.Path, arguments: List[str], limit: float,
        start: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    """Runs a program, standard error included in its output. Throws Refused on a time-out or if it cannot start.
    `start` is a command that starts the program, such as tools/race_run."""
    try:
        return subprocess.run([*start, str(program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit, check=False, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        raise Refused(f"{program.name} did not end within {limit:g} s") from None
    except OSError as error:
        raise Refused(f"{program.name} cannot be started: {error}") from None


def verdict_of(status: int, output: str) -> str:
    """What a program's exit status and its report say. Throws Refused if that is no verdict."""
    if status == 0:
        return "not noticed"
    if status == 1:
        return "wrong result"
    if status == 2 and "cudaErrorIllegalAddress" in output:
        return "illegal access"
    if status == 2 and "what another GPU writes is read at system scope" in output:
        return "scope"
    if status == 2 and "cudaErrorLaunchFailure" in output:
        return "failed kernel"
    if status == 3:
        found = [word for word in ("data race", "deadlock") if re.search(rf"\b{word}\b", output, re.IGNORECASE)]
        if len(found) == 1:
            return found[0].split()[-1]
        raise Refused(f"exit status 3, but the report speaks of {' and of '.join(found) or 'no race and no deadlock'}")
    if status < 0:
        raise Refused(f"ended by signal {-status}")
    raise Refused(f"exit status {status} is no verdict")


def judge(expected: Sequence[str], program: pathlib.Path, mutant: pathlib.Path, arguments: List[str], limit: float,
          place: str = "", start: Sequence[str] = ()) -> str:
    """Runs both programs. Returns the mutant's output if it was noticed as one of `expected` and if it names `place`, such
    as "file.cuh:12"; throws Refused otherwise."""
    unchanged = run(program, arguments, limit, start)
    if unchanged.returncode != 0:
        raise Refused(f"the unchanged program exits with {unchanged.returncode}, not 0:\n{unchanged.stdout}")
    changed = run(mutant, arguments, limit, start)
    try:
        verdict = verdict_of(changed.returncode, changed.stdout)
    except Refused as reason:
        raise Refused(f"the mutant: {reason}:\n{changed.stdout}") from None
    if verdict not in expected:
        raise Refused(f"the mutant's verdict is '{verdict}', not '{' or '.join(expected)}':\n{changed.stdout}")
    if place and not re.search(rf"(?<![\w.]){re.escape(place)}\b", changed.stdout):
        raise Refused(f"the mutant's report does not name {place}:\n{changed.stdout}")
    return changed.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges whether a mutant is noticed as its file says.")
    parser.add_argument("mutant_file", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path, help="the chapter's program or test, unchanged")
    parser.add_argument("mutant_program", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=60, help="seconds that each of the two may take (60)")
    parser.add_argument("--start", action="append", default=[], metavar="WORD", help="a command that starts a program")
    parser.add_argument("--chapters", type=pathlib.Path, default=CHAPTERS, help="the unchanged chapters")
    arguments = parser.parse_args()
    try:
        mutant = mutate.read_mutant(arguments.mutant_file)
        place = ""
        if mutant.report:
            place = mutate.reported_place(mutant, (arguments.chapters / mutant.report_file).read_text(encoding="utf-8"))
        output = judge([mutant.verdict], arguments.program, arguments.mutant_program, mutant.arguments, arguments.limit,
                       place, arguments.start)
    except (Refused, mutate.MutantError, OSError, ValueError) as error:
        print(f"judge.py: {arguments.mutant_file.stem}: {error}", file=sys.stderr)
        return 1
    print(f"{mutant.why}\nnoticed: {mutant.verdict}\n{output}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
