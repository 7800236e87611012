"""The gate: rejects what a submission may not contain. A refusal is one sentence, with a line of the student's file.

  gate.py KIT UNIT FILE NAMESPACE

UNIT.cu is the preprocessed unit, which is then compiled unchanged. UNIT.d lists the files that were read (g++ -E -dD -MD).
KIT.cu and KIT.d are the same for an empty FILE (the submission). All tokens between two marks, which a student cannot guess,
are the student's, whatever #line says. The other tokens and the list of files must equal the kit's.
The gate runs in the sandbox, within its limits.
"""
import pathlib
import re
import sys
from typing import Collection, List, NamedTuple, Set, Tuple

MOST_BYTES = 256 * 1024
MOST_EXPANDED = 512 * 1024  # after preprocessing
FORBIDDEN = {
    "asm": "assembler", "__asm": "assembler", "__asm__": "assembler", "extern": "'extern' reaches other units",
    "__attribute__": "attributes", "__attribute": "attributes", "__declspec": "attributes",
    "vgpu": "vgpu:: is the machine below CUDA, which a GPU does not have", "overlap_submission": "the judge's own names",
}
DETECTOR = re.compile(r"__(tsan|asan|msan|ubsan|sanitizer|lsan)|Annotate(Happens|Ignore)")
KNOWN_ATTRIBUTES = ("nodiscard", "maybe_unused", "fallthrough", "likely", "unlikely")
MARK = re.compile(r"struct (submission_[0-9a-f]+)_begins;")  # task.py
MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"([ \d]*)')
TOKEN = re.compile(r"""
    (?P<directive>^\#[^\n]*) |
    (?P<text>(?:u8|u|U|L)?(?:R"(?P<fence>[^()\\\s]{0,16})\([\s\S]*?\)(?P=fence)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')) |
    (?P<name>[A-Za-z_$\u0080-\U0010ffff][\w$]*) |
    (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*) |
    (?P<newline>\n) | (?P<space>[^\S\n]+) | (?P<sign>::|<<<|>>>|<%|%>|<:(?!:)|:>|.)
""", re.VERBOSE | re.MULTILINE)


class Refused(Exception):
    """Why the gate rejects a submission, in one sentence."""


class Token(NamedTuple):
    """A token of the student's file after preprocessing."""

    kind: str
    text: str
    line: int


def refuse(line: int, sentence: str) -> Refused:
    """A refusal that names a line of the student's file."""
    return Refused(f"line {line}: {sentence}")


def read(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise Refused(f"the file is larger than {MOST_BYTES // 1024} KiB")
    if b"\0" in data:
        raise refuse(data[:data.index(b"\0")].count(b"\n") + 1, "a byte 0 is no text")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise refuse(data[:error.start].count(b"\n") + 1, "this is no UTF-8 text") from None


def check(kit: pathlib.Path, unit: pathlib.Path, file: str, namespace: str) -> None:
    """Throws Refused."""
    (kit_text, kit_files), (text, files) = _of_compiler(kit), _of_compiler(unit)
    mark = MARK.search(kit_text)
    assert mark is not None
    before, _empty, behind = _parts(kit_text, mark.group(1))
    parts = _parts(text, mark.group(1))
    if len(parts) != 3:
        raise Refused("it includes the unit that includes it")
    if len(parts[1]) > MOST_EXPANDED:
        raise Refused(f"it expands to more than {MOST_EXPANDED // 1024} KiB")
    others = files - kit_files - {file}
    names = _names_in(before + behind) if "\n#define " in parts[1] else set()
    check_tokens(tokens_of(parts[1], file, others, names), namespace)
    if others or (parts[0], parts[2]) != (before, behind):
        raise Refused("it changes what is read behind it: #pragma once is missing, or a macro has a name of the repository")


def _of_compiler(unit: pathlib.Path) -> Tuple[str, Set[str]]:
    """The preprocessed text, and the files that were read."""
    text, rule = (unit.with_suffix(end).read_text(encoding="utf-8", errors="surrogateescape") for end in (".cu", ".d"))
    return text, set(rule.replace("\\\n", " ").split()[1:])


def _parts(text: str, mark: str) -> List[str]:
    """The text before, between and after the marks."""
    return re.split(f"struct {mark}_(?:begins|ends);", text)


def _names_in(text: str) -> Set[str]:
    """The names of macros, and all names outside of macros."""
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"^#(?:define (\w+))?.*", r"\1", text, flags=re.MULTILINE)))


