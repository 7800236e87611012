#!/usr/bin/env python3
"""Makes an assignment of a chapter: a copy of its sources in which the marked regions are blank.

A region is in a chapter's header or program, each marker on lines of its own:

    // [task copy_in: which bytes does this GPU need?]
    // [blank] const int stub = 0;                        only if the rest does not compile without the region
    const int the_solution = ...;
    // [/task]

In the copy, the question and the stub replace the region:

    // TASK copy_in: which bytes does this GPU need?
    // Your code replaces what follows:
    const int stub = 0;

A question may continue over several comment lines, up to its closing bracket. A chapter's regions do not nest and have
different names. Every blank compiles, and the chapter's own verification rejects it (course/tests/blanks).

  course/blank.py chapters/01_column_split -o FOLDER                 all regions
  course/blank.py chapters/01_column_split -o FOLDER --only wait,launch
  course/blank.py chapters/01_column_split --list                    names and questions
"""
import argparse
import dataclasses
import pathlib
import re
import shutil
import sys
from typing import Collection, Dict, List, Optional, Tuple

SOURCES = (".cu", ".cuh")

_OPENING = re.compile(r"\s*// \[task (\w+): (\S.*)")
_CLOSING = re.compile(r"\s*// \[/task\]")
_STUB = re.compile(r"(\s*)// \[blank\] (\S.*)")
_COMMENT = re.compile(r"\s*// ?(.*)")
_LIKE_A_MARKER = re.compile(r"//\s*\[\s*/?\s*(?:task|blank)\b", re.IGNORECASE)


class TaskError(Exception):
    """The markers of a file, or a task (tasks.py), are malformed: "file:line: one sentence"."""


@dataclasses.dataclass(frozen=True)
class Region:
    """One marked region. Lines are counted from 0: the opening marker's first line, the content's, the closing marker's."""

    name: str
    question: List[str]  # its lines, without the comment's slashes
    stubs: List[str]     # lines of code
    first: int
    content: int
    closing: int


def regions_of(lines: List[str], file: str) -> List[Region]:
    """The regions of a source, in order. Throws TaskError, which names the `file`."""
    regions: List[Region] = []
    number = 0
    while number < len(lines):
        if _OPENING.fullmatch(lines[number]):
            regions.append(_region(lines, number, file))
            if regions[-1].name in (region.name for region in regions[:-1]):
                raise TaskError(f"{file}:{number + 1}: there is already a task '{regions[-1].name}'")
            number = regions[-1].closing
        elif _LIKE_A_MARKER.search(lines[number]):
            reason = "no task is open here" if _CLOSING.fullmatch(lines[number]) or _STUB.fullmatch(lines[number]) \
                else "this is no marker: it reads '// [task NAME: question]', alone on its line"
            raise TaskError(f"{file}:{number + 1}: {reason}")
        number += 1
    return regions


def _region(lines: List[str], first: int, file: str) -> Region:
    """The region that opens in line `first`."""
    def refuse(line: int, sentence: str) -> TaskError:
        return TaskError(f"{file}:{line + 1}: {sentence}")

    opening = _OPENING.fullmatch(lines[first])
    name, question, number = opening.group(1), [opening.group(2)], first + 1
    if name == "all":
        raise refuse(first, "'all' is no name of a task: it stands for all of them")
    while not question[-1].endswith("]"):
        more = _COMMENT.fullmatch(lines[number]) if number < len(lines) else None
        if more is None or _LIKE_A_MARKER.search(lines[number]):
            raise refuse(first, f"the question of task '{name}' has no closing bracket")
        question.append(more.group(1).rstrip())
        number += 1
    question[-1] = question[-1][:-1]
    stubs: List[str] = []
    content = closing = None
    for line in range(number, len(lines)):
        stub = _STUB.fullmatch(lines[line])
        if stub and content is None:
            stubs.append(stub.group(1) + stub.group(2))
            continue
        if _CLOSING.fullmatch(lines[line]):
            closing = line
            break
        if _OPENING.fullmatch(lines[line]):
            raise refuse(line, f"tasks do not nest: '{name}' of line {first + 1} is still open")
        if _LIKE_A_MARKER.search(lines[line]):
            raise refuse(line, "a stub '// [blank] code' stands right below the question" if stub else "no known marker")
        content = line if content is None else content
    if closing is None:
        raise refuse(first, f"task '{name}' is never closed by '// [/task]'")
    if not any(line.strip() for line in lines[content or closing:closing]):
        raise refuse(first, f"task '{name}' is empty: there is nothing to blank")
    return Region(name, question, stubs, first, content, closing)


