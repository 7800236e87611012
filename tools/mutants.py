#!/usr/bin/env python3
"""Reads mutants (chapters with one small, known error), applies them, and derives a verdict from a program's report. As a
program it writes a mutant: a copy of a chapter's sources with that error.

A mutant file holds a change, and the verdict that the tests must reach:

    why: the second GPU multiplies the columns of the first
    file: 01_column_split/column_split.cuh
    verdict: wrong result
    arguments: --gpus 2 --n 37
    --- original
    first_column + local_column
    --- mutant
    local_column
    --- end

`file` is a path inside chapters/. The original text, which may be part of a line, must occur in it exactly once, so
that a mutant cannot get lost when the chapter changes. If the mutant text is empty, a line that becomes empty is removed. The
program is that of the chapter in whose folder the mutant lies. Verdicts: see verdict_of(). A mutant with
the verdict `race` or `scope` has one more line, which names a line of the changed file by a text that occurs in it once: the
report must name that line too.

    report: cudaMemcpyAsync(c,

If the accesses are in a file that the mutant does not change, one more line names it: `report_file:
16_tensor_core_gemm/operands.cuh`.

Some errors show only in a test, for example one that overwrites A after a call. One more line names that test's file in the
folder tests: only this file is compiled with the mutant, and its test runs instead of the program, with GoogleTest's arguments.

    test: sparse_v3_graph_calls.hpp

In the same way `program: 04_transports` names the program of an experiment of the chapter, experiments/transports.cu.

If ./lab grade cannot find the error, a line `full_marks:` gives the reason; every other mutant of a graded header loses points
(course/tests/mutants_test.py).
"""
import argparse
import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from typing import List, Sequence

VERDICTS = ("wrong result", "illegal access", "scope", "race", "deadlock")
_REPORTED = ("race", "scope")  # verdicts whose report names a line
_KEYS = ("why", "file", "verdict", "arguments")  # required keys
_KEYS_OF_A_RACE = _KEYS + ("report",)
_ALL_KEYS = _KEYS_OF_A_RACE + ("report_file", "test", "program", "full_marks")
_CHECKED = re.compile(r"^virtual GPUs: .* at \S+:\d+(: \d+ bytes (behind|before) |: inside freed memory| that nothing has written: byte \d)",
                      re.MULTILINE)  # the check build's
_SEPARATORS = ("original", "mutant", "end")
_ADDED = re.compile(r'\b(?:bench|table)\.add\(\s*"(\w+)"')  # the beginning of a variant in the program's table, up to its name
_LAYOUT = re.compile(r"(.*?)^--- original\n(.*?)^--- mutant\n(.*?)^--- end\n?(.*)", re.DOTALL | re.MULTILINE)


class MutantError(Exception):
    """The mutant file cannot be read, or it does not fit the chapter: one sentence."""


class NoVerdict(Exception):
    """A program ended in a way that gives no verdict: one sentence."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One mutant file, read and checked."""

    path: pathlib.Path
    why: str
    file: str
    verdict: str
    arguments: List[str]
    original: str
    mutant: str
    report: str = ""
    test: str = ""
    program: str = ""
    report_file: str = ""
    full_marks: str = ""

    @property
    def chapter(self) -> str:
        """The chapter in whose folder the mutant lies: its program is run, if no test is named."""
        return self.path.parents[1].name


def read_mutant(path: pathlib.Path) -> Mutant:
    """Reads a mutant file. Throws MutantError if anything is missing, unknown or empty."""
    text = path.read_text(encoding="utf-8")
    header, original, mutant, rest = _split(path, text)
    fields = {}
    for line in header.splitlines():
        key, colon, value = line.partition(":")
        if not colon or key not in _ALL_KEYS or key in fields or not value.strip():
            raise MutantError(f"{path}: '{line}' is not one of the lines {', '.join(_KEYS)}, each with a value, once")
        fields[key] = value.strip()
    for key in ("report", "report_file"):
        if key in fields and fields.get("verdict") not in _REPORTED:
            raise MutantError(f"{path}: a line '{key}' belongs to the verdicts {' and '.join(_REPORTED)} only")
    if "test" in fields and "program" in fields:
        raise MutantError(f"{path}: a line 'test' and a line 'program': only one of them runs")
    missing = [key for key in (_KEYS_OF_A_RACE if fields.get("verdict") in _REPORTED else _KEYS) if key not in fields]
    if missing:
        raise MutantError(f"{path}: no line '{missing[0]}: ...'")
    if fields["verdict"] not in VERDICTS:
        raise MutantError(f"{path}: verdict '{fields['verdict']}' is none of: {', '.join(VERDICTS)}")
    if rest.strip():
        raise MutantError(f"{path}: text after '--- end'")
    if not original.strip() or original == mutant:
        raise MutantError(f"{path}: the original is empty, or the mutant is the same text")
    return Mutant(path=path, original=original, mutant=mutant,
                  **{"report_file": fields["file"], **fields, "arguments": shlex.split(fields["arguments"])})


def _split(path: pathlib.Path, text: str) -> List[str]:
    """Cuts the text at its three separator lines into header, original, mutant and the rest."""
    match = _LAYOUT.fullmatch(text)
    if match is None or any(len(re.findall(rf"^--- {word}$", text, re.MULTILINE)) != 1 for word in _SEPARATORS):
        raise MutantError(f"{path}: the lines '--- original', '--- mutant' and '--- end' must be there, once, in order")
    header, original, mutant, rest = match.groups()
    return [header, original.rstrip("\n"), mutant.rstrip("\n"), rest]


