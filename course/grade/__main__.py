"""./lab grade: grades one header, or a folder of submissions, of a chapter's assignment.

  ./lab grade 03 [FILE]                                       without FILE: the repository's own header
  ./lab grade 03 --submissions FOLDER --csv FILE [--cache FOLDER] [--ids FILE --key FILE]
Exit status 0: graded, whatever the points (with --full-marks: all judged points were reached, else 1); 2: nothing was graded.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import sys
import tempfile
from typing import List, Tuple

import grader
import report
import sandbox
import similarity
import submissions
import task
from points import Grade, refused


def _say(text: str) -> None:
    print(f"grade: {text}", file=sys.stderr, flush=True)


def _parse(words: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./lab grade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapter", metavar="NN")
    parser.add_argument("file", nargs="?", type=pathlib.Path, help="a header that takes the place of the chapter's")
    parser.add_argument("--task", metavar="HEADER", help="which header it takes the place of, if its name does not say")
    parser.add_argument("--extension", metavar="TASK", help="grade this task of the kind extend: cost and memory as of its solution")
    parser.add_argument("--student", default="", metavar="ID", help="FILE is of this student's variation: cost as of that")
    parser.add_argument("--key", default="", metavar="FILE", help="the course's key, as for ./lab start")
    parser.add_argument("--submissions", type=pathlib.Path, metavar="FOLDER", help="grade all in it")
    parser.add_argument("--ids", type=pathlib.Path, metavar="FILE", help="with --key: lines ID or SUBMISSION,ID; each submission is graded "
                        "as of its student's variation")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="one line a submission")
    parser.add_argument("--cache", type=pathlib.Path, metavar="FOLDER", help="keep grades: what has not changed is not graded again")
    parser.add_argument("--reports", type=pathlib.Path, metavar="FOLDER", help="one report a submission")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--gradescope", type=pathlib.Path, metavar="results.json", help="write what Gradescope reads")
    parser.add_argument("--full-marks", action="store_true", help="exit status 1 unless all points are there")
    parser.add_argument("--seconds", type=float, default=60, help="for a submission; more where the machine is busy (default: 60)")
    parser.add_argument("--isolation", default="", choices=["root", "bubblewrap", "none"], help="default: the best that works here")
    parser.add_argument("--unsafe", action="store_true", help="grade a folder where strangers' code cannot be isolated")
    return parser.parse_intermixed_args(words)


def _one(engine: grader.Grader, file: pathlib.Path) -> Grade:
    try:
        return engine.grade(grader.read_file(file))
    except grader.Unreadable as error:
        return Grade(refused(f"refused: {error}"), engine.honest.describe())


def _key(engine: grader.Grader, data: bytes) -> str:
    """The cache key: a hash of everything that a grade depends on: submission, course secret, grader, chapter."""
    digest = hashlib.sha256(hashlib.sha256(data).digest() + engine.settings.secret + f"{engine.race} {engine.task.lesson}".encode())
    own = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    judge = engine.settings.builds["plain"] / "bin" / "teaching_judge"
    runners = [pathlib.Path(path) for tools in engine.kit.tools.values() for path in tools.runner]
    for path in [*own, *engine.task.visible().values(), engine.task.solution, judge, *runners]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Engines:
    """One grader for each variation in a class."""

    def __init__(self, first: grader.Grader, key: str, scratch: pathlib.Path, stack: contextlib.ExitStack) -> None:
        self.first, self.key, self.scratch, self.stack = first, key, scratch, stack
        self.made = {first.task.variation: first}

    def of(self, student: str) -> grader.Grader:
        if not student:
            return self.first
        wanted = task.varied(self.first.task, student, self.key, self.scratch)
        if wanted.variation not in self.made:
            self.made[wanted.variation] = self.stack.enter_context(grader.Grader(wanted, self.first.settings))
        return self.made[wanted.variation]


def _all(engines: Engines, arguments: argparse.Namespace) -> List[Tuple[str, Grade]]:
    rows: List[Tuple[str, Grade]] = []
    found = submissions.find(arguments.submissions, engines.first.task)
    if arguments.ids:
        found = submissions.with_ids(found, submissions.read_ids(arguments.ids))
    for number, each in enumerate(found, 1):
        engine = engines.of(each.student)
        kept = arguments.cache / f"{_key(engine, each.data)}.json" if arguments.cache and not each.problem else None
        if each.problem:
            grade, how = Grade(refused(f"refused: {each.problem}"), engine.honest.describe()), "not run"
        elif kept and kept.is_file():
            grade, how = report.from_values(json.loads(kept.read_text(encoding="utf-8"))), "kept"
        else:
            grade = engine.grade(each.data)
            how = f"{grade.seconds:.1f} s"
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                report.write_json(kept, report.values(grade))
        rows.append((each.name, grade))
        _say(f"{number} of {len(found)}: {each.name}: {grade.points:g} of {grade.judged} points ({how})")
        if arguments.reports:
            arguments.reports.mkdir(parents=True, exist_ok=True)
            (arguments.reports / f"{submissions.file_name(each.name)}.txt").write_text(report.text(each.name, grade), encoding="utf-8")
    if similarity.available():
        alike = similarity.pairs([(each.name, each.data) for each in found], engines.first.task.solution.read_bytes())
        for percent, one, other in alike[:50]:
            _say(f"alike: {percent} % of {one} and {other}")
    else:
        _say("similarity: not looked for, sim_c++ is not installed (Debian: similarity-tester)")
    return rows


def _main(arguments: argparse.Namespace, scratch: pathlib.Path) -> int:
    tasks = task.tasks_of(arguments.chapter)
    wanted = arguments.task or (arguments.file.name if arguments.file else "")
    if arguments.task and arguments.task not in [each.header for each in tasks]:
        raise task.TaskError(f"there is no header {arguments.task} to grade; there are: {', '.join(each.header for each in tasks)}")
    chosen = task.extended(tasks, arguments.extension, scratch) if arguments.extension else task.chosen(tasks, wanted)
    if arguments.student:
        if arguments.submissions:
            raise task.TaskError("--student is for one FILE: each student of a folder has an ID of their own")
        chosen = task.varied(chosen, arguments.student, arguments.key, scratch)
    elif bool(arguments.key) != bool(arguments.ids):
        raise task.TaskError("--key says how variations are chosen: it needs --student, or --submissions with --ids, which needs it")
    if arguments.ids and not arguments.submissions:
        raise task.TaskError("--ids is for --submissions: FILE has --student")
    if arguments.submissions and (arguments.file or not arguments.submissions.is_dir()):
        raise task.TaskError(f"--submissions wants a folder, and no FILE: {arguments.submissions}")
    if arguments.file and not os.path.lexists(arguments.file):
        raise task.TaskError(f"there is no file {arguments.file}")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(grader.Grader(chosen, grader.default_settings(arguments.isolation, arguments.seconds)))
        _say(f"{chosen.path}; isolation: {engine.honest.describe()}")
        if arguments.submissions:
            if not engine.honest.isolated() and not arguments.unsafe:
                raise task.TaskError(f"submissions are not isolated here: {engine.honest.advice()}; or say --unsafe")
            rows = _all(Engines(engine, arguments.key, scratch, stack), arguments)
        else:
            file = arguments.file or chosen.solution
            rows = [(str(file), _one(engine, file))]
    if arguments.csv:
        arguments.csv.write_text(report.table(rows), encoding="utf-8")
    if arguments.gradescope:
        report.write_json(arguments.gradescope, report.gradescope(rows[0][1]))
    if arguments.json:
        print(json.dumps({name: report.values(grade) for name, grade in rows}, indent=2))
    elif not arguments.submissions:
        print(report.text(*rows[0]), end="")
    full = all(grade.points == grade.judged for _name, grade in rows)
    return 1 if arguments.full_marks and not full else 0


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):  # end the sandbox's processes and delete its folder
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return _main(_parse(sys.argv[1:]), pathlib.Path(scratch))
    except (task.TaskError, grader.Unreadable, sandbox.Unavailable, RuntimeError, OSError) as error:
        _say(str(error))
    return 2


if __name__ == "__main__":
    sys.exit(main())