def blanked(text: str, file: str, names: Optional[Collection[str]] = None) -> str:
    """The source with the regions of these `names` blanked (None: all), without markers."""
    lines = text.splitlines()
    result: List[str] = []
    done = 0
    for region in regions_of(lines, file):
        result += lines[done:region.first]
        if names is None or region.name in names:
            result += _blank(region, lines[region.first])
        else:
            result += lines[region.content:region.closing]
        done = region.closing + 1
    return "".join(line + "\n" for line in result + lines[done:])


def _blank(region: Region, opening: str) -> List[str]:
    """The lines that replace a region."""
    comment = opening[:opening.index("//")] + "// "
    result = [f"{comment}TASK {region.name}: {region.question[0]}"]
    result += [comment + line for line in region.question[1:]]
    if region.stubs:
        result += [comment + "Your code replaces what follows:", *region.stubs]
    return result


def without_markers(text: str, file: str) -> str:
    """The source as a reader should see it: all code, no markers."""
    return blanked(text, file, names=())


def tasks_of(chapter: pathlib.Path) -> Dict[str, Tuple[pathlib.Path, Region]]:
    """The regions of all sources of a chapter by name, each with its file. Throws TaskError."""
    tasks: Dict[str, Tuple[pathlib.Path, Region]] = {}
    for path in sources_of(chapter):
        for region in regions_of(path.read_text(encoding="utf-8").splitlines(), str(path)):
            if region.name in tasks:
                raise TaskError(f"{path}:{region.first + 1}: {tasks[region.name][0].name} already has a task "
                                f"'{region.name}'")
            tasks[region.name] = path, region
    return tasks


def sources_of(chapter: pathlib.Path) -> List[pathlib.Path]:
    return sorted(path for path in chapter.rglob("*") if path.suffix in SOURCES and path.parent.name not in ("tests", "assignment"))


def make_blank(chapter: pathlib.Path, output: pathlib.Path, only: Optional[List[str]], replace: bool) -> None:
    """Writes the blanked sources to `output`, which can replace the chapter's folder. Throws TaskError."""
    if not (chapter / "main.cu").is_file():
        raise TaskError(f"{chapter} is no chapter: it has no main.cu")
    tasks = tasks_of(chapter)
    if not tasks:
        raise TaskError(f"{chapter} has no marked regions")
    unknown = [name for name in only or [] if name not in tasks]
    if unknown:
        raise TaskError(f"{chapter} has no task '{unknown[0]}'; its tasks are: {', '.join(tasks)}")
    if output.exists() and not replace:
        raise TaskError(f"{output} is already there: it may hold somebody's work (--replace writes over it)")
    if replace and output.exists():
        if output.resolve() in [chapter.resolve(), *chapter.resolve().parents]:
            raise TaskError(f"{output} is the chapter itself, or a folder around it")
        shutil.rmtree(output)
    for path in sources_of(chapter):
        target = output / path.relative_to(chapter)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(blanked(path.read_text(encoding="utf-8"), str(path), only), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("chapter", type=pathlib.Path, help="the chapter's folder")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="the folder to make: the blanked *.cu and *.cuh")
    parser.add_argument("--only", metavar="A,B", help="blank these tasks, and keep the code of the others")
    parser.add_argument("--list", action="store_true", help="print the tasks: name, tabulator, question")
    parser.add_argument("--replace", action="store_true", help="write over the output folder if it is there")
    arguments = parser.parse_args()
    if arguments.list == (arguments.output is not None):
        parser.error("either -o FOLDER or --list")
    try:
        if arguments.list:
            for name, (_, region) in tasks_of(arguments.chapter).items():
                print(name, " ".join(region.question), sep="\t")
        else:
            only = arguments.only.split(",") if arguments.only is not None else None
            make_blank(arguments.chapter, arguments.output, only, arguments.replace)
    except (TaskError, OSError, ValueError) as error:
        print(f"blank.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
