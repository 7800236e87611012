#!/usr/bin/env python3
"""Doxygen's filter for the files of the site (docs/Doxyfile): prints the file as Doxygen should read it.

Every line keeps its number. In a page
- each link becomes one to a stand-in host, with a path from the repository's root; tools/build_site.py turns it into a
  link inside the site when all its pages are there,
- each heading gets an id of its own, so that links can lead to it,
- what this Doxygen misreads is written in another way: a fold of several paragraphs, code with an apostrophe, bold code.
A notebook becomes such a page: code, text outputs and pictures in order (tools/build_site.py takes a picture out of the file).
In a source the comment at its top becomes the description of the file.
"""
import json
import pathlib
import re
import sys
from typing import Iterator, Tuple

from links import REPOSITORY, code_of, headings_of, links_of, masked, target_of

HOST = "https://repository.invalid/"

_FOLD = re.compile(r"^ *(<details><summary>.*</summary>|</details>)$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


def page_name(page: pathlib.PurePosixPath) -> str:
    """The name of a page in the site, from its path in the repository: README.md is the page of its folder."""
    parts = page.parts[:-1] if page.name == "README.md" else (*page.parts[:-1], page.stem)
    return re.sub(r"\W", "_", "_".join(parts)) or "index"


def heading_id(page: pathlib.PurePosixPath, name: str) -> str:
    """The id of a heading, of all pages together."""
    return f"{page_name(page)}--{name}"


def filtered_page(text: str, page: pathlib.Path, root: pathlib.Path = REPOSITORY) -> str:
    """A Markdown page for Doxygen."""
    path = pathlib.PurePosixPath(page.relative_to(root))
    changes = []  # (begin, end, new text)
    for link in links_of(text):
        if link.is_relative:
            target = pathlib.PurePosixPath(target_of(link, page).relative_to(root))
            fragment = f"#{link.fragment}" if link.fragment else ""
            changes.append((link.begin, link.end, f"{HOST}{target}{fragment}"))
    for number, (heading, name) in enumerate(headings_of(text)):
        label = page_name(path) if number == 0 else heading_id(path, name)
        if label != "index":  # Doxygen knows the first page by its name
            changes.append((heading.end(2), heading.end(2), f" {{#{label}}}"))
    comments = masked(text, comments=False)
    for comment in re.finditer(r"<!--.*?-->", comments, re.DOTALL):
        changes.append((*comment.span(), "\n" * comment.group(0).count("\n")))
    changes += _read_rightly(text, comments)
    for begin, end, new in sorted(changes, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def _read_rightly(text: str, without_code: str) -> Iterator[Tuple[int, int, str]]:
    """Changes to what Doxygen 1.9.4 misreads, which leave it what it is."""
    for fold in _FOLD.finditer(without_code):  # else it would end with its first paragraph
        yield fold.start(1), fold.start(1), "@htmlonly[block]"
        yield fold.end(), fold.end(), "@endhtmlonly"
    for code in code_of(text):
        if "'" in code.group(2) and code.group(1) == "`":  # else the apostrophe would end it
            yield code.start(), code.start(), "`"
            yield code.end(), code.end(), "`"
    for bold in _BOLD.finditer(without_code):
        if "`" in text[bold.start():bold.end()]:
            yield bold.start(), bold.start(1), "<b>"
            yield bold.end(1), bold.end(), "</b>"


def notebook_page(text: str, path: pathlib.PurePosixPath) -> str:
    """A notebook as Markdown."""
    parts, pictures = [], 0
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```py\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f'<img src="{HOST}{path}#picture-{pictures}" alt="plot {pictures + 1} of this notebook"/>')
                pictures += 1
            else:
                parts.append("```\n" + "".join(output.get("text", data.get("text/plain", ""))).rstrip() + "\n```")
    return "\n\n".join(parts) + "\n"


def filtered_source(text: str) -> str:
    """A header or a program for Doxygen: `@header` is an alias in the Doxyfile that describes the file."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("//"):
            break
        lines[number] = line.replace("//", "///", 1) if number else line.replace("//", "/// @header", 1)
    return "\n".join(lines)


def main() -> int:
    path = pathlib.Path(sys.argv[1]).resolve()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = notebook_page(text, pathlib.PurePosixPath(path.relative_to(REPOSITORY)))
    sys.stdout.write(filtered_page(text, path) if path.suffix in (".md", ".ipynb") else filtered_source(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
