#!/usr/bin/env python3
"""Checks that pages are short, have the same sections in the same order, and one sentence a line.

Every Markdown file: a title in the first line, and markers of generated blocks as update_pages.py reads them; no line of more
than 300 characters (targets of links not counted; tables may be longer), and one sentence a line, so that a diff shows the
changed sentences. (Sections "Sources" are exempt, because titles and initials of authors look like ends of sentences.)

Every page except those in LOOKED_UP: at most 2,000 words, as `wc -w` counts the text without generated blocks, code, tables,
pictures, HTML and folds (<details>), headings and marks of lists included; at most 600 words in each fold.

The page of a chapter, chapters/NN_name/README.md, in addition:
  - the sections SECTIONS, all of them, in this order;
  - before the first of them a picture, and a number with a marker <!-- shown TEXT --> whose TEXT is in a generated block below;
  - three items under "What to remember";
  - at most 120 lines of code and 60 lines of output, those of folds included; a block `mutant` has its own limit (mutant_blocks.py);
  - under "Predict" a marker <!-- predicted TEXT --> for each answer, whose TEXT is in a generated block below;
  - under "A bug to see" a generated block `mutant`.

  tools/pages/page_limits.py            exit status 1 and "file:line: sentence" for each part that is too long or missing
  tools/pages/page_limits.py --table    the numbers of all chapters' pages
"""
import argparse
import dataclasses
import pathlib
import re
import sys
from typing import Dict, Iterator, List, Sequence, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.results.ladder import aligned  # noqa: E402
from tools.pages.links import REPOSITORY, headings_of, markdown_files, masked  # noqa: E402
from tools.pages.update_pages import BLOCK, KINDS  # noqa: E402

LONGEST_LINE, PROSE, FOLD, CODE, OUTPUT = 300, 2000, 600, 120, 60
SECTIONS = ("What you will learn", "Recap", "What is new", "The idea", "Predict", "Run it", "The code", "A bug to see",
            "Cost card", "What goes wrong", "With a library", "Measured", "What to remember", "Exercises", "Sources")
LOOKED_UP = ("docs/glossary.md", "virtual_gpu/README.md")  # pages to look terms up in, not to read from beginning to end
REMEMBER = 3
OUTPUTS = ("output", "race", "tests")  # blocks that show what a program prints

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_BEGINS = re.compile(rf"<!-- ({'|'.join(KINDS)})(?: .*)?-->$")
_PREDICTED = re.compile(r"<!-- predicted (.+?) -->")
_STANDS_BELOW = re.compile(r"<!-- (?:predicted|shown) (.+?) -->")
_CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+|\s*>\s*")
_LEAD_IN = re.compile(r"\s*(\*{1,2})[^*]+\1\s*")  # **Needs.** Nothing.
_SENTENCE_ENDS = re.compile(r"(?<!\.\.)[.?!][)\]\"'*_]*\s+(?:[(\"'*_]*[A-Z`]|[(\"'*_]*\[)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|et al|approx|resp|Fig|Sec)\.$")


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a page, and the block and fold that it belongs to."""

    number: int
    text: str    # without comments
    kind: str    # prose, heading, table, blank; code (between ``` and ```); fence (these lines themselves)
    block: str   # the kind of the generated block around the line, or nothing
    fold: int    # the number of the line on which the fold around it begins, or 0


@dataclasses.dataclass
class Numbers:
    prose: int = 0
    code: int = 0
    output: int = 0
    folds: Dict[int, int] = dataclasses.field(default_factory=dict)  # the line on which a fold begins -> its words
    longest: int = 0


def without_comments(text: str) -> str:
    """The text without the comments in prose, except those that begin and end generated blocks; lines keep their numbers."""
    def gone(comment: "re.Match[str]") -> str:
        whole = comment.group(0)
        return whole if _BEGINS.match(whole) or whole[5:-4] in {f"/{kind}" for kind in KINDS} else re.sub(r"[^\n]", "", whole)
    return re.sub(r"<!--.*?-->", gone, text, flags=re.DOTALL)


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a page. A line on which a fold begins or ends belongs to it."""
    block, fence, fold = "", "", 0
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        begins, mark = _BEGINS.match(line), _FENCE.match(line)
        if not fence and (begins or line == f"<!-- /{block} -->"):
            block = begins.group(1) if begins else ""
            continue
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
            yield Line(number, line, "fence", block, fold)
            continue
        if not fence and "<details" in line:
            fold = number
        kind = "code" if fence else "heading" if line.startswith("#") else "table" if line.lstrip().startswith("|") else "prose"
        yield Line(number, line, kind if line.strip() or fence else "blank", block, fold)
        if not fence and "</details>" in line:
            fold = 0


