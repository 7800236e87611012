"""Checks links: those of Markdown files (tools/pages/tests/links_test.py), and those of the generated site (build_site.py).

A relative link must lead to a file or folder of this repository (of the site), and its fragment must name a part of it: a
heading of a page (`#cost-card`), a line of another file (`#L12`), an element's id (HTML). Links to other hosts are not
checked.
"""
import dataclasses
import html.parser
import os
import pathlib
import re
import urllib.parse
from typing import Dict, Iterator, List, Set, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".deps", "build", "__pycache__", "work"}

_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# [text](target), ![text](target "title"); [name]: target; href="target" and src="target"
_LINK = re.compile(r"\]\(\s*<?([^\s()<>]+)>?(?:\s+\"[^\"]*\")?\s*\)"
                   r"|^ {0,3}\[[^\]]+\]:\s+<?([^\s<>]+)|\b(?:href|src)=[\"']([^\"']+)[\"']", re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Link:
    """A link of a Markdown text: the index of its target in the text, and the target."""

    begin: int
    end: int
    target: str

    @property
    def path(self) -> str:
        """The part before '#', decoded."""
        return urllib.parse.unquote(self.target.partition("#")[0])

    @property
    def fragment(self) -> str:
        """The part behind '#'."""
        return self.target.partition("#")[2]

    @property
    def is_relative(self) -> bool:
        """False for https://host/..., mailto:... and the like."""
        return not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", self.target)


def masked(text: str, comments: bool = True) -> str:
    """The text with all code (and HTML comments) replaced by blanks, so that indices stay valid."""
    text = _FENCE.sub(_blank, text)
    if comments:
        text = _COMMENT.sub(_blank, text)
    return _CODE.sub(_blank, text)


def _blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group(0))


def links_of(text: str) -> List[Link]:
    """All links of a Markdown text, images included, in order."""
    found = []
    for match in _LINK.finditer(masked(text)):
        group = next(number for number in (1, 2, 3) if match.group(number) is not None)
        found.append(Link(match.start(group), match.end(group), match.group(group)))
    return found


def headings_of(text: str) -> List[Tuple[re.Match, str]]:
    """Each heading of a Markdown text, and the fragment that leads to it, as GitHub makes it."""
    found: List[Tuple[re.Match, str]] = []
    used: Dict[str, int] = {}
    for match in _HEADING.finditer(_FENCE.sub(_blank, text)):
        title = text[match.start(2):match.end(2)]
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        used[name] = used.get(name, -1) + 1
        found.append((match, f"{name}-{used[name]}" if used[name] else name))
    return found


def markdown_files(root: pathlib.Path = REPOSITORY) -> List[pathlib.Path]:
    """All Markdown files of the repository, without those in folders that a build may change."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        found += [pathlib.Path(folder, name) for name in files if name.endswith(".md")]
    return sorted(found)


def target_of(link: Link, page: pathlib.Path) -> pathlib.Path:
    """The file or folder that a relative link of a page leads to."""
    return (page.parent / link.path).resolve() if link.path else page


def bad_markdown_links(page: pathlib.Path, root: pathlib.Path = REPOSITORY) -> Iterator[str]:
    """One sentence, with file and line, for each bad link of a page."""
    text = page.read_text(encoding="utf-8")
    for link in links_of(text):
        if not link.is_relative:
            continue
        problem = _problem(link, target_of(link, page), root.resolve())
        if problem:
            yield f"{page.relative_to(root)}:{text.count(chr(10), 0, link.begin) + 1}: {link.target}: {problem}"


def _problem(link: Link, target: pathlib.Path, root: pathlib.Path) -> str:
    """The error of a link that leads to `target`; empty if it is correct."""
    if link.target.startswith("/"):
        return "an absolute path"
    if root != target and root not in target.parents:
        return "outside the repository"
    if not target.exists():
        return "does not exist"
    if NOT_OURS & set(target.relative_to(root).parts):
        return "is not part of the repository"
    if not link.fragment:
        return ""
    if target.is_dir():
        return "a folder has no places"
    text = target.read_text(encoding="utf-8", errors="replace")
    if target.suffix == ".md":
        names = [name for _, name in headings_of(text)]
        return "" if link.fragment in names else "there is no such heading"
    line = re.fullmatch(r"L([1-9]\d*)", link.fragment)
    if line is None:
        return "a place in a file reads #L12"
    return "" if int(line.group(1)) <= text.count("\n") else "the file has fewer lines"


class _Page(html.parser.HTMLParser):
    """The links of an HTML page, and the places in it that links can lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: List[Tuple[int, str]] = []
        self.places: Set[str] = set()

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, str]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "data") and value and not (name == "href" and tag == "base"):
                self.targets.append((self.getpos()[0], value))
            elif name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)


def bad_html_links(folder: pathlib.Path) -> Iterator[str]:
    """One sentence, with file and line, for each bad link of the HTML pages in a folder."""
    pages: Dict[pathlib.Path, _Page] = {}
    folder = folder.resolve()
    for path in sorted(folder.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        for line, target in page.targets:
            link = Link(0, 0, target)
            if not link.is_relative or target.startswith("//"):
                continue
            where = f"{path.relative_to(folder)}:{line}: {target}"
            goal = target_of(Link(0, 0, link.target.split("?")[0]), path)
            if folder not in goal.parents and goal != folder:
                yield f"{where}: outside the site"
            elif not goal.is_file():
                yield f"{where}: does not exist"
            elif link.fragment and goal in pages and urllib.parse.unquote(link.fragment) not in pages[goal].places:
                yield f"{where}: there is no such place"
