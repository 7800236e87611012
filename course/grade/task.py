"""What is graded of a chapter: chapters/NN_name/assignment/grade.json, {HEADER: {...}}, the first one if nothing else is said.

  algorithm   the class that the judge makes of each rank; T stands for the type of the values
  problem     gather, scatter or sparse: its inputs and results (course/runner/problems.cpp)
  unit        the header that defines the class, if that is another one of the chapter, which includes HEADER
"""
import dataclasses
import json
import pathlib
import re
import sys
from typing import Dict, List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
from course import tasks as teaching_tasks, variation, work  # noqa: E402

PROBLEMS = ("gather", "scatter", "sparse")
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class TaskError(Exception):
    """There is nothing to grade, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One header of a chapter that a submission takes the place of."""

    chapter: str  # 03_ring_all_gather
    header: str  # ring_all_gather.cuh
    algorithm: str
    problem: str
    unit: str
    extension: str = ""  # the task of the kind extend that is graded in the place of the chapter's own header
    right: pathlib.Path = pathlib.Path()  # what is right if not the chapter's header: the extension's, or a student's variation

    @property
    def path(self) -> str:
        """As other headers include it."""
        return f"{self.chapter}/{self.header}"

    @property
    def own(self) -> pathlib.Path:
        return ROOT / "chapters" / self.path

    @property
    def solution(self) -> pathlib.Path:
        """The repository's header that a submission is compared with."""
        return self.right if self.right != pathlib.Path() else self.own

    @property
    def namespace(self) -> str:
        """In which all of a submission stands: overlap::ring_all_gather::"""
        return self.algorithm[:self.algorithm.partition("<")[0].rindex("::") + 2]

    def visible(self) -> Dict[str, pathlib.Path]:
        """The chapters' headers that its unit includes, but the one that is handed in: by the path that includes them."""
        found: Dict[str, pathlib.Path] = {}
        rest = [f"{self.chapter}/{self.unit}", self.path]
        while rest:
            path = rest.pop()
            if path in found:
                continue
            found[path] = ROOT / "chapters" / path
            rest += [name for name, _ in INCLUDE.findall(found[path].read_text(encoding="utf-8"))
                     if (ROOT / "chapters" / name).is_file()]
        del found[self.path]
        return found

    def repository_includes(self) -> List[str]:
        """What stands before the student's header: all that it and the other headers include from elsewhere."""
        texts = [path.read_text(encoding="utf-8") for path in [*self.visible().values(), self.own, self.solution]]
        names = {quoted or angled for text in texts for quoted, angled in INCLUDE.findall(text)}
        return sorted(name for name in names if not (ROOT / "chapters" / name).is_file())

    def source(self) -> str:
        """The unit: the repository's headers, the student's, and the factory."""
        kind = "sparse" if self.problem == "sparse" else "dense"
        lines = [f'#include "{kind}_unit.hpp"', *(f"#include <{name}>" for name in self.repository_includes()),
                 f'#include "{self.path}"']
        if self.unit != self.header:
            lines.append(f'#include "{self.chapter}/{self.unit}"')
        types = ", ".join(re.sub(r"\bT\b", name, self.algorithm) for name in ("__half", "float"))
        lines += ['extern "C" overlap::teaching::Submission* overlap_submission(',
                  "    overlap::Rank& rank, const overlap::MatmulShape& sizes, overlap::ElementType type) {",
                  f"  return overlap::teaching::make_{kind}<{types}>(rank, sizes, type);", "}", ""]
        return "\n".join(lines)


def tasks_of(chapter: str) -> List[Task]:
    """All of a chapter, the usual one first. Throws TaskError."""
    path = ROOT / "chapters" / chapter / "assignment" / "grade.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskError(f"{chapter} has nothing to grade: it has no assignment/grade.json") from None
    except json.JSONDecodeError as error:
        raise TaskError(f"chapters/{chapter}/assignment/grade.json: line {error.lineno}: {error.msg}") from None
    found = []
    for header, value in values.items():
        task = Task(chapter, header, value.get("algorithm", ""), value.get("problem", ""), value.get("unit", header))
        if set(value) - {"algorithm", "problem", "unit"} or not task.algorithm or task.problem not in PROBLEMS:
            raise TaskError(f"chapters/{chapter}/assignment/grade.json: {header} needs an algorithm and a problem "
                            f"({', '.join(PROBLEMS)}), and may have a unit")
        for name in (header, task.unit):
            if not (ROOT / "chapters" / chapter / name).is_file():
                raise TaskError(f"chapters/{chapter}/assignment/grade.json: there is no {name}")
        found.append(task)
    if not found:
        raise TaskError(f"chapters/{chapter}/assignment/grade.json is empty")
    return found


def extended(tasks: List[Task], name: str, folder: pathlib.Path) -> Task:
    """A task of the kind extend: its worked solution, written to `folder`, says which cost is asked for. Throws TaskError."""
    chapter = ROOT / "chapters" / tasks[0].chapter
    found = {each.name: each for each in teaching_tasks.read_tasks(chapter).values() if each.kind == "extend"}
    if name not in found:
        raise TaskError(f"{chapter.name} has no extension '{name}'; it has: {', '.join(found) or 'none'}")
    task = next((each for each in tasks if each.header == found[name].file), None)
    if task is None:
        raise TaskError(f"{name} cannot be graded: {found[name].file} is not in assignment/grade.json")
    path = folder / found[name].file
    try:
        path.write_text(found[name].code, encoding="utf-8")
    except teaching_tasks.TaskError as error:
        raise TaskError(str(error)) from None
    return dataclasses.replace(task, extension=name, right=path)


def varied(task: Task, student: str, key_file: str, folder: pathlib.Path) -> Task:
    """The task in a student's variation: its solution, written to `folder`, says which links carry what. Throws TaskError."""
    try:
        way = variation.of_student(task.chapter, student, variation.key_of(key_file))
    except work.WorkError as error:
        raise TaskError(str(error)) from None
    text = way.apply(task.solution.read_text(encoding="utf-8"))
    path = folder / task.header
    path.write_text(text, encoding="utf-8")
    return dataclasses.replace(task, right=path)


def chosen(tasks: List[Task], file_name: str) -> Task:
    """The task of a file that is handed in: the one whose header has its name, else the usual one."""
    return next((task for task in tasks if task.header == file_name), tasks[0])
