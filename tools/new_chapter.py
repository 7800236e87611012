#!/usr/bin/env python3
"""./lab new: writes the skeleton of a chapter.

  tools/new_chapter.py NN_name     for example 22_my_idea

The skeleton builds, runs and verifies its result: it broadcasts all rows of A to every rank, then computes one GEMM. It has a
manifest, a page, a test of its header, one of its program, and a mutant. No other file changes, because all lists of chapters
are made from the folders. The templates are in tools/new_chapter. tools/pages/update_pages.py then writes the page's output and
the ladder.
"""
import argparse
import pathlib
import re
import sys
from typing import Dict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # the repository's root
from tools.chapters import CHAPTERS, FOLDER, ManifestError, read_chapters  # noqa: E402
from tools.pages.update_pages import BLOCK, generate  # noqa: E402

REPOSITORY = CHAPTERS.parent
PATTERN = pathlib.Path(__file__).resolve().parent / "new_chapter"


class Refused(Exception):
    """The chapter cannot be made: one sentence."""


def places(name: str) -> Dict[str, pathlib.Path]:
    """The path of each file of the chapter, by its template."""
    chapter = pathlib.Path("chapters", name)
    return {"chapter.json": chapter / "chapter.json", "lesson.cuh": chapter / f"{name[3:]}.cuh", "main.cu": chapter / "main.cu",
            "page.in": chapter / "README.md", "test.cu": chapter / "tests" / f"{name[3:]}_test.cu",
            "program.py": chapter / "tests" / f"{name[3:]}_program.py",
            "rows_of_the_first_rank.mutant": chapter / "mutants" / "rows_of_the_first_rank.mutant"}


def filled(text: str, name: str) -> str:
    """A template, filled in for the chapter `name`."""
    words = name[3:].split("_")
    for old, new in (("NN_name", name), ("lesson.cuh", f"{name[3:]}.cuh"), ("NewChapter", "".join(word.title() for word in words)),
                     ("new_chapter", name[3:]), ("New chapter", " ".join(words).capitalize()), ("new chapter", " ".join(words)),
                     ("NN", name[:2])):
        text = text.replace(old, new)
    return text


def without_a_build(block: re.Match) -> str:
    """A generated block of the page, if it needs no build."""
    kind, argument = block.group(1), block.group(2)
    text = generate(kind, argument) if kind in ("code", "results") else block.group(3)
    return f"<!-- {kind} {argument} -->\n{text}<!-- /{kind} -->"


def write(name: str) -> None:
    """Writes all files. Throws Refused, and ManifestError if another chapter's manifest is wrong."""
    if not FOLDER.fullmatch(name) or not name[3].isalpha():
        raise Refused(f"'{name}' is no name of a chapter: two digits and words in small letters, such as 22_my_idea")
    taken = {other[:2]: other for other in read_chapters(CHAPTERS)}
    if name[:2] in taken:
        raise Refused(f"there is a chapter {name[:2]} already: {taken[name[:2]]}")
    if name < min(taken.values()):
        raise Refused(f"'{name}' would come before the first chapter")
    files = {PATTERN / source: REPOSITORY / place for source, place in places(name).items()}
    for place in files.values():
        if place.exists():
            raise Refused(f"{place.relative_to(REPOSITORY)} is there already")
    for source, place in files.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(filled(source.read_text(encoding="utf-8"), name), encoding="utf-8")
        print(place.relative_to(REPOSITORY))
    page = files[PATTERN / "page.in"]
    page.write_text(BLOCK.sub(without_a_build, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./lab new", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NN_name")
    try:
        write(parser.parse_args().name)
    except (Refused, ManifestError, OSError) as error:
        print(f"new_chapter.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
