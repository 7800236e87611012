#!/usr/bin/env python3
"""Reads and checks the tasks of a chapter: chapters/NN_name/assignment/TASK.md, one file for each.

    # Pass a shard on

    kind: rebuild
    file: ring_all_gather.cuh
    regions: transfer, wait
    minutes: 30
    difficulty: 2
    points: 30
    needs: nothing
    variation: direction

    ## Task
    ## Hint 1
    ## Hint 2
    ## Solution

The file's name is the task's, in lower case. Keys of all kinds: kind, minutes, difficulty (1 to 3), needs (nothing, 1 GPU,
N GPUs). By kind:

  rebuild   file, regions, points, variation: the regions of that header are blanked; the lesson's header is the solution
  extend    file, points: an algorithm that no chapter has; TASK.patch beside it turns the header into the solution (patches.py)
  find      file, mutant, points: find the planted error of chapters/NN_name/mutants/MUTANT.mutant in the file;
            optional timeline: the arguments of a run whose timeline shows it
  exercise  exercise: its number on the page; either all exercises of a page have such a file, or none

Points are 5 to 100. A task has two or three hints, each more specific than the one before.

  course/tasks.py --check            exit status 2 and one sentence if a task is malformed
  course/tasks.py --list [NN_name]   the tasks, in columns
"""
import argparse
import dataclasses
import pathlib
import re
import sys
from typing import Dict, List, Optional, Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
from course import blank, patches  # noqa: E402
from course.blank import TaskError  # noqa: E402

VARIATIONS = ("none", "direction", "order", "ranks", "sizes")
_COMMON = ("kind", "minutes", "difficulty", "needs")
_KEYS = {"rebuild": ("file", "regions", "points", "variation"), "extend": ("file", "points"),
         "find": ("file", "mutant", "points"), "exercise": ("exercise",)}
