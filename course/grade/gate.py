"""The gate: what a submission may not even try. Each refusal is one sentence that begins with a line of the student's file.

First the source as it is (no preprocessor has run yet, which could be told to read any file): its directives. Then the tokens
that are left of it after preprocessing, those whose line marker names the student's file: what macros made of them counts, too.
"""
import dataclasses
import re
from typing import Collection, FrozenSet, Iterator, List, Set, Tuple

MOST_BYTES = 256 * 1024
STANDARD = frozenset("""algorithm array bit cmath compare concepts cstddef cstdint cstring functional limits map memory numeric
optional set span stdexcept string string_view tuple type_traits utility vector cuda_runtime.h cuda.h cuda_fp16.h cuda_bf16.h nccl.h
cublas_v2.h cuda/atomic cuda/std/atomic cub/cub.cuh cstdio""".split())
KEYWORDS = frozenset("""alignas auto bool break case catch char class concept const constexpr continue default delete do double else enum
explicit extern false float for friend if inline int long namespace new noexcept operator private protected public requires return
short signed sizeof static static_assert struct switch template this throw true try typedef typename union unsigned using virtual
void volatile while""".split())
FORBIDDEN = {
    "asm": "assembler", "__asm": "assembler", "__asm__": "assembler", "extern": "'extern' reaches other units",
    "__attribute__": "attributes", "__attribute": "attributes", "__declspec": "attributes", "_Pragma": "pragmas",
    "vgpu": "vgpu:: is the machine below CUDA, which a GPU does not have", "overlap_submission": "the judge's own names",
    "__has_include": "looking for files", "__has_include_next": "looking for files",
}
DETECTOR = re.compile(r"__(tsan|asan|msan|ubsan|sanitizer|lsan)|Annotate(Happens|Ignore)")
KNOWN_ATTRIBUTES = ("nodiscard", "maybe_unused", "fallthrough", "likely", "unlikely")
DIRECTIVE = re.compile(r"(?:#|%:)\s*(\w*)\s*(.*)")
TOKEN = re.compile(r"""
    (?P<marker>^\#[ ](?P<line>\d+)[ ]"(?P<file>(?:[^"\\\n]|\\.)*)"[^\n]*$) |
    (?P<pragma>^\#[^\n]*$) |
    (?P<raw>(?:u8|u|U|L)?R"(?P<fence>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=fence)") |
    (?P<text>(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*"|(?:u8|u|U|L)?'(?:[^'\\\n]|\\.)+') |
    (?P<name>[A-Za-z_$\u0080-\U0010ffff][\w$]*) |
    (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*) |
    (?P<newline>\n) | (?P<space>[^\S\n]+) | (?P<mark>::|<<<|>>>|<%|%>|<:(?!:)|:>|.)
""", re.VERBOSE | re.MULTILINE)


class Refused(Exception):
    """Why the gate stays closed, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Rules:
    includes: FrozenSet[str]  # beyond STANDARD
    namespaces: FrozenSet[str]  # that the header may open
    names: FrozenSet[str]  # of the repository: no macro may be called so


@dataclasses.dataclass(frozen=True)
class Token:
    """A token of the student's file after preprocessing."""

    kind: str
    text: str
    line: int


def refuse(line: int, sentence: str) -> Refused:
    """With the line that a student can look at."""
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


def _logical_lines(text: str) -> Iterator[Tuple[int, str]]:
    """Lines, those that end in a backslash with the next one, and the number of the first."""
    first, held = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        first = number if not held else first
        spliced = re.sub(r"\\[ \t\f\v]*$", "", line)
        held += spliced
        if spliced == line:
            yield first, held
            held = ""
    if held:
        yield first, held


def check_source(text: str, rules: Rules) -> None:
    """The directives, before a preprocessor reads the file. Throws Refused."""
    for trigraph in ("??=", "??/"):
        if trigraph in text:
            raise refuse(text[:text.index(trigraph)].count("\n") + 1, "trigraphs")
    own: Set[str] = set()
    for number, line in _logical_lines(text):
        # A comment may stand before a directive: what stands behind its end counts, wherever the comment began.
        start = re.sub(r"/\*.*?\*/", " ", line)
        start = start.rpartition("*/")[2].strip() if "*/" in start else start.strip()
        match = DIRECTIVE.match(start)
        if match is None:
            continue
        _check_directive(number, match.group(1), match.group(2), rules, own)