def apply_mutant(mutant: Mutant, source: str) -> str:
    """The chapter's source with the error in it. Throws MutantError unless the original occurs exactly once."""
    count = source.count(mutant.original)
    if count != 1:
        raise MutantError(f"{mutant.path}: the original text occurs {count} times in {mutant.file}, not once")
    before, after = source.split(mutant.original)
    start, end = before.rpartition("\n")[2], after.partition("\n")[0]
    if not mutant.mutant and not (start + end).strip():
        return before.removesuffix(start) + after.removeprefix(end).removeprefix("\n")
    return before + mutant.mutant + after


def reported_place(mutant: Mutant, source: str) -> str:
    """The line that the report of a race must name, as "file.cuh:12"; `source` is the unchanged text of report_file."""
    changed = source if mutant.report_file != mutant.file else apply_mutant(mutant, source)
    count = changed.count(mutant.report)
    if count != 1:
        raise MutantError(f"{mutant.path}: the text of 'report' occurs {count} times in the changed file, not once")
    return f"{pathlib.Path(mutant.report_file).name}:{changed[:changed.index(mutant.report)].count(chr(10)) + 1}"


def chosen_only(arguments: List[str], source: str) -> str:
    """A program's source without the variants that the arguments exclude, because those take most of the time to compile."""
    if "--only" not in arguments[:-1]:
        return source
    chosen = arguments[arguments.index("--only") + 1].split(",")
    at = 0
    while (match := _ADDED.search(source, at)) is not None:
        at = _end_of_statement(source, match.end())
        if match.group(1) not in chosen:  # an empty statement of as many lines, because reports name lines
            left_out = source[match.start():at]
            source = source[:match.start()] + "\n" * left_out.count("\n") + ";" + source[at:]
            at -= len(left_out) - left_out.count("\n") - 1
    return source


def _end_of_statement(source: str, at: int) -> int:
    """The index behind the call that contains index `at`, semicolon included."""
    depth = 1
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(source[at], 0)
        at += 1
    return source.index(";", at) + 1


def make_tree(mutant: Mutant, chapters: pathlib.Path, output: pathlib.Path) -> None:
    """Writes to `output` the changed file and the source of the program (the chapter's or an experiment's). All other files are
    included from the folder chapters itself.

    Nothing is left in `output` if the mutant does not fit.
    """
    source = chapters / mutant.file
    if not source.is_file():
        raise MutantError(f"{mutant.path}: chapters/{mutant.file} does not exist")
    programs = [f"{mutant.chapter}/main.cu"]
    if not (chapters / programs[0]).is_file():
        raise MutantError(f"{mutant.path}: there is no chapter {mutant.chapter}")
    if mutant.program:
        programs.append(f"{mutant.chapter}/experiments/{mutant.program[3:]}.cu")
    texts = {name: (chapters / name).read_text(encoding="utf-8") for name in (*programs, mutant.file)}
    texts[mutant.file] = apply_mutant(mutant, texts[mutant.file])
    for name in programs:
        texts[name] = chosen_only(mutant.arguments, texts[name])
    shutil.rmtree(output, ignore_errors=True)
    for name, text in texts.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text(text, encoding="utf-8")


def run(program: pathlib.Path, arguments: List[str], limit: float,
        start: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    """Runs a program, standard error included in its output. Throws NoVerdict on a time-out or if it cannot start.
    `start` is a command that starts the program, such as virtual_gpu/tools/race_run."""
    try:
        return subprocess.run([*start, str(program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit, check=False, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        raise NoVerdict(f"{program.name} did not end within {limit:g} s") from None
    except OSError as error:
        raise NoVerdict(f"{program.name} cannot be started: {error}") from None


def verdict_of(status: int, output: str) -> str:
    """The verdict from a program's exit status and report: 0 not noticed, 1 wrong result, 3 race, deadlock or a failed kernel
    (the report says which; on real GPUs a failed kernel is a failed call, status 2). An access out of bounds is an illegal
    access only if CUDA's error says so, or the check build, whose first report may be a read of memory never written. A read
    with too small a scope of another GPU's write ends likewise, and the report says so. Throws NoVerdict."""
    if status == 0:
        return "not noticed"
    if status == 1:
        return "wrong result"
    if status in (2, 3) and ("cudaErrorIllegalAddress" in output or _CHECKED.search(output)):
        return "illegal access"
    if status in (2, 3) and "what another GPU writes is read at system scope" in output:
        return "scope"
    if status in (2, 3) and "cudaErrorLaunchFailure" in output:
        return "failed kernel"
    if status == 3:
        found = [word for word in ("data race", "deadlock") if re.search(rf"\b{word}\b", output, re.IGNORECASE)]
        if len(found) == 1:
            return found[0].split()[-1]
        raise NoVerdict(f"exit status 3, but the report speaks of {' and of '.join(found) or 'no race and no deadlock'}")
    if status < 0:
        raise NoVerdict(f"ended by signal {-status}")
    raise NoVerdict(f"exit status {status} is no verdict")


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes a copy of a chapter's sources with one known error in it.")
    parser.add_argument("mutant", type=pathlib.Path, help="the mutant file")
    parser.add_argument("chapters", type=pathlib.Path, help="the chapters folder")
    parser.add_argument("output", type=pathlib.Path, help="the copy; replaced if it is there")
    arguments = parser.parse_args()
    try:
        make_tree(read_mutant(arguments.mutant), arguments.chapters, arguments.output)
    except (MutantError, OSError, ValueError) as error:
        print(f"mutants.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
