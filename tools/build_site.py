#!/usr/bin/env python3
"""Builds the documentation site: tools/build_site.py FOLDER writes FOLDER/html/index.html.

Doxygen makes pages and sources (docs/Doxyfile, through tools/site_filter.py). This script then leads each link of a
page to its place in the site: to another page, to Doxygen's view of a source, to a copy of a picture or, for files and
folders that Doxygen does not show, to a plain page that it writes itself. Timelines get a script (docs/timeline.js) by which
time can be stretched, figures in tables a class, and all of Doxygen's pages docs/site.js. Headings of the concept pages are added to the search
(site_search.py), whose list gets docs/search.css. At the end all links of the site are checked.
"""
import base64
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree
from typing import Dict, List, Set

from links import NOT_OURS, REPOSITORY, bad_html_links
from site_filter import HOST, heading_id, page_name
from site_search import add_to_search, entries

PICTURES = (".svg", ".png", ".jpg")
SCRIPT = "site.js"
TIMELINE = re.compile(r"docs/pictures/.*_(?:timeline|openings)\.svg")
_IMAGE = re.compile(r'<img src="(files/[^"]+)" alt="([^"]*)"[^>]*>')
_FIGURE = re.compile(r'<td class="(markdownTableBody\w+)">(?=[\d.]+[^<>]{0,24}</td>)')
_LINK = re.compile(rf'(href|src)="{re.escape(HOST)}([^"]*)"')

# Doxygen offers this link also where all nested types are private, and then writes no such section.
_NESTED = re.compile(r'<a href="#nested-classes">[^<]*</a>(?: &#124;)?\n?')

