#!/usr/bin/env python3
"""Builds the documentation site: tools/pages/build_site.py FOLDER writes FOLDER/html/index.html.

Doxygen writes the reference and the sources into FOLDER/pages/reference (docs/site/Doxyfile). The Markdown files are staged in
FOLDER/pages, each at its path in the repository, in the dialect that MkDocs reads. A link to a source leads to Doxygen's page
of it; any other file or folder gets a plain page below FOLDER/pages/files. MkDocs builds the site (docs/site/mkdocs.yml).
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
from typing import Any, Dict, List, Set, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools import chapters  # noqa: E402
from tools.pages.links import NOT_OURS, REPOSITORY, bad_html_links, headings_of, links_of, markdown_files, masked, target_of  # noqa: E402

SITE = REPOSITORY / "docs" / "site"
THEMES = "/usr/share/mkdocs/themes"  # Debian's folder of Material, which MkDocs does not search
COPIED = (".svg", ".png", ".jpg", ".json")  # files that browsers show without a page around them
PLAIN = "---\ntemplate: plain.html\n---\n# {}\n\n"  # the head of the page of a file or folder

# The sidebar: the beginnings of the paths of each group's pages, in the order of reading. The chapters follow the first group.
GROUPS = {
    "Begin": ["docs/setting_up", "docs/primer", "docs/reading_output"],
    "What chapters share": ["docs/ranks", "docs/cluster", "docs/sparse", "docs/planner", "docs/glossary", "docs/calls", "docs/troubleshooting"],
    "Virtual GPUs": ["virtual_gpu/", "docs/gallery", "examples/"],
    "Teaching": ["docs/teaching", "docs/grading"],
    "Notebooks": ["notebooks/"],
    "Articles": ["docs/articles/"],
    "Contributing": ["CONTRIBUTING", ""],  # and all others
}

# Names that need no comment: members of types, and names that chapters do not use.
_NEEDS_NONE = re.compile(r"(?: of (?:class|struct|union) |\bvirtual_gpu/.*warning|\.cpp:).* is not documented")
_SHOWS = re.compile(r"<title>Overlap: (.*) Source File</title>")
_SUMMARY = re.compile(r'<a href="#([\w-]+)">[^<]*</a>(?: &#124;)?\n')  # Doxygen 1.9.4 writes one for hidden sources, too
_FOLD = re.compile(r"<details><summary>(.*)</summary>$")
_ITEM = re.compile(r"(?:[-*+]|\d+\.) +")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def is_page(path: pathlib.PurePath) -> bool:
    """True if a file is a page of the site. Tasks are not, because they hold solutions: ./lab hint shows them."""
    return path.suffix == ".md" and not {".github", "assignment"} & set(path.parts)


def is_timeline(picture: pathlib.Path) -> bool:
    """True for a timeline of tools/pages/draw_timeline.py."""
    return picture.suffix == ".svg" and '<rect class="bar' in picture.read_text(encoding="utf-8")


def dialect(text: str) -> str:
    """Rewrites GitHub's Markdown for Python-Markdown: an item's text is indented by four columns, a list follows an empty line,
    and a fold becomes ??? with its text indented."""
    lines: List[str] = []
    inside: List[Tuple[int, bool]] = []  # open items and folds: the column of their text, and whether it is an item
    fenced = False
    for line in text.split("\n"):
        words = line.lstrip(" ")
        column = len(line) - len(words)
        in_list = bool(inside) and inside[-1][1]
        while words and not fenced and inside and column < inside[-1][0]:
            inside.pop()
        indent = " " * (4 * len(inside) + max(0, column - (inside[-1][0] if inside else 0)))
        item, fold = (None, None) if fenced else (_ITEM.match(words), _FOLD.match(words))
        if words.startswith("```"):
            fenced = not fenced
        elif words == "</details>":
            inside.pop()
            words = ""
        elif fold:
            lines.append("")
            words = '??? quote "{}"'.format(fold.group(1).replace('"', "&quot;"))
            inside.append((column, False))
        elif item:
            if not in_list and lines and lines[-1]:
                lines.append("")
            inside.append((column + item.end(), True))
        lines.append(indent + words if words else "")
    return "\n".join(lines)


class Staging:
    """The staging folder, from which MkDocs makes the site. `sources`: Doxygen's page of each source."""

    def __init__(self, folder: pathlib.Path, sources: Dict[str, str]) -> None:
        self.folder = folder
        self.sources = sources
        self.pages: List[str] = []
        self.plain: Set[pathlib.PurePosixPath] = set()  # files and folders that have a plain page

    def add_pages(self) -> None:
        """Stages all pages and notebooks, and the files that they link to."""
        for path in markdown_files(REPOSITORY) + sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
            name = path.relative_to(REPOSITORY)
            if path.suffix == ".ipynb" or is_page(name):
                text = path.read_text(encoding="utf-8")
                self.pages.append(name.with_suffix(".md").as_posix())
                self._write(self.pages[-1], dialect(self._led(text if path.suffix == ".md" else self._notebook(text, name), path)))
        for folder in [path for path in self.plain if (REPOSITORY / path).is_dir()]:
            self._write(self.place_of(folder), self._listing(folder))
        for file in [path for path in self.plain if (REPOSITORY / path).is_file()]:
            kind = "cpp" if file.suffix in (".cu", ".cuh", ".hpp", ".h", ".mutant") else file.suffix[1:] or "sh"
            text = (REPOSITORY / file).read_text(encoding="utf-8", errors="replace")
            self._write(self.place_of(file), PLAIN.format(file) + f'~~~~~~ {{.{kind} linenums="1"}}\n{text}\n~~~~~~\n')

    def _write(self, name: str, content: "str | bytes") -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def _notebook(self, text: str, name: pathlib.PurePath) -> str:
        """A notebook as Markdown: its code, text outputs and pictures, in order. Writes the pictures' files."""
        parts, pictures = [], 0
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            parts.append(source if cell["cell_type"] == "markdown" else f"```py\n{source}\n```")
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if "image/png" in data:
                    pictures += 1
                    self._write(f"{name.with_suffix('')}_{pictures}.png", base64.b64decode(data["image/png"]))
                    parts.append(f"![plot {pictures} of this notebook]({name.stem}_{pictures}.png)")
                else:
                    parts.append("```\n" + "".join(output.get("text", data.get("text/plain", ""))).rstrip() + "\n```")
        return "\n\n".join(parts) + "\n"

    def _led(self, text: str, page: pathlib.Path) -> str:
        """A page's text without comments, with links into the site, GitHub's anchors of headings, and pictures in frames."""
        changes = [(*comment.span(), "") for comment in re.finditer(r"<!--.*?-->", masked(text, comments=False), re.DOTALL)]
        changes += [(heading.end(2), heading.end(2), f" {{#{name}}}") for heading, name in headings_of(text)[1:]]  # not of the title
        for image in _IMAGE.finditer(masked(text)):
            begin, end = image.span()
            opening, closing, target = '<span class="frame">', "</span>", page.parent / image.group(2)
            if target.is_file() and is_timeline(target):  # a document of its own, so that its script runs
                words = html.escape(text[image.start(1):image.end(1)])
                opening += f'<object type="image/svg+xml" class="timeline" data="{image.group(2)}" role="img" aria-label="{words}">'
                closing = f"</object>{closing}"
            changes += [(begin, begin, opening), (end, end, closing)]
        for link in links_of(text):
            target = target_of(link, page)
            if link.is_relative and link.path and target.exists():
                place = self.place_of(pathlib.PurePosixPath(target.relative_to(REPOSITORY)), link.fragment)
                changes.append((link.begin, link.end, os.path.relpath(place, page.relative_to(REPOSITORY).parent)))
        for begin, end, new in sorted(changes, key=lambda change: change[:2], reverse=True):
            text = text[:begin] + new + text[end:]
        return text

    def place_of(self, path: pathlib.PurePosixPath, fragment: str = "") -> str:
        """The path in the staging folder of a path of the repository."""
        name, file = path.as_posix(), REPOSITORY / path
        page = path / "README.md" if (file / "README.md").is_file() else path.with_suffix(".md") if path.suffix == ".ipynb" else path
        if is_page(page):
            return f"{page}#{fragment}" if fragment else str(page)
        if name in self.sources:
            return f"reference/{self.sources[name]}" + (f"#l{int(fragment[1:]):05}" if fragment else "")
        shown = re.sub(r"(^|/)\.", r"\1", name)  # MkDocs ignores folders whose name begins with a dot
        if path.suffix in COPIED:
            script = b"<script><![CDATA[\n" + (SITE / "timeline.js").read_bytes() + b"]]></script>\n</svg>"
            self._write(shown, file.read_bytes().replace(b"</svg>", script) if is_timeline(file) else file.read_bytes())
            return shown
        self.plain.add(path)
        return f"files/{shown}/index.md" if file.is_dir() else f"files/{shown}.md" + (f"#__codelineno-0-{fragment[1:]}" if fragment else "")

    def _listing(self, folder: pathlib.PurePosixPath) -> str:
        """The page of a folder: its files, which all have pages, and its folders, which have pages only if a page links to
        them."""
        text = PLAIN.format(folder)
        for entry in sorted((REPOSITORY / folder).iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
            path = folder / entry.name
            if entry.is_file() or path in self.plain or (entry / "README.md").is_file():
                text += f"- [{entry.name}]({os.path.relpath(self.place_of(path), os.path.dirname(self.place_of(folder)))})\n"
            elif entry.name not in NOT_OURS:
                text += f"- {entry.name}/\n"
        return text

    def nav(self) -> List[Any]:
        """The sidebar: all pages, in the order of reading."""
        left = sorted(self.pages, key=lambda page: (page.count("/"), not page.endswith("README.md"), page))

        def take(prefix: str) -> List[str]:
            return [left.pop(left.index(page)) for page in left[:] if page.startswith(prefix)]

        overview = take("README.md")[0]
        parts = [{words.capitalize(): [{f"{each.number} {each.title.partition(':')[0]}": take(f"chapters/{each.name}/")}
                                       for each in chapters.all_chapters().values() if each.part == number]}
                 for number, words in enumerate(chapters.PARTS, start=1)]
        groups = [{title: [page for prefix in prefixes for page in take(prefix)]} for title, prefixes in GROUPS.items()]
        return [{"Overview": overview}, groups[0], *parts, *groups[1:], {"Reference and sources": "reference/index.html"}]


def refuse(problems: List[str]) -> None:
    """Prints the errors and ends the program if there are any."""
    if problems:
        sys.exit("build_site.py: " + "\n".join(problems))


def run(command: List[str], **variables: str) -> str:
    """The output of a program."""
    done = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        refuse([*re.findall("^(?!INFO|  - ).+", done.stdout, re.MULTILINE), f"the exit status of {command[0]} is {done.returncode}"])
    return done.stdout.replace(f"{REPOSITORY}/", "")


def name_by_text(reference: pathlib.Path) -> None:
    """Doxygen names a variable of JavaScript after each source. One that begins with a digit, of a chapter's folder, is no name,
    so the navigation finds it as a property of the window."""
    for script in reference.glob("[0-9]*.js"):
        script.write_text(re.sub(r"^var (\S+) =", r'window["\1"] =', script.read_text(encoding="utf-8")), encoding="utf-8")
    navigation = reference / "navtree.js"
    text, found = re.subn(r"return eval\((n\.replace\(.*\))\);", r"return window[\1];", navigation.read_text(encoding="utf-8"))
    refuse([] if found == 1 else ["navtree.js of this Doxygen looks up its data in another way"])
    navigation.write_text(text, encoding="utf-8")


def make_reference(folder: pathlib.Path) -> Dict[str, str]:
    """Runs Doxygen, which writes folder/pages/reference. Returns its page of each source."""
    said = run(["doxygen", "docs/site/Doxyfile"], OVERLAP_SITE=str(folder))
    refuse([line for line in said.splitlines() if line and not _NEEDS_NONE.search(line)])
    sources = {}
    for page in (folder / "pages" / "reference").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for title in _SHOWS.findall(text):
            sources[title] = page.name
        shown = _SUMMARY.sub(lambda link, text=text: link.group() if f'name="{link.group(1)}"' in text else "", text)
        page.write_text(shown, encoding="utf-8")
    return sources


def build(folder: pathlib.Path) -> pathlib.Path:
    """Builds the site in `folder`; returns its first page."""
    pages, site = folder / "pages", folder / "html"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    staging = Staging(pages, make_reference(folder))
    name_by_text(pages / "reference")
    staging.add_pages()
    settings = {"INHERIT": str(SITE / "mkdocs.yml"), "theme": {"custom_dir": str(SITE / "theme")}, "nav": staging.nav()}
    (folder / "mkdocs.yml").write_text(json.dumps(settings), encoding="utf-8")
    run(["mkdocs", "build", "--strict", "-f", str(folder / "mkdocs.yml")], PYTHONPATH=THEMES)
    (site / "404.html").unlink()  # its links are absolute, but the site may lie in a folder of its host
    index = site / "search" / "search_index.json"  # the search covers pages only
    found = json.loads(index.read_text(encoding="utf-8"))
    found["docs"] = [entry for entry in found["docs"] if not entry["location"].startswith("files/")]
    index.write_text(json.dumps(found), encoding="utf-8")
    refuse(list(bad_html_links(site)))
    return site / "index.html"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(pathlib.Path(sys.argv[1]).resolve()))