def words_of(text: str) -> int:
    """The words of a line of prose, as `wc -w` counts them without pictures, HTML and targets of links."""
    return len(_LINK.sub(lambda link: "" if link.group(1) else link.group(2), re.sub(r"</?[a-z][^>]*>", " ", text)).split())


def shown_length(line: str) -> int:
    """The length of a line without the targets of its links."""
    return len(_LINK.sub(r"\1[\2]", line))


def sentences(line: str) -> int:
    """The number of sentences in a line of prose: each ends before a blank and a capital letter, code or a link."""
    text = _LINK.sub(lambda link: "" if link.group(1) else f"[{link.group(2)}]", line)
    text = _CODE_SPAN.sub("`x`", re.sub(r"<summary>.*?</summary>|</?[a-z][^>]*>", "", text))
    item = _ITEM.match(text)
    text = text[item.end():] if item else text
    while lead_in := _LEAD_IN.match(text):
        text = text[lead_in.end():]
    ends = [match for match in _SENTENCE_ENDS.finditer(text) if not _ABBREVIATION.search(text[:match.start() + 1])]
    return 1 + len(ends)


def numbers_of(text: str) -> Numbers:
    numbers = Numbers()
    for line in lines_of(text):
        if line.kind == "code":
            if line.block in OUTPUTS:
                numbers.output += 1
            elif line.block in ("code", ""):
                numbers.code += 1
        elif not line.block and line.kind in ("prose", "heading"):
            if line.kind == "prose":
                numbers.longest = max(numbers.longest, shown_length(line.text))
            if line.fold:
                numbers.folds[line.fold] = numbers.folds.get(line.fold, 0) + words_of(line.text)
            else:
                numbers.prose += words_of(line.text)
    return numbers


def bad_lines(text: str) -> Iterator[str]:
    """"line: sentence" for each line of a Markdown file that is too long or has several sentences."""
    title = ""
    for line in lines_of(text):
        title = line.text.lstrip("# ") if line.kind == "heading" else title
        if line.block or line.kind != "prose":
            continue
        length, count = shown_length(line.text), 1 if title == "Sources" else sentences(line.text)
        if length > LONGEST_LINE:
            yield f"{line.number}: {length} characters; {LONGEST_LINE} at most"
        if count > 1:
            yield f"{line.number}: {count} sentences in a line"


def bad_markers(text: str) -> Iterator[str]:
    """Errors that hide a page's title or the marker of a generated block; a formatter for C++ may cause them."""
    if not re.match(r"#+ \S|---\n", text):
        yield "1: a page begins with its title"
    for mark in re.finditer(rf"<\s*!\s*--\s*/?\s*({'|'.join(KINDS)})\b[^>\n]*--\s*>", masked(text, comments=False)):
        if not re.match(r"<!-- /?\w+ (.* )?-->|<!-- /?\w+ -->", mark.group(0)):
            yield f"{text.count(chr(10), 0, mark.start()) + 1}: a marker looks like <!-- {mark.group(1)} -->"


def bad_sections(text: str) -> Iterator[str]:
    """The errors in the sections of a chapter's page."""
    found = [(text.count("\n", 0, match.start()) + 1, match.group(2)) for match, _ in headings_of(text) if match.group(1) == "##"]
    for index, wanted in enumerate(SECTIONS):
        number, title = found[index] if index < len(found) else (text.count("\n"), "")
        if title != wanted:
            yield f"{number}: the section '{wanted}' belongs here" + (f", not '{title}'" if title else "")
            return
    for number, title in found[len(SECTIONS):]:
        yield f"{number}: no section '{title}' belongs behind '{SECTIONS[-1]}'"


def section(text: str, title: str) -> Tuple[int, int]:
    """The first and last line of a section; None if the page has no such section."""
    heads = [match for match, _ in headings_of(text) if match.group(1) == "##"]
    for head, following in zip(heads, [*heads[1:], None]):
        if head.group(2) == title:
            return head.start(), following.start() if following else len(text)
    return 0, 0


def stands_in(wanted: str, text: str) -> bool:
    """True if the text contains these words or this number, not as part of a longer one."""
    before = r"(?<![\w.])" if wanted[0].isalnum() else ""
    behind = r"(?!\w|\.\d)" if wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + behind, text) is not None