def tokens_of(text: str, file: str, others: Collection[str], names: Collection[str]) -> List[Token]:
    """The tokens between the marks. Throws Refused for a directive, and for a token from another file. `others`: files outside
    the kit; `names`: names of the kit, which no macro may redefine."""
    found: List[Token] = []
    line, elsewhere, skipped = 0, False, False
    for match in TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        marker = MARKER.fullmatch(token) if kind == "directive" else None
        if marker:
            number, name, flags = marker.groups()
            if name in others:
                short = re.sub(r".*/include/(c\+\+/\d+/|\w+-linux-gnu/|chapters/)?", "", name)
                raise refuse(line, f"#include of {short}, which is not on this chapter's list")
            # Flags 1 and 2: a file begins or ends. Flag 3: a system header, which is not rewritten for virtual GPUs.
            if "1" in flags or "2" in flags:
                skipped = "3" in flags
            elsewhere = skipped or name != file
            line = line if elsewhere else int(number) - 1  # the marker's own newline follows
        elif kind == "newline":
            line += not elsewhere
        elif kind != "space" and not (elsewhere and token.startswith(("#define ", "#undef "))):
            if elsewhere:
                raise refuse(line, "a #line, a line marker, or an #include in the middle of code")
            if kind == "directive":
                _check_directive(line, token, names)
            else:
                found.append(Token(kind, token, line))
            line += token.count("\n")
    return found


def _check_directive(line: int, text: str, names: Collection[str]) -> None:
    word, _, rest = text[1:].strip().partition(" ")
    if word == "define":
        name = re.split(r"[ (]", rest)[0]
        if name in names or name.startswith("__"):
            raise refuse(line, f"a macro called {name}, which is a name of the language or of the repository")
        if "##" in rest:
            raise refuse(line, "a macro that joins tokens")
    elif word == "pragma":
        if not re.fullmatch(r"unroll(\s*\(?\s*\w+\s*\)?)?", rest.strip()):
            raise refuse(line, "a pragma other than once and unroll")
    elif word != "undef":
        raise refuse(line, f"the directive #{word}")


def check_tokens(tokens: List[Token], namespace: str) -> None:
    """Checks the preprocessed tokens of the student's file. Throws Refused."""
    for index, token in enumerate(tokens):
        if token.kind == "sign":
            if token.text in ("<%", "%>", "<:", ":>"):
                raise refuse(token.line, f"{token.text} is another way to write a bracket")
            if token.text == "[" and tokens[index + 1:index + 2] and tokens[index + 1].text == "[":
                attribute = tokens[index + 2].text if index + 2 < len(tokens) else ""
                if attribute not in KNOWN_ATTRIBUTES:
                    raise refuse(token.line, f"the attribute [[{attribute}]]")
        elif token.kind == "name":
            if DETECTOR.match(token.text):
                raise refuse(token.line, f"{token.text} talks to the race detector")
            if token.text in FORBIDDEN:
                raise refuse(token.line, f"{token.text}: {FORBIDDEN[token.text]}, and is refused")
    _check_namespaces(tokens, namespace)


def _check_namespaces(tokens: List[Token], namespace: str) -> None:
    """All declarations must be in the chapter's own namespace. Throws Refused."""
    depth = index = 0
    while index < len(tokens):
        token = tokens[index]
        if depth == 0 and token.text == "namespace":
            name = ""
            while index + 1 < len(tokens) and tokens[index + 1].text not in ("{", "=", ";"):
                index += 1
                name += tokens[index].text
            own = f"{name}::".startswith(f"{namespace}::")
            if not own or tokens[index + 1:index + 2] and tokens[index + 1].text != "{":
                raise refuse(token.line, f"namespace {name or '(without a name)'}; all of the file belongs into {namespace}")
        elif depth == 0 and token.text not in ("{", "}", ";"):
            raise refuse(token.line, f"'{token.text}' stands outside of {namespace}")
        elif token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth < 0:
                raise refuse(token.line, "a bracket } too many")
        index += 1
    if depth > 0:
        raise refuse(tokens[-1].line, "a bracket { stays open")


if __name__ == "__main__":
    try:
        check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:])
    except Refused as refusal:
        print(str(refusal)[:300])
        sys.exit(1)
