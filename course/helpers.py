"""The functions of common/ that a hand-out's missing code calls, and that its headers do not call."""
import pathlib
import re
from typing import Dict, List

from course import page, variation, work

DECLARATION = re.compile(
    r"^(?P<doc>(?:///(?!<).*\n)+)(?P<code>(?:template.*\n)?(?:requires .*\n)?(?!/|#|class|struct|template|requires)"
    r"[^\n(;=]*?\b(?P<name>\w+)\((?:[^;{]|\{\})*?\))\s*[;{]", re.MULTILINE)
CALL = re.compile(r"\b(\w+)(?:<[\w:, ]*>)?\(")


def called(chapter: str, headers: Dict[str, str], way: variation.Variation) -> List[str]:
    """Names that the complete code calls, and that these headers of a hand-out neither define nor call."""
    code = "\n".join(line for file in headers for line in page.withheld(chapter, file, way) if not line.startswith("//"))
    return sorted(set(CALL.findall(code)) - set(CALL.findall("\n".join(headers.values()))))


def shown(chapter: str, headers: Dict[str, str], way: variation.Variation) -> str:
    """Those of them that are helpers, by header, with their doc comments."""
    names = called(chapter, headers, way)
    found = []
    for path in sorted(path for room in ("gpu", "data") for path in (work.REPOSITORY / "common" / "overlap" / room).glob("*.hpp")):
        declared = [match for match in DECLARATION.finditer(path.read_text(encoding="utf-8")) if match.group("name") in names]
        if declared:
            name = path.relative_to(work.REPOSITORY / "common")
            found.append("\n".join([f"// {name}", *(f"{match.group('doc')}{match.group('code')};" for match in declared)]))
    return "\n\n".join(found)