def _check_directive(number: int, word: str, rest: str, rules: Rules, own: Set[str]) -> None:
    if word == "include":
        name = re.match(r'<([^>]+)>|"([^"]+)"', rest)
        if name is None:
            raise refuse(number, "an #include names its file itself")
        file = name.group(1) or name.group(2)
        if file not in STANDARD and file not in rules.includes:
            raise refuse(number, f"#include of {file}, which is not on this chapter's list")
    elif word == "define":
        name = re.match(r"[A-Za-z_]\w*", rest)
        if name is None or name.group() in rules.names or name.group() in KEYWORDS or name.group().startswith("__"):
            raise refuse(number, f"a macro called {name.group() if name else rest}, which is a name of the language or of the repository")
        if "##" in rest or "%:" in rest:
            raise refuse(number, "a macro that joins tokens")
        own.add(name.group())
    elif word == "undef":
        if rest.split()[:1] not in [[name] for name in own]:
            raise refuse(number, "#undef of a macro that is not the file's own")
    elif word == "pragma":
        if not re.fullmatch(r"once|unroll(\s*\(?\s*\w+\s*\)?)?", rest.split("//")[0].strip()):
            raise refuse(number, "a pragma other than once and unroll")
    elif word not in ("if", "ifdef", "ifndef", "elif", "else", "endif", "error", ""):
        raise refuse(number, f"the directive #{word}" if not word.isdigit() else "a line marker")
    elif "__has_" in rest:
        raise refuse(number, "looking for files")


def tokens_of(preprocessed: str, file: str) -> List[Token]:
    """The tokens that stand in `file`."""
    found: List[Token] = []
    here, line = False, 0
    for match in TOKEN.finditer(preprocessed):
        kind = match.lastgroup or ""
        text = match.group()
        if match.group("marker"):
            here, line = match.group("file") == file, int(match.group("line")) - 1  # its own newline follows
        elif kind == "newline":
            line += 1
        elif kind == "pragma":
            continue
        else:
            if here and kind != "space":
                found.append(Token("raw" if match.group("raw") else kind, text, line))
            line += text.count("\n")
    return found


def check_tokens(tokens: List[Token], rules: Rules) -> None:
    """What is left after preprocessing. Throws Refused."""
    for token in tokens:
        if token.kind in ("raw", "text") and re.search(r"\.inc(bin|lude)\b", token.text):
            raise refuse(token.line, ".incbin reads files")
    for index, token in enumerate(tokens):
        if token.kind != "name":
            if token.text in ("<%", "%>", "<:", ":>"):
                raise refuse(token.line, f"{token.text} is another way to write a bracket")
            if token.text == "[" and tokens[index + 1:index + 2] and tokens[index + 1].text == "[":
                attribute = tokens[index + 2].text if index + 2 < len(tokens) else ""
                if attribute not in KNOWN_ATTRIBUTES:
                    raise refuse(token.line, f"the attribute [[{attribute}]]")
            continue
        if DETECTOR.match(token.text):
            raise refuse(token.line, f"{token.text} talks to the race detector")
        if token.text in FORBIDDEN:
            raise refuse(token.line, f"{token.text}: {FORBIDDEN[token.text]}, and is refused")
    _check_namespaces(tokens, rules)


def _check_namespaces(tokens: List[Token], rules: Rules) -> None:
    """All stands in the chapter's own namespaces."""
    depth = index = 0
    names = ", ".join(sorted(rules.namespaces))
    while index < len(tokens):
        token = tokens[index]
        if depth == 0 and token.text == "namespace":
            name = ""
            while index + 1 < len(tokens) and tokens[index + 1].text not in ("{", "=", ";"):
                index += 1
                name += tokens[index].text
            own = name in rules.namespaces or name.startswith(tuple(f"{each}::" for each in rules.namespaces))
            if not own or tokens[index + 1:index + 2] and tokens[index + 1].text != "{":
                raise refuse(token.line, f"namespace {name or '(without a name)'}; all of the file belongs into {names}")
        elif depth == 0 and token.text not in ("{", "}", ";"):
            raise refuse(token.line, f"'{token.text}' stands outside of {names}")
        elif token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth < 0:
                raise refuse(token.line, "a bracket } too many")
        index += 1


def namespaces_of(tokens: List[Token]) -> Set[str]:
    """Those that a header opens, outermost ones only."""
    found, depth = set(), 0
    for index, token in enumerate(tokens):
        if depth == 0 and token.text == "namespace":
            end = next(i for i in range(index, len(tokens)) if tokens[i].text == "{")
            found.add("".join(each.text for each in tokens[index + 1:end]))
        depth += {"{": 1, "}": -1}.get(token.text, 0)
    return found


def names_in(preprocessed: str) -> Set[str]:
    return {match.group() for match in TOKEN.finditer(preprocessed) if match.group("name")}


def macros_in(definitions: str) -> Set[str]:
    """The names of g++ -E -dM."""
    return set(re.findall(r"^#define (\w+)", definitions, re.MULTILINE))


def rules_from(includes: Collection[str], namespaces: Collection[str], names: Collection[str]) -> Rules:
    return Rules(frozenset(includes), frozenset(namespaces), frozenset(names))
