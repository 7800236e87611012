"""A chapter's page for a hand-out: without the solution's code, and with links that work from the hand-out."""
import os
import pathlib
import re
from typing import Dict, List

from tools.pages.excerpts import excerpt_of
from course import tasks, variation, work

_CODE = re.compile(r"^<!-- code (\S+) (.*?) -->\n```cpp\n(.*?)^```\n<!-- /code -->$", re.DOTALL | re.MULTILINE)
_BUG = re.compile(r"^<!-- mutant (\d\d)\w* (\w+) -->\n.*?^<!-- /mutant -->$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?\[[^\]]*\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_EXERCISES = re.compile(r"^## Exercises\n.*?(?=^## )", re.DOTALL | re.MULTILINE)


def _code_lines(text: str) -> List[str]:
    return [line.strip() for line in text.splitlines()]


def withheld(chapter: str, file: str, way: variation.Variation) -> List[str]:
    """The lines of code that the hand-out leaves out of a header."""
    text = way.apply((work.REPOSITORY / "chapters" / chapter / file).read_text(encoding="utf-8")).splitlines()
    return [line.strip() for region in tasks.blank.regions_of(text, file) for line in text[region.content:region.closing]
            if len(line.strip()) > 3]


def without_answers(chapter: str, folder: pathlib.Path, blanks: Dict[str, str], way: variation.Variation) -> str:
    """The page of a hand-out in `folder` with headers `blanks`, in the words of the student's variation."""
    source = work.REPOSITORY / "chapters" / chapter / "README.md"
    text = way.apply(source.read_text(encoding="utf-8"))

    def code(match: "re.Match[str]") -> str:
        file = pathlib.Path(match.group(1))
        if file.parent.name != chapter or file.name not in blanks:
            return match.group()
        if not set(withheld(chapter, file.name, way)) & set(_code_lines(match.group(3))):
            return match.group()
        lines = blanks[file.name].splitlines()
        found = [number for number, line in enumerate(lines) if match.group(2) in line]
        return excerpt_of(lines, found[0]).rstrip() if found else f"*This is yours to write: see `{file.name}`.*"

    text = _CODE.sub(code, text)
    text = _BUG.sub(lambda match: f"`./lab break {match.group(1)}` plants errors to find.", text)
    text = _EXERCISES.sub("", text)

    def link(match: "re.Match[str]") -> str:
        target = match.group(2)
        if target in blanks:
            return match.group()
        path = os.path.relpath(source.parent / target, folder).replace(" ", "%20")
        return f"{match.group(1)}{path}{match.group(3) or ''})"

    text = _LINK.sub(link, text)
    if way.pairs:
        title, _, rest = text.partition("\n")
        text = f"{title}\n\n*Your variation: {way.kind}, {way.name}. The pictures and outputs are the chapter's own.*\n{rest}"
    return text