_MAY_HAVE = {"find": ("timeline",)}
KINDS = tuple(_KEYS)
_NEEDS = re.compile(r"nothing|1 GPU|[2-8] GPUs")
_HEADER = re.compile(r"# (\S.*)\n((?:\s*\n|[a-z]+: .*\n)*)")
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_EXERCISE = re.compile(r"^(\d+)\. ", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Task:
    """One task, read and checked."""

    name: str
    title: str
    kind: str
    minutes: int
    difficulty: int
    needs: str
    text: str             # the task's text
    hints: Sequence[str]
    solution: str
    points: int = 0
    file: str = ""        # in the chapter's folder
    regions: Sequence[str] = ()
    variation: str = "none"
    mutant: str = ""
    timeline: str = ""    # the arguments of a run that shows the error
    exercise: int = 0
    patch: pathlib.Path = pathlib.Path()  # of an extend task

    @property
    def code(self) -> str:
        """The header that solves an extend task, without markers. Throws TaskError, OSError."""
        try:
            return blank.without_markers(patches.solution_of(self.patch, self.patch.parents[1] / self.file), self.file)
        except (patches.PatchError, TaskError) as error:
            raise TaskError(f"{_named(self.patch)}: {error}; after an edit of the lesson {patches.COMMAND} makes it anew") from None


def _number(values: Dict[str, str], key: str, least: int, most: int) -> int:
    if not re.fullmatch(r"\d{1,3}", values[key]) or not least <= int(values[key]) <= most:
        raise TaskError(f"'{key}' is '{values[key]}', not a number from {least} to {most}")
    return int(values[key])


def _values(lines: str) -> Dict[str, str]:
    values: Dict[str, str] = {}
    for line in filter(str.strip, lines.splitlines()):
        key, _, value = line.partition(": ")
        if key in values:
            raise TaskError(f"'{key}' is there twice")
        values[key] = value.strip()
    if values.get("kind", "") not in KINDS:
        raise TaskError(f"'kind' is '{values.get('kind', '')}', none of {', '.join(KINDS)}")
    known = _COMMON + _KEYS[values["kind"]]
    for key in values:
        if key not in known + _MAY_HAVE.get(values["kind"], ()):
            raise TaskError(f"'{key}' is no key of the kind {values['kind']} (its keys: {', '.join(known)})")
    for key in known:
        if not values.get(key):
            raise TaskError(f"'{key}' is missing")
    return values


def _sections(text: str) -> Dict[str, str]:
    parts = _SECTION.split(text)
    if parts[0].strip():
        raise TaskError(f"'{parts[0].strip().splitlines()[0]}' stands before '## Task'")
    names = [name.strip() for name in parts[1::2]]
    hints = [f"Hint {number}" for number in range(1, len(names) - 1)]
    if names != ["Task", *hints, "Solution"] or not 2 <= len(hints) <= 3:
        raise TaskError("its sections are not Task, Hint 1, Hint 2, perhaps Hint 3, Solution: "
                        f"{', '.join(names) or 'there are none'}")
    sections = dict(zip(names, (part.strip() for part in parts[2::2])))
    for name, section in sections.items():
        if not section:
            raise TaskError(f"'## {name}' is empty")
    return sections


def parse(name: str, text: str) -> Task:
    """A task from its file's name and text. Throws TaskError, which does not name the file."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise TaskError("its name has other characters than a to z, 0 to 9 and _")
    header = _HEADER.match(text)
    if header is None:
        raise TaskError("it does not begin with '# Title'")
    values = _values(header.group(2))
    sections = _sections(text[header.end():])
    kind = values["kind"]
    if not _NEEDS.fullmatch(values["needs"]):
        raise TaskError(f"'needs' is '{values['needs']}', neither nothing, 1 GPU nor N GPUs")
    if values.get("variation", "none") not in VARIATIONS:
        raise TaskError(f"'variation' is '{values['variation']}', none of {', '.join(VARIATIONS)}")
    task = Task(
        name=name, title=header.group(1).strip(), kind=kind, minutes=_number(values, "minutes", 5, 240),
        difficulty=_number(values, "difficulty", 1, 3), needs=values["needs"], text=sections.pop("Task"),
        solution=sections.pop("Solution"), hints=list(sections.values()),
        points=_number(values, "points", 5, 100) if "points" in values else 0, file=values.get("file", ""),
        regions=[region.strip() for region in values.get("regions", "").split(",") if region.strip()],
        variation=values.get("variation", "none"), mutant=values.get("mutant", ""),
        timeline=values.get("timeline", ""),
        exercise=_number(values, "exercise", 1, 99) if "exercise" in values else 0)
    if kind == "rebuild" and not task.regions:
        raise TaskError("'regions' names no region")
    return task


def read_tasks(chapter: pathlib.Path) -> Dict[str, Task]:
    """The tasks of a chapter's folder by name; order: kind, then exercises by number, others by difficulty. Throws
    TaskError."""
    tasks: List[Task] = []
    for path in sorted((chapter / "assignment").glob("*.md")):
        try:
            tasks.append(dataclasses.replace(parse(path.stem, path.read_text(encoding="utf-8")), patch=path.with_suffix(".patch")))
        except TaskError as error:
            raise TaskError(f"{_named(path)}: {error}") from None
    tasks.sort(key=lambda task: (KINDS.index(task.kind), task.exercise, task.difficulty, task.name))
    return {task.name: task for task in tasks}


def _named(path: pathlib.Path) -> str:
    return str(path.relative_to(REPOSITORY) if REPOSITORY in path.parents else path)


def check_chapter(chapter: pathlib.Path) -> Dict[str, Task]:
    """The tasks; checks that they match the chapter's markers, page and mutants. Throws TaskError."""
    tasks = read_tasks(chapter)
    if not tasks:
        return tasks
    markers = blank.tasks_of(chapter)
    _check_regions(chapter, tasks, {name: str(path.relative_to(chapter)) for name, (path, _) in markers.items()})
    page = (chapter / "README.md").read_text(encoding="utf-8") if (chapter / "README.md").is_file() else ""
    numbers = _EXERCISE.findall(page.partition("\n## Exercises\n")[2].partition("\n## ")[0])
    for task in tasks.values():
        path = _named(chapter / "assignment" / f"{task.name}.md")
        if task.file and not (chapter / task.file).is_file():
            raise TaskError(f"{path}: there is no file {task.file}")
        if task.mutant and not (chapter / "mutants" / f"{task.mutant}.mutant").is_file():
            raise TaskError(f"{path}: there is no mutant {task.mutant}")
        if task.patch.is_file() != (task.kind == "extend"):
            raise TaskError(f"{path}: a task has a solution {task.patch.name} if it is of the kind extend")
        if task.kind == "extend":
            _ = task.code  # throws if the patch does not apply
        if task.exercise and str(task.exercise) not in numbers:
            raise TaskError(f"{path}: the page has no exercise {task.exercise}")
    exercises = [task.exercise for task in tasks.values() if task.exercise]
    for number in exercises:
        if exercises.count(number) > 1:
            raise TaskError(f"{_named(chapter)}: two tasks are the page's exercise {number}")
    for number in map(int, numbers):
        if exercises and number not in exercises:
            raise TaskError(f"{_named(chapter)}: exercise {number} of the page has no file in assignment/")
    return tasks


def _check_regions(chapter: pathlib.Path, tasks: Dict[str, Task], markers: Dict[str, str]) -> None:
    """Checks that each marker has exactly one rebuild task, and each named region a marker."""
    owners: Dict[str, str] = {}
    for task in tasks.values():
        path = _named(chapter / "assignment" / f"{task.name}.md")
        for region in task.regions:
            if region not in markers:
                raise TaskError(f"{path}: {task.file} has no marker '// [task {region}: ...]'")
            if markers[region] != task.file:
                raise TaskError(f"{path}: the region {region} stands in {markers[region]}, not in {task.file}")
            if region in owners:
                raise TaskError(f"{path}: the region {region} belongs to the task {owners[region]}, too")
            owners[region] = task.name
    for region in markers:
        if region not in owners:
            file = _named(chapter / markers[region])
            raise TaskError(f"{file}: no task of {chapter.name}/assignment has the region {region}")


def chapters_with_tasks(root: pathlib.Path = REPOSITORY) -> List[pathlib.Path]:
    """The folders of the chapters that have tasks."""
    return sorted({path.parents[1] for path in root.glob("chapters/[0-9][0-9]_*/assignment/*.md")})


def listing(tasks: Sequence[Task]) -> str:
    """The tasks in columns: what `./lab hint NN` shows."""
    rows = [(task.name, task.kind, f"{task.minutes} min", "*" * task.difficulty,
             f"{task.points} points" if task.points else "", "" if task.needs == "nothing" else f"needs {task.needs}", task.title)
            for task in tasks]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def table(root: pathlib.Path = REPOSITORY) -> str:
    """The tasks of all chapters as a table for a page: minutes and points of each."""
    lines = ["| chapter | rebuild | extend | find the error | exercises | minutes | points |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for chapter in chapters_with_tasks(root):
        tasks = read_tasks(chapter).values()
        cells = [", ".join(f"`{task.name}` {task.minutes} min, {task.points} p" for task in tasks if task.kind == kind)
                 for kind in ("rebuild", "extend", "find")]
        exercises = [task for task in tasks if task.kind == "exercise"]
        graded = [task for task in tasks if task.kind != "exercise"]
        lines.append(f"| {chapter.name[:2]} | {' | '.join(cells)} | {len(exercises) or ''} | {sum(task.minutes for task in graded)} | "
                     f"{sum(task.points for task in graded)} |")
    return "\n".join(re.sub(r" +\|", " |", line) for line in lines) + "\n"


def main(words: Optional[Sequence[str]] = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", nargs="?", const="", metavar="NN_name")
    chosen = parser.parse_args(words)
    try:
        for chapter in chapters_with_tasks():
            tasks = check_chapter(chapter)
            if chosen.list is not None and chosen.list in ("", chapter.name):
                print(f"{chapter.name}\n{listing(list(tasks.values()))}")
    except (TaskError, OSError, ValueError) as error:
        print(f"tasks.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
