"""What a chapter adds to the one that it builds on: ./lab diff prints it.

Lessons are compared, not programs: first the added and the removed calls of CUDA, NCCL and cuBLAS and helpers, then each header
with the header of the other chapter with which it shares most lines (not counting includes and the markers of assignments). If
a header shares little with any other, it is new: its parts are listed, each with the first sentence of its comment.
"""
import difflib
import pathlib
import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from tools.chapters import all_chapters
from course import tasks, work

ALIKE = 0.25  # least share of common lines for a comparison line by line
CONTEXT = 2
CALL = re.compile(r"\b(?:cuda|cu|nccl|cublas)[A-Z]\w+(?=\()|\bptx::\w+(?=\()")
HELPER = re.compile(r'#include "overlap/(gpu/\w+\.hpp)"')
COLOURS = {"+": "32", "-": "31", "@": "36"}


def lesson(path: pathlib.Path) -> List[str]:
    """The lines of a header that are compared."""
    text = tasks.blank.without_markers(path.read_text(encoding="utf-8"), str(path))
    lines = [line.rstrip() for line in text.splitlines() if not re.match(r"#(include|pragma once)", line)]
    return [line for number, line in enumerate(lines) if line or number and lines[number - 1]]


def headers(chapter: pathlib.Path) -> List[pathlib.Path]:
    """A chapter's lesson headers, without experiments."""
    return sorted(chapter.glob("*.cuh"))


def partner(lines: Sequence[str], others: Dict[pathlib.Path, List[str]]) -> Tuple[Optional[pathlib.Path], float]:
    """The header that shares most lines, and the share of common lines."""
    def alike(other: Sequence[str]) -> float:
        return difflib.SequenceMatcher(None, [line.strip() for line in lines if line.strip()],
                                       [line.strip() for line in other if line.strip()], autojunk=False).ratio()
    rated = [(alike(other), path) for path, other in others.items()]
    return (max(rated)[1], max(rated)[0]) if rated else (None, 0)


def parts(lines: Sequence[str]) -> Iterator[str]:
    """The public names of a header, each with the first sentence of its comment."""
    comment = ""
    for line in lines:
        text = line.strip()
        if text.startswith("///"):
            comment += " " + text[3:].strip()
            continue
        if comment and text and not text.startswith(("template", "//")):
            sentence = re.split(r"(?<=\.)\s", comment.strip().removeprefix("Collective. "))[0]
            yield f"  {text.rstrip(' {;,')}\n      {sentence}"
        if not text.startswith("template"):
            comment = ""


def come_and_go(chapter: pathlib.Path, before: pathlib.Path) -> Iterator[str]:
    """Calls that only the chapter's lessons make, then calls that only the other chapter's make."""
    def found(pattern: "re.Pattern[str]", folder: pathlib.Path) -> Dict[str, None]:
        return {name: None for path in headers(folder) for name in pattern.findall(path.read_text(encoding="utf-8"))}
    for title, pattern in (("calls", CALL), ("helpers", HELPER)):
        now, then = found(pattern, chapter), found(pattern, before)
        for words, names in ((f"new {title}", [name for name in now if name not in then]),
                             (f"{title} that are gone", [name for name in then if name not in now])):
            if names:
                yield f"{words}: {', '.join(names)}"


def coloured(line: str, colours: bool) -> str:
    """A line of a diff for a terminal."""
    code = COLOURS.get(line[:1]) if colours else None
    return f"\033[{code}m{line}\033[0m" if code else line


def compared(chapter: pathlib.Path, before: pathlib.Path, colours: bool) -> Iterator[str]:
    others = {path: lesson(path) for path in headers(before)}
    for path in headers(chapter):
        lines = lesson(path)
        other, alike = partner(lines, others)
        if other is None or alike < ALIKE:
            code = sum(1 for line in lines if line.strip() and not line.strip().startswith("//"))
            yield f"\n=== {path.name} is new: {code} lines of code. Its parts:\n"
            yield from parts(lines)
            continue
        changes = list(difflib.unified_diff(others[other], lines, f"{before.name}/{other.name}", f"{chapter.name}/{path.name}",
                                            n=CONTEXT, lineterm=""))
        new = sum(1 for line in changes[2:] if line.startswith("+"))
        gone = sum(1 for line in changes[2:] if line.startswith("-"))
        yield f"\n=== {path.name} against {before.name}/{other.name}: {new} lines new, {gone} gone\n"
        yield from (coloured(line, colours) for line in changes)


def shown(chapter: str, colours: bool) -> Iterator[str]:
    """The lines to print."""
    folder = work.REPOSITORY / "chapters"
    manifest = all_chapters()[chapter]
    if not manifest.builds_on:
        yield f"{chapter} builds on no chapter: all of it is new"
        return
    before = manifest.builds_on[0]
    yield f"{chapter}: {manifest.idea}\nIt builds on {', '.join(manifest.builds_on)}; compared with {before}."
    yield from come_and_go(folder / chapter, folder / before)
    yield from compared(folder / chapter, folder / before, colours)
