"""The graded headers of a chapter: chapters/NN_name/assignment/grade.json, {HEADER: {...}}; the first one is the default.

  algorithm   the class that the judge constructs on each rank; T is the type of the values
  problem     gather, scatter or sparse: determines inputs and results (course/runner/problems.cpp)
  unit        the header that defines the class, if it is another header of the chapter that includes HEADER
"""
import dataclasses
import json
import pathlib
import re
import secrets
import sys
from typing import Dict, List, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
from course import tasks as teaching_tasks, variation, work  # noqa: E402
from tools.chapters import all_chapters  # noqa: E402

# The standard headers that any submission may include, besides helpers and earlier chapters.
STANDARD = """algorithm array bit cmath compare concepts cstddef cstdint cstring functional limits map memory numeric optional
set span stdexcept string string_view tuple type_traits utility vector cuda_runtime.h cuda.h cuda_fp16.h cuda_bf16.h nccl.h
cublas_v2.h cuda/atomic cuda/std/atomic cstdio""".split()
# Headers of common/ that submissions may not include.
NO_HELPERS = ("backend.hpp", "kept_handles.hpp", "verify.hpp", "freivalds.hpp", "data.hpp", "sparse_data.hpp")
PROBLEMS = ("gather", "scatter", "sparse")
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class TaskError(Exception):
    """The chapter has no such graded task: one sentence."""


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What the chapter's lesson requires beyond a right result; graded as a criterion of its own (chapter.json)."""

    about: str
    sizes: Sequence[int]
    kernels: bool = False  # the kernels must be the student's own


@dataclasses.dataclass(frozen=True)
class Task:
    """One header of a chapter that a submission replaces."""

    chapter: str  # 03_ring_all_gather
    header: str  # ring_all_gather.cuh
    algorithm: str
    problem: str
    unit: str
    lesson: Lesson
    extension: str = ""  # the extend task that is graded instead of the chapter's own header
    variation: str = ""  # the student's variation, if any
    right: pathlib.Path = pathlib.Path()  # the extension's or the variation's solution, if it is the reference

    @property
    def path(self) -> str:
        """The path by which other headers include it."""
        return f"{self.chapter}/{self.header}"

    @property
    def own(self) -> pathlib.Path:
        return ROOT / "chapters" / self.path

    @property
    def solution(self) -> pathlib.Path:
        """The header that a submission is compared with."""
        return self.right if self.right != pathlib.Path() else self.own

    @property
    def namespace(self) -> str:
        """The namespace that holds all of a submission: overlap::ring_all_gather::"""
        return self.algorithm[:self.algorithm.partition("<")[0].rindex("::") + 2]

    def visible(self) -> Dict[str, pathlib.Path]:
        """The chapter headers that its unit includes, except the submitted one; by include path."""
        found = _reached([f"{self.chapter}/{self.unit}", self.path])
        del found[self.path]
        return found

    def includes(self) -> List[str]:
        """What a submission may include. The unit includes all of it first, so that a submission's includes add no token."""
        texts = [path.read_text(encoding="utf-8") for path in [*self.visible().values(), self.own, self.solution]]
        common = ROOT / "common"
        helpers = [str(path.relative_to(common)) for room in ("gpu", "data") for path in common.glob(f"overlap/{room}/*.hpp")
                   if path.name not in NO_HELPERS]
        elsewhere = {name for text in texts for name in _included(text) if not (ROOT / "chapters" / name).is_file()}
        earlier = [name for name in self.visible() if self.path not in _reached([name])]
        return [*sorted({*STANDARD, *helpers, *elsewhere}), *sorted(earlier)]

    def source(self) -> str:
        """The unit: the repository's headers, the student's between two marks that a student cannot guess, and the factory."""
        kind = "sparse" if self.problem == "sparse" else "dense"
        mark = f"submission_{secrets.token_hex(16)}"
        types = ", ".join(re.sub(r"\bT\b", name, self.algorithm) for name in ("__half", "float"))
        return "\n".join([
            f'#include "{kind}_unit.hpp"', *(f"#include <{name}>" for name in self.includes()),
            f"struct {mark}_begins;", f'#include "{self.path}"', f"struct {mark}_ends;",
            *([f'#include "{self.chapter}/{self.unit}"'] if self.unit != self.header else []),
            'extern "C" overlap::teaching::Submission* overlap_submission(',
            "    overlap::Rank& rank, const overlap::MatmulShape& sizes, overlap::ElementType type) {",
            f"  return overlap::teaching::make_{kind}<{types}>(rank, sizes, type);", "}", ""])


def _included(text: str) -> List[str]:
    return [quoted or angled for quoted, angled in INCLUDE.findall(text)]


def _reached(rest: List[str]) -> Dict[str, pathlib.Path]:
    """These chapters' headers, and all headers that they include."""
    found: Dict[str, pathlib.Path] = {}
    while rest:
        path = rest.pop()
        if path not in found:
            found[path] = ROOT / "chapters" / path
            names = _included(found[path].read_text(encoding="utf-8"))
            rest = rest + [name for name in names if (ROOT / "chapters" / name).is_file()]
    return found


def tasks_of(chapter: str) -> List[Task]:
    """All graded tasks of a chapter, the default first. Throws TaskError."""
    path = ROOT / "chapters" / chapter / "assignment" / "grade.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskError(f"{chapter} has nothing to grade: it has no assignment/grade.json") from None
    except json.JSONDecodeError as error:
        raise TaskError(f"chapters/{chapter}/assignment/grade.json: line {error.lineno}: {error.msg}") from None
    manifest = all_chapters()[chapter]
    if len(manifest.lesson.get("sizes", ())) != 4:
        raise TaskError(f"chapters/{chapter}/chapter.json: a graded chapter has a lesson, with the number of ranks and three sizes")
    lesson = Lesson(**manifest.lesson)
    found = []
    for header, value in values.items():
        task = Task(chapter, header, value.get("algorithm", ""), value.get("problem", ""), value.get("unit", header), lesson)
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
    """An extend task; its worked solution, written to `folder`, gives the expected cost. Throws TaskError."""
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
    """The task in a student's variation; its solution, written to `folder`, gives the expected bytes of each link. Throws
    TaskError."""
    try:
        way = variation.of_student(task.chapter, student, variation.key_of(key_file))
    except work.WorkError as error:
        raise TaskError(str(error)) from None
    text = way.apply(task.solution.read_text(encoding="utf-8"))
    path = folder / way.name.replace(" ", "_") / task.header
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return dataclasses.replace(task, right=path, variation=f"{way.kind}: {way.name}" if way.kind != "none" else "")


def chosen(tasks: List[Task], file_name: str) -> Task:
    """The task whose header has the submitted file's name, else the default."""
    return next((task for task in tasks if task.header == file_name), tasks[0])