_PLAIN_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<link rel="stylesheet" href="{up}theme.css"></head>
<body class="plain"><p><a href="{up}index.html">Overlap</a> / {trail}</p>
{content}
</body></html>
"""


class SiteError(Exception):
    """The site cannot be built: what is wrong, in lines of text."""


class Site:
    """The pages that Doxygen has written, and those that are added to them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.html = folder / "html"
        self.pages: Dict[str, str] = {}    # path in the repository -> file of the site
        self.sources: Dict[str, str] = {}
        self.written: Set[pathlib.Path] = set()
        for compound in xml.etree.ElementTree.parse(folder / "tags.xml").getroot():
            name, file = compound.findtext("name", ""), compound.findtext("filename", "")
            if compound.get("kind") == "page":
                self.pages[name] = file
            elif compound.get("kind") == "file":
                path = pathlib.Path(compound.findtext("path", ""), name)
                self.sources[path.relative_to(REPOSITORY).as_posix()] = file.replace(".html", "_source.html")

    def place_of(self, path: pathlib.PurePosixPath, fragment: str) -> str:
        """Where a path of the repository is found in the site, as a link from its root."""
        is_folder = (REPOSITORY / path).is_dir()
        page = path / "README.md" if is_folder else path
        if page.suffix == ".ipynb" and fragment.startswith("picture-"):
            return self._picture_of(page, int(fragment.rpartition("-")[2]))
        if page.suffix in (".md", ".ipynb") and page_name(page) in self.pages:
            return self.pages[page_name(page)] + (f"#{heading_id(page, fragment)}" if fragment else "")
        if path.as_posix() in self.sources:
            return self.sources[path.as_posix()] + (f"#l{int(fragment[1:]):05}" if fragment else "")
        if path.suffix in PICTURES:
            return self._copy_of(path)
        return self._plain_page(path, is_folder) + (f"#{fragment}" if fragment else "")

    def _copy_of(self, path: pathlib.PurePosixPath) -> str:
        copy = self.html / "files" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if TIMELINE.fullmatch(str(path)):
            picture = (REPOSITORY / path).read_text(encoding="utf-8")
            script = (REPOSITORY / "docs" / "timeline.js").read_text(encoding="utf-8")
            copy.write_text(picture.replace("</svg>", f"<script><![CDATA[\n{script}]]></script>\n</svg>"), encoding="utf-8")
        else:
            shutil.copyfile(REPOSITORY / path, copy)
        return f"files/{path}"

    def _picture_of(self, notebook: pathlib.PurePosixPath, number: int) -> str:
        """Writes a picture that a notebook holds."""
        cells = json.loads((REPOSITORY / notebook).read_text(encoding="utf-8"))["cells"]
        pictures = [output["data"]["image/png"] for cell in cells for output in cell.get("outputs", [])
                    if "image/png" in output.get("data", {})]
        place = f"files/{notebook.with_suffix('')}_{number}.png"
        (self.html / place).parent.mkdir(parents=True, exist_ok=True)
        (self.html / place).write_bytes(base64.b64decode(pictures[number]))
        return place

    def _plain_page(self, path: pathlib.PurePosixPath, is_folder: bool) -> str:
        """Writes the page of a file or of a folder, and of all that it lists."""
        place = f"files/{path}/index.html" if is_folder else f"files/{path}.html"
        target = self.html / place
        if target in self.written:
            return place
        self.written.add(target)
        up = "../" * (len(pathlib.PurePosixPath(place).parts) - 1)
        content = self._listing(path, up) if is_folder else _numbered((REPOSITORY / path).read_bytes())
        trail = html.escape(path.as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_PLAIN_PAGE.format(title=trail, up=up, trail=trail, content=content), encoding="utf-8")
        return place

    def _listing(self, folder: pathlib.PurePosixPath, up: str) -> str:
        lines: List[str] = []
        for entry in sorted((REPOSITORY / folder).iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
            if entry.name not in NOT_OURS:
                name = html.escape(entry.name + ("/" if entry.is_dir() else ""))
                place = urllib.parse.quote(self.place_of(folder / entry.name, ""))
                lines.append(f'<li><a href="{up}{place}">{name}</a></li>')
        return "<ul>\n" + "\n".join(lines) + "\n</ul>"

    def lead_links(self) -> None:
        """Leads all links of Doxygen's pages from the stand-in host into the site."""
        for page in sorted(self.html.rglob("*.html")):
            if page not in self.written:
                text = page.read_text(encoding="utf-8")
                new = _IMAGE.sub(_framed, _LINK.sub(self._led, text))
                new = _FIGURE.sub(r'<td class="\1 figure">', new)
                if page.parent == self.html:  # those below are the windows of the search
                    new = new.replace("</head>", f'<script src="{SCRIPT}"></script>\n</head>', 1)
                if 'name="nested-classes"' not in text:
                    new = _NESTED.sub("", new)
                if new != text:
                    page.write_text(new, encoding="utf-8")

    def _led(self, link: re.Match) -> str:
        path, _, fragment = urllib.parse.unquote(html.unescape(link.group(2))).partition("#")
        if not (REPOSITORY / path).exists():
            raise SiteError(f"a page links to {path}, which does not exist")
        return f'{link.group(1)}="{html.escape(self.place_of(pathlib.PurePosixPath(path), fragment))}"'


def _framed(image: re.Match) -> str:
    """A picture in a frame, in which it scrolls on a phone; a timeline as a document of its own, so that its script runs."""
    place, words = image.groups()
    picture = image.group(0)
    if TIMELINE.fullmatch(place.partition("/")[2]):
        picture = f'<object type="image/svg+xml" data="{place}" role="img" aria-label="{words}" class="timeline">{picture}</object>'
    return f'<span class="picture">{picture}</span>'


def chapter_pages() -> str:
    """The pages of all chapters in the order of reading: a chapter, then its experiments. (Doxygen would turn them round.)"""
    pages = sorted((REPOSITORY / "chapters").rglob("README.md"), key=lambda page: page.parent)
    return " ".join(page.relative_to(REPOSITORY).as_posix() for page in pages)


def _numbered(data: bytes) -> str:
    """A file's text as HTML, each line with its number; only the size of a binary file."""
    if b"\0" in data:
        return f"<p>{len(data)} bytes</p>"
    lines = data.decode("utf-8", errors="replace").splitlines()
    return "<pre>" + "\n".join(f'<span id="L{number}"><a href="#L{number}">{number:5}</a>  {html.escape(line)}</span>'
                               for number, line in enumerate(lines, start=1)) + "</pre>"


def build(folder: pathlib.Path) -> pathlib.Path:
    """Builds the site in `folder`; returns its first page. Throws SiteError."""
    folder = folder.resolve()
    shutil.rmtree(folder / "html", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OVERLAP_SITE": str(folder), "OVERLAP_CHAPTERS": chapter_pages()}
    run = subprocess.run(["doxygen", "docs/Doxyfile"], cwd=REPOSITORY, env=environment,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode != 0:
        warnings = run.stdout.replace(f"{REPOSITORY}/", "").strip().splitlines()
        raise SiteError("\n".join(warnings + [f"doxygen's exit status is {run.returncode}"]))
    site = Site(folder)
    shutil.copyfile(REPOSITORY / "docs" / SCRIPT, site.html / SCRIPT)
    site.lead_links()
    add_to_search(site.html, entries(REPOSITORY))
    with (site.html / "search" / "search.css").open("a", encoding="utf-8") as style:
        style.write((REPOSITORY / "docs" / "search.css").read_text(encoding="utf-8"))
    bad = list(bad_html_links(site.html))
    if bad:
        raise SiteError("\n".join(bad))
    return site.html / "index.html"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(build(pathlib.Path(sys.argv[1])))
    except (SiteError, OSError, ValueError) as error:
        print(f"build_site.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
