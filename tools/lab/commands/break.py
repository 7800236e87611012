"""show a chapter with one planted error: output, race report, timeline, and a question"""
import argparse
import sys
from typing import List

import chapters
from build import Build, Skip, set_up
from process import say
from program import find, of_work, refusals
from course import planted, tasks

NOTHING = {"race": "The race detector reports nothing: the order is right, the computation is wrong.",
           "check": "The check reports nothing: every access is right."}


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("mutant", nargs="?", default="", metavar="MUTANT", help="a planted error; --list names them")
    parser.add_argument("--fix", action="store_true", help="check your correction")
    parser.add_argument("--check", action="store_true", help="show the report of ./lab check instead of the race report")
    parser.add_argument("--list", action="store_true", help="list the planted errors")


def main(call: argparse.Namespace) -> int:
    chapter = chapters.find(call.chapter)
    with refusals():
        if call.list:
            print(tasks.listing([error.task for error in planted.errors_of(chapter).values()]))
            return 0
        error = planted.choose(chapter, call.mutant)
    plain = set_up("run", "virtual", call.yes)
    return _fix(error, plain) if call.fix else _show(error, plain, "check" if call.check else "race")


def _show(error: planted.Planted, plain: Build, detector: str) -> int:
    """Shows the error's effects; the exit status is 0 if a run detected it."""
    kept = error.plant_again()
    if kept:
        say(f"your version is kept in {kept}")
    number, name = error.chapter[:2], error.task.name
    find(error.chapter).build(plain)
    wrong = of_work(error.folder, "planted")
    wrong.build(plain)
    print(f"{error.chapter}, planted error {name}: {error.task.title}\n")
    noticed = _said(1, plain.command(wrong.path), "run", error) != 0
    build = plain.check() if detector == "check" else plain.race()
    try:
        wrong.build(build)
        build.need_gpus()
        status = _said(2, build.command(wrong.path), detector, error)
        noticed = noticed or status == 3
        if status in (0, 1):
            print(NOTHING[detector] + "\n")
    except Skip as skip:
        print(f"2. The race report: not run, {skip}\n")
    picture = planted.draw(error, plain.command(f"bin/{error.chapter}"), plain.command(wrong.path))
    arguments = " ".join(planted.timeline_arguments(error))
    print(f"3. The timelines, of the chapter and with the error: {picture}\n   ({arguments})\n")
    print(f"4. The question\n\n{error.task.text}\n")
    print(f"Correct {planted.shown(error.header)}, then: ./lab break {number} {name} --fix")
    print(f"A hint: ./lab hint {number} {name}")
    if not noticed:
        say(f"no run notices the error '{error.task.mutant}' here")
    return 0 if noticed else 1


def _said(step: int, command: List[str], word: str, error: planted.Planted) -> int:
    """Runs a program with the error and prints its output. Returns its exit status."""
    status, text = planted.said(command + error.mutant.arguments)
    title = {"run": "The output", "race": "The race report", "check": "The report of ./lab check"}[word]
    words = " ".join([word, error.chapter[:2], *error.mutant.arguments])
    print(f"{step}. {title}\n\n$ ./lab {words}    (with the error)\n{text}\n(exit status {status})\n")
    if planted.quoted(error, text):
        print(f"The lines that are named there:\n{planted.quoted(error, text)}\n")
    return status


def _fix(error: planted.Planted, plain: Build) -> int:
    """Checks the cure: correct for all sizes, and free of races."""
    number, name = error.chapter[:2], error.task.name
    if error.plant():
        say(f"{planted.shown(error.header)} is new: ./lab break {number} {name} shows what its error does")
    if error.header.read_text(encoding="utf-8") == error.broken:
        return _ask(error)
    program = of_work(error.folder, "planted")
    for build, what in ((plain, "right"), (plain.race(), "free of races")):
        program.build(build)
        try:
            build.need_gpus()
        except Skip as skip:
            print(f"{what}: not judged, {skip}")
            continue
        for arguments in planted.cases(error):
            status, text = planted.said(build.command(program.path) + arguments)
            if status != 0:
                print(f"not {what} yet, with {' '.join(arguments)}:\n{text}\n(exit status {status})")
                return 1
        print(f"{what}: in all {len(planted.cases(error))} runs")
    print(f"\nCorrected. The explanation:\n\n{error.task.solution}")
    return 0


def _ask(error: planted.Planted) -> int:
    """Shows the lines among which the error is, and asks where."""
    print(f"{planted.shown(error.header)} is unchanged. One of these lines is wrong, or one is missing between them:\n")
    print(planted.numbered(error, error.broken))
    print(f"\nCorrect the file in an editor, then run ./lab break {error.chapter[:2]} {error.task.name} --fix again.")
    if not sys.stdin.isatty():
        return 1
    answer = input("Which line is wrong, or next to the missing one? ").strip()
    first, last = error.lines()
    right = answer.isdigit() and first <= int(answer) <= last
    print("Yes. Now correct it." if right else f"No, not there. A hint: ./lab hint {error.chapter[:2]} {error.task.name}")
    return 1
