"""The hints and solutions of tasks: what ./lab hint prints.

All text uses the words of the hand-out's variation; the default hand-out is the one in work/. An exercise is also found by its
number on the page (exercise_3 or 3), a task also by the name of one of its regions. The number of hints shown is kept in
work/hints/NN_name.json, or in a hand-out elsewhere; if that cannot be written, each call shows the first hint.
"""
import dataclasses
import json
import pathlib
from typing import Dict, Tuple

from course import handout, patches, tasks, variation, work


def find(all_tasks: Dict[str, tasks.Task], wanted: str, chapter: str) -> tasks.Task:
    """The task with this name, or the exercise with this number. Throws WorkError."""
    number = wanted.removeprefix("exercise_")
    for task in all_tasks.values():
        if task.name == wanted or task.exercise and str(task.exercise) == number:
            return task
    for task in all_tasks.values():
        if task.kind == "rebuild" and wanted in task.regions:  # a region's name
            return task
    raise work.WorkError(f"{chapter} has no task '{wanted}'{work.meant(wanted, all_tasks)}; its tasks are: {', '.join(all_tasks)}")


def _seen(path: pathlib.Path) -> Dict[str, int]:
    try:
        seen = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: count for name, count in seen.items() if isinstance(count, int)} if isinstance(seen, dict) else {}


def next_hint(path: pathlib.Path, task: tasks.Task, command: str) -> str:
    """The next hint; the file at `path` counts the hints shown. The last hint is marked as the last, and is repeated."""
    seen = _seen(path)
    number = min(max(seen.get(task.name, 0), 0) + 1, len(task.hints))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**seen, task.name: number}, indent=2) + "\n", encoding="utf-8")
    except OSError:
        pass  # a read-only clone: show the hint anyway
    rest = len(task.hints) - number
    more = f"{rest} more: call it again" if rest else f"that was the last one; {command} {task.name} --solution"
    return f"{task.title}\n\nHint {number} of {len(task.hints)}\n\n{task.hints[number - 1]}\n\n({more})"


def of_work(chapter: str, to: str) -> Tuple[variation.Variation, pathlib.Path]:
    """The variation and the file that counts the hints: those of the hand-out at or below `to`, else of the one in work/, else
    of the chapter. Throws WorkError."""
    folders = [pathlib.Path(to) / chapter, pathlib.Path(to)] if to else [work.FOLDER / chapter]
    counted = work.FOLDER / "hints" / f"{chapter}.json"
    for folder in folders:
        if (folder / work.RECORD).is_file() and work.record_of(folder)["chapter"] == chapter:
            return handout.way_of(work.record_of(folder)), folder / ".hints.json" if to else counted
    if to:
        raise work.WorkError(f"there is no hand-out of {chapter} in {to}")
    return variation.ways(chapter)[0], counted


def varied(task: tasks.Task, way: variation.Variation) -> tasks.Task:
    """The task in the words of a variation."""
    return dataclasses.replace(task, title=way.apply(task.title), text=way.apply(task.text),
                               hints=[way.apply(hint) for hint in task.hints], solution=way.apply(task.solution))


def _regions(chapter: str, task: tasks.Task, way: variation.Variation) -> str:
    """The code of a rebuild task's regions, in a variation."""
    lines = way.apply((work.REPOSITORY / "chapters" / chapter / task.file).read_text(encoding="utf-8")).splitlines()
    wanted = [region for region in tasks.blank.regions_of(lines, task.file) if region.name in task.regions]
    return "\n\n".join("\n".join(lines[region.content:region.closing]) for region in wanted)


def solution(chapter: str, task: tasks.Task, way: variation.Variation) -> str:
    """The solution's text and code. Rebuild: the place of the code in the chapter, or the code itself in another variation;
    extend: the changes of the header."""
    where = ""
    if task.kind == "rebuild" and way.pairs:
        where = f"\n\n(The code in your variation, {way.name})\n\n{_regions(chapter, task, way)}"
    elif task.kind == "rebuild":
        where = f"\n\n(The code: chapters/{chapter}/{task.file})"
    elif task.kind == "extend":
        folder, lesson = f"chapters/{chapter}", handout.solved(chapter, task.file, way)
        changes = patches.difference(lesson, way.apply(task.code), f"{folder}/{task.file}").rstrip()
        where = f"\n\n(What changes; git apply {folder}/assignment/{task.patch.name} does it to the chapter)\n\n{changes}"
    return f"{task.title}\n\nSolution\n\n{task.solution}{where}"


def text(chapter: str, wanted: str, with_solution: bool, to: str, command: str = "") -> str:
    """The list of tasks and exercises; with `wanted`, its next hint, or its solution. `command`: the command that prints it, if
    not ./lab hint. Throws WorkError, TaskError."""
    way, counted = of_work(chapter, to)
    own_words = tasks.read_tasks(work.REPOSITORY / "chapters" / chapter)
    all_tasks = {name: varied(task, way) for name, task in own_words.items()}
    if not all_tasks:
        raise work.WorkError(f"{chapter} has no tasks yet")
    if wanted:
        task = find(all_tasks, wanted, chapter)
        return solution(chapter, task, way) if with_solution else next_hint(counted, task, command or f"./lab hint {chapter[:2]}")
    if with_solution:
        raise work.WorkError(f"the solution of which task? They are: {', '.join(all_tasks)}")
    return tasks.listing(list(all_tasks.values()))