def bad_predictions(text: str) -> Iterator[str]:
    """The errors in the answers under "Predict"."""
    begin, end = section(text, "Predict")
    if end and not _PREDICTED.search(text, begin, end):
        yield f"{text.count(chr(10), 0, begin) + 1}: no <!-- predicted TEXT --> under 'Predict'"
    for mark in _STANDS_BELOW.finditer(text):
        below = (block.group(3) for block in BLOCK.finditer(text, mark.end()))
        if not any(stands_in(mark.group(1), block) for block in below):
            yield f"{text.count(chr(10), 0, mark.start()) + 1}: '{mark.group(1)}' stands in no generated block further down"


def bad_first_screen(text: str) -> Iterator[str]:
    """What is missing before the first section of a chapter's page."""
    first = text.partition("\n## ")[0]
    if "![" not in first:
        yield "1: no picture before the first section"
    if "<!-- shown " not in first:
        yield "1: no <!-- shown TEXT --> before the first section"


def bad_last_lines(text: str) -> Iterator[str]:
    """The errors in the last sections of a chapter's page."""
    begin, end = section(text, "What to remember")
    count = len(re.findall(r"^(?:-|\d+\.) ", text[begin:end], re.MULTILINE))
    if end and count != REMEMBER:
        yield f"{text.count(chr(10), 0, begin) + 1}: {count} lines to remember; {REMEMBER} wanted"


def bad_words(text: str) -> Iterator[str]:
    """"line: sentence" for each part of a page that has too many words."""
    numbers = numbers_of(text)
    if numbers.prose > PROSE:
        yield f"1: {numbers.prose} words of prose; {PROSE} at most"
    for start, words in numbers.folds.items():
        if words > FOLD:
            yield f"{start}: a fold of {words} words; {FOLD} at most"


def bad_chapter_page(text: str) -> Iterator[str]:
    """"line: sentence" for each limit that a chapter's page exceeds."""
    numbers = numbers_of(text)
    for count, most, what in ((numbers.code, CODE, "lines of code"), (numbers.output, OUTPUT, "lines of output")):
        if count > most:
            yield f"1: {count} {what}; {most} at most"
    yield from bad_words(text)
    yield from bad_first_screen(text)
    yield from bad_sections(text)
    yield from bad_last_lines(text)
    yield from bad_predictions(text)
    begin, end = section(text, "A bug to see")
    if end and not any(block.group(1) == "mutant" for block in BLOCK.finditer(text, begin, end)):
        yield f"{text.count(chr(10), 0, begin) + 1}: no generated block 'mutant' under 'A bug to see'"


def is_chapter_page(page: pathlib.Path, root: pathlib.Path) -> bool:
    """True for chapters/NN_name/README.md."""
    return re.fullmatch(r"chapters/\d\d_\w+/README\.md", page.relative_to(root).as_posix()) is not None


def problems(root: pathlib.Path = REPOSITORY) -> List[str]:
    """"file:line: sentence" for each error in a repository."""
    found = []
    for page in markdown_files(root):
        text = page.read_text(encoding="utf-8")
        more = bad_chapter_page if is_chapter_page(page, root) else bad_words
        looked_up = page.relative_to(root).as_posix() in LOOKED_UP
        wrong = [*bad_markers(text), *bad_lines(text), *(() if looked_up else more(text))]
        found += [f"{page.relative_to(root)}:{each}" for each in wrong]
    return found


def numbers_table(pages: Sequence[pathlib.Path]) -> str:
    """The table of all pages' numbers, a page a line."""
    rows = []
    for page in pages:
        numbers = numbers_of(page.read_text(encoding="utf-8"))
        rows.append([page.parent.name, *map(str, (numbers.prose, numbers.code, numbers.output, max(numbers.folds.values(), default=0),
                                                  numbers.longest))])
    rows.append(["at most", *map(str, (PROSE, CODE, OUTPUT, FOLD, LONGEST_LINE))])
    return aligned(["page", "prose", "code", "output", "longest fold", "longest line"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--table", action="store_true", help="the numbers of all chapters' pages")
    if parser.parse_args().table:
        print(numbers_table([page for page in markdown_files() if is_chapter_page(page, REPOSITORY)]))
        return 0
    found = problems()
    print("\n".join(found) if found else f"all {len(markdown_files())} pages keep their limits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
