"""Excerpts of sources for pages (update_pages.py) and pages of hand-outs (course/page.py)."""
import re
from typing import Sequence


class PageError(Exception):
    """A block of a page cannot be generated: one sentence."""


def excerpt_of(lines: Sequence[str], number: int) -> str:
    """The function or class whose first line has this index: from the comment above it to its closing brace, without common
    indent, as a block of Markdown."""
    first = last = number
    while first > 0 and lines[first - 1].strip().startswith("//"):
        first -= 1
    depth = 0
    for last in range(number, len(lines)):
        depth += lines[last].count("{") - lines[last].count("}")
        if depth == 0 and re.search(r"[;}]\s*$", lines[last]):
            break
    chosen = lines[first:last + 1]
    indent = min(len(line) - len(line.lstrip()) for line in chosen if line.strip())
    return "```cpp\n" + "\n".join(line[indent:] for line in chosen) + "\n```\n"
