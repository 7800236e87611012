"""The site's search: Doxygen 1.9.4 finds pages by the beginning of their titles and names of sources; this adds the headings of the
concept pages, such as the glossary's terms, and the calls of their tables."""
import html
import pathlib
import re
from typing import Dict, List, NamedTuple

from links import headings_of
from site_filter import heading_id, page_name

PAGES = ("docs/*.md",)  # whose headings are found
_SECTIONS = re.compile(r"^  0: \"([^\"]*)\"", re.MULTILINE)  # of everything: the first letters that there are
_CALL = re.compile(r"^\| `([\w:]+)` \|", re.MULTILINE)


class Entry(NamedTuple):
    """What is found: its title, the page that it stands in, and where that leads in the site."""

    title: str
    page: str
    target: str


def entries(root: pathlib.Path) -> List[Entry]:
    """All headings below the title, and all calls, of the concept pages."""
    found = []
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        page = path.relative_to(root)
        name = page_name(pathlib.PurePosixPath(page))
        (title, _), *headings = [(re.sub(r"[`*]", "", text[heading.start(2):heading.end(2)]), fragment)
                                 for heading, fragment in headings_of(text)]
        found += [Entry(heading, title, f"{name}.html#{heading_id(pathlib.PurePosixPath(page), fragment)}")
                  for heading, fragment in headings]
        found += [Entry(call, title, f"{name}.html") for call in _CALL.findall(text)]
    return found


def search_id(title: str) -> str:
    """What Doxygen's search.js makes of words that are looked for (convertToId)."""
    return "".join(char if re.fullmatch(r"[a-z0-9\x80-\uffff]", char) else f"_{ord(char):02x}" for char in title.lower())


def add_to_search(site: pathlib.Path, more: List[Entry]) -> None:
    """Adds entries to the search of the site's folder html: each to the file of its first letter."""
    index = site / "search" / "searchdata.js"
    text = index.read_text(encoding="utf-8")
    section = _SECTIONS.search(text)
    if section is None:
        raise ValueError("search/searchdata.js has no section 0: another Doxygen?")
    letters = section.group(1)
    by_letter: Dict[str, List[Entry]] = {}
    for entry in more:
        by_letter.setdefault(entry.title[0].lower(), []).append(entry)
    for letter, group in sorted(by_letter.items()):
        if letter not in letters:
            letters += letter
            page = (site / "search" / "all_0.html").read_text(encoding="utf-8")
            number = f"all_{len(letters) - 1:x}"
            (site / "search" / f"{number}.html").write_text(page.replace("all_0.js", f"{number}.js"), encoding="utf-8")
            (site / "search" / f"{number}.js").write_text("var searchData=\n[\n];\n", encoding="utf-8")
        _add(site / "search" / f"all_{letters.index(letter):x}.js", group)
    index.write_text(text.replace(section.group(0), section.group(0).replace(section.group(1), letters)), encoding="utf-8")


def _add(path: pathlib.Path, group: List[Entry]) -> None:
    """Adds entries to a file of the search, which stays sorted."""
    lines = path.read_text(encoding="utf-8").splitlines()
    old = [line.rstrip(",") for line in lines if line.startswith("  [")]
    # Behind an entry's id stands its number in the file; any other that is used once does as well.
    new = [f"  ['{search_id(entry.title)}_{len(old) + number}',['{_quoted(entry.title)}',"
           f"['../{entry.target}',1,'{_quoted(entry.page)}']]]" for number, entry in enumerate(group)]
    path.write_text("var searchData=\n[\n" + ",\n".join(sorted(old + new)) + "\n];\n", encoding="utf-8")


def _quoted(text: str) -> str:
    return html.escape(text, quote=False).replace("'", "&apos;")
