"""A student's own variation of a task: which variation an ID has, and what it changes.

chapters/NN_name/assignment/variation.json says what varies:

    {"direction": {"own": "left", "links": "previous", "right": {"links": "next", "replace": [["the left", "the right"], ...]}}}

Each kind of variation (tasks.py) has the name of the chapter's own way, and the other ways. `replace` are pairs of words that
are exchanged in the header, the page and the tasks: the header with all of them exchanged is the solution. If a pair begins with
"regex:", the second text replaces the first's matches, in this direction only. `links` names the neighbour that a rank sends to
(previous, next), or the one whose data it takes first (from previous, from next); ./try checks it in a recorded run. Beside
"own", `arguments` may select what the recorded run executes.

The choice is HMAC-SHA256 of chapter and ID with the course's key, so that it cannot be predicted without the key. Lesson
headers in chapters/ do not vary.
"""
import dataclasses
import hashlib
import hmac
import json
import pathlib
import re
from typing import Dict, List, Sequence, Tuple

from course import work

PRACTICE_KEY = b"practice"  # default: anybody can compute the variation of any ID


@dataclasses.dataclass(frozen=True)
class Variation:
    """The changes of a variation; no pairs: the chapter's own."""

    kind: str = "none"
    name: str = "as in the chapter"
    pairs: Sequence[Tuple[str, str]] = ()
    links: str = ""
    arguments: str = ""

    def apply(self, text: str) -> str:
        """A text in the words of the variation."""
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
    """The course's key: the content of the file, or the practice key if no file is named. Throws WorkError."""
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
    """The variation of a student; without an ID the chapter's own."""
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
    primes = (29, 31, 37, 41, 43, 47, 53)  # no number of ranks divides them
    return {"m": primes[digest[0] % 7], "n": primes[digest[1] % 7], "k": 13 + digest[2] % 12}
