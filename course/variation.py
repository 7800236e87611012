"""A student's own variation of a task: which one an ID has, and what it changes.

chapters/NN_name/assignment/variation.json says what varies:

    {"direction": {"own": "left", "links": "previous", "right": {"links": "next", "replace": [["the left", "the right"], ...]}}}

For a kind of variation (tasks.py) the name of the chapter's own way, and the other ways. `replace` are pairs of texts that
change places, at the borders of words, in the header, in the page and in the tasks: the header with all of them replaced is
the solution. `links` says where a rank's data go (previous, next), which ./try counts in a recorded run. A pair's
texts may begin with "regex:", then the second is put in the place of what the first matches, and nothing goes back.
`links` may also say whose data a rank takes first (from previous, from next). Beside "own", `arguments` may choose what of the
chapter's program the recorded run is of.

The choice is HMAC-SHA256 of chapter and ID with the course's key: who knows no key cannot tell what another has. Lesson
headers in chapters/ stay as they are.
"""
import dataclasses
import hashlib
import hmac
import json
import pathlib
import re
from typing import Dict, List, Sequence, Tuple

from course import work

PRACTICE_KEY = b"practice"  # without a course: anybody can compute the variation of any ID


@dataclasses.dataclass(frozen=True)
class Variation:
    """What is different for a student: nothing, if there are no pairs."""

    kind: str = "none"
    name: str = "as in the chapter"
    pairs: Sequence[Tuple[str, str]] = ()
    links: str = ""
    arguments: str = ""

    def apply(self, text: str) -> str:
        """A text in the student's words."""
        for first, second in self.pairs:
            if first.startswith("regex:"):
                text = re.sub(first.removeprefix("regex:"), second, text)
        plain = {first: second for first, second in self.pairs if not first.startswith("regex:")}
        plain.update({second: first for first, second in plain.items()})
        if not plain:
            return text
        found = "|".join(_bounded(word) for word in sorted(plain, key=len, reverse=True))
        return re.sub(found, lambda match: plain[match.group()], text)


def _bounded(words: str) -> str:
    before, after = (r"(?<!\w)" if words[0].isalnum() else ""), (r"(?!\w)" if words[-1].isalnum() else "")
    return before + re.escape(words) + after


def ways(chapter: str, root: pathlib.Path = work.REPOSITORY) -> List[Variation]:
    """All variations of a chapter, its own first. Throws WorkError."""
    path = root / "chapters" / chapter / "assignment" / "variation.json"
    if not path.exists():
        return [Variation()]
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        (kind, others), = found.items()
        arguments = others.get("arguments", "")
        own = Variation(kind, others["own"], (), others.get("links", ""), arguments)
        return [own, *(Variation(kind, name, [(first, second) for first, second in way["replace"]], way.get("links", ""), arguments)
                       for name, way in others.items() if name not in ("own", "links", "arguments"))]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise work.WorkError(f"chapters/{chapter}/assignment/variation.json cannot be read: {error}") from None


def key_of(file: str) -> bytes:
    """The course's key: what the file holds, or the key for practice if none is named. Throws WorkError."""
    if not file:
        return PRACTICE_KEY
    try:
        key, mode = pathlib.Path(file).read_bytes().strip(), pathlib.Path(file).stat().st_mode
    except OSError as error:
        raise work.WorkError(f"{file}: {error.strerror}") from None
    if mode & 0o077:
        raise work.WorkError(f"{file} can be read by others, who then know every student's variation: chmod 600 {file}")
    if len(key) < 16:
        raise work.WorkError(f"{file} holds {len(key)} bytes: a key has at least 16 (head -c 32 /dev/urandom | base64)")
    return key


def of_student(chapter: str, student: str, key: bytes) -> Variation:
    """The student's variation; the chapter's own without an ID."""
    found = ways(chapter)
    if not student:
        return found[0]
    digest = hmac.new(key, f"{chapter}\0{student}".encode(), hashlib.sha256).digest()
    return found[int.from_bytes(digest[:8], "big") % len(found)]


def sizes(kind: str, student: str, key: bytes) -> Dict[str, int]:
    """The uneven sizes of a student's ./try."""
    digest = hmac.new(key, f"sizes\0{student}".encode(), hashlib.sha256).digest()
    if kind == "sparse":
        return {"rows": 90 + digest[0] % 30, "features": 3 + digest[1] % 5, "entries": 13 + digest[2] % 17, "duplicates": 4}
    primes = (29, 31, 37, 41, 43, 47, 53)  # which no number of ranks divides
    return {"m": primes[digest[0] % 7], "n": primes[digest[1] % 7], "k": 13 + digest[2] % 12}
