"""The tokens of a preprocessed CUDA unit, and the structure of them that rewrite.py needs.

Only text of the user's own files becomes tokens. System headers (line markers identify them) are skipped in large
steps: they are most of a unit, and contain no CUDA.
"""

import re
from typing import Dict, List, Optional, Tuple

# One token, or one piece of text to skip. Strings, characters and numbers are whole tokens, so that their content is
# never examined. '>' is always a token of its own: the context decides whether '>>>' ends a launch or three templates.
# Editors write launches as 'k << <1, 2 >> > ()', which nvcc accepts: '<< <' is the token '<<<'.
TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#[^\n]*)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"
      | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'
      | \.?[0-9](?:[eEpP][+-]|'?[\w.])*
      | [^\W\d][\w$]*
      | <<[ \t]*<|<<|<=>|<=|->|>=|==|!=|::
      | \S""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
MARKER = re.compile(r'#[ ](\d+)[ ]"((?:[^"\\\n]|\\.)*)"([ \d]*)')
PRAGMA_OF_NVCC = re.compile(r"\s*#\s*pragma\s+(unroll|nounroll|nv_\w+)\b")

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}


def is_identifier(word: str) -> bool:
    """True for names and keywords (but not for literals with a prefix, such as u8"x")."""
    return (word[:1].isalpha() or word[:1] == "_") and word[-1] not in "\"'"


class Tokens:
    """The user's tokens of one unit: `words[i]` starts at `starts[i]` of `text`.

    `match[i]` is the partner of bracket i (-1: none), `parent[i]` the innermost bracket open around token i (-1:
    none), `found` the indices of the tokens that are in `wanted`, `in_macro` those of them that come from a system
    header's macro, `pragmas` the (start, end) of directives that only nvcc knows.
    """

    def __init__(self, text: str, wanted: frozenset):
        self.text = text
        self.words: List[str] = []
        self.starts: List[int] = []
        self.match: List[int] = []
        self.parent: List[int] = []
        self.found: List[int] = []
        self.in_macro: set = set()
        self.pragmas: List[Tuple[int, int]] = []
        self._read(wanted)

    def _read(self, wanted: frozenset) -> None:
        """Splits the text into tokens and pairs the brackets, in one pass."""
        words, starts, match, parent = self.words, self.starts, self.match, self.parent
        open_brackets: List[int] = []
        from_system_macro = False
        position: Optional[int] = 0
        while position is not None:
            resume = None
            for token in TOKEN.finditer(self.text, position):
                kind = token.lastgroup
                if kind == "directive":
                    marker = MARKER.match(token.group())
                    if marker is None:
                        if PRAGMA_OF_NVCC.match(token.group()):
                            self.pragmas.append(token.span())
                        continue
                    flags = marker.group(3).split()
                    # 1 and 2 enter and leave a file. A 3 without them marks a system header's macro, expanded in
                    # the current file: this is the user's text.
                    if "3" in flags and ("1" in flags or "2" in flags):
                        resume = self._end_of_system_text(token.end())
                        break
                    from_system_macro = "3" in flags
                    continue
                if kind == "comment":
                    continue
                word, index = token.group(), len(words)
                if word[:2] == "<<" and len(word) > 3:
                    word = "<<<"
                words.append(word)
                starts.append(token.start())
                match.append(-1)
                parent.append(open_brackets[-1] if open_brackets else -1)
                if word in wanted:
                    self.found.append(index)
                    if from_system_macro:
                        self.in_macro.add(index)
                elif word in OPENERS:
                    open_brackets.append(index)
                elif word in CLOSERS and open_brackets and words[open_brackets[-1]] == CLOSERS[word]:
                    opener = open_brackets.pop()
                    match[opener], match[index] = index, opener
                    parent[index] = parent[opener]
            position = resume

    def _end_of_system_text(self, position: int) -> Optional[int]:
        """The start of the first line marker of a user's file at or after `position`; None if there is none."""
        while True:
            position = self.text.find("\n# ", position)
            if position < 0:
                return None
            position += 1
            marker = MARKER.match(self.text, position)
            if marker:
                flags = marker.group(3).split()
                if "3" not in flags and ("1" in flags or "2" in flags):
                    return position

    def end(self, index: int) -> int:
        """Text offset immediately after a token."""
        if self.words[index] == "<<<":
            return self.text.index("<", self.starts[index] + 2) + 1
        return self.starts[index] + len(self.words[index])

    def word(self, index: int) -> str:
        """The token, or "" outside of the unit."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def place(self, index: int) -> Tuple[str, int]:
        """File and line of a token, as the compiler would name them."""
        position = self.starts[index]
        before = position
        while True:
            before = self.text.rfind("\n# ", 0, before)
            marker = MARKER.match(self.text, before + 1)
            if marker:
                lines = self.text.count("\n", marker.end(), position) - 1
                return marker.group(2), int(marker.group(1)) + lines
            if before < 0:
                return "<input>", self.text.count("\n", 0, position) + 1

    def close_angle(self, index: int) -> int:
        """The '>' that closes the template list opened at `index`; -1 if it is not a template list."""
        return self._other_angle(index, 1, "<>", OPENERS, (";",))

    def open_angle(self, index: int) -> int:
        """The '<' that opens the template list closed at `index`; -1 if it is not a template list."""
        return self._other_angle(index, -1, "><", CLOSERS, (";", "<<<"))

    def _other_angle(self, index: int, step: int, angles: str, skipped: Dict[str, str], ends: Tuple[str, ...]) -> int:
        """Walks from the first of `angles` at `index` to its partner, over the contents of `skipped` brackets."""
        depth = 0
        while 0 <= index < len(self.words):
            word = self.words[index]
            if word == angles[0]:
                depth += 1
            elif word == angles[1]:
                depth -= 1
                if depth == 0:
                    return index
            elif word in skipped and self.match[index] >= 0:
                index = self.match[index]
            elif word in CLOSERS or word in OPENERS or word in ends:
                return -1
            index += step
        return -1
