#!/usr/bin/env python3
"""The messages with which ./lab and the programs refuse: tools/pages/messages.py prints each sentence in the sources, with
`...` for each inserted name or number. docs/troubleshooting.md has the cure of each
(tools/pages/tests/troubleshooting_test.py).

These are: Refusal and Skip of tools/lab, PlanError of tools/results; `die` of its shell scripts, and their lines on old or
missing tools; UsageError, Skip and SparseInputError of common/. Left out are a chapter's own messages, whose cures are on its
page, and those that only repeat another program's message.
"""
import ast
import pathlib
import re
import sys
from typing import Dict, Iterator, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
_THROW = re.compile(r"\bthrow (?:\w+::)*(?:UsageError|Skip|SparseInputError)\(")
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([()])|([^\s"()]+)')
_DIE = re.compile(r'\b(?:die |echo |refused=)"((?:[^"\\]|\\.)*)"')


def _collapsed(text: str) -> str:
    """Joins neighbouring `...` into one."""
    return re.sub(r"\s+", " ", re.sub(r"(?:\.\.\.\s?)+(?=\.\.\.)", "", text)).strip()


def _of_python(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in ("Refusal", "Skip", "PlanError"):
            said = node.args[0]
            if isinstance(said, ast.Constant):
                yield str(said.value)
            elif isinstance(said, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in said.values)


def _of_shell(text: str) -> Iterator[str]:
    text = re.sub(r"(?m)^.*(?:\brow\b|usage:).*$", "", text)  # the doctor's output, and the usage of a script
    for match in _DIE.finditer(re.sub(r"\$\([^()]*\)", "...", text)):
        said = re.sub(r"\$\{[^}]*\}|\$[\w*@#]+", "...", match.group(1)).replace('\\"', '"')
        if len(re.findall(r"[A-Za-z]{2,}", said)) > 1:  # not a list of words for another function
            yield said


def _of_cpp(text: str) -> Iterator[str]:
    for match in _THROW.finditer(text):
        depth, parts = 1, []
        for token in _TOKEN.finditer(text, match.end()):
            literal, bracket, _ = token.groups()
            depth += {"(": 1, ")": -1}.get(bracket or "", 0)
            if depth == 0:
                break
            if literal is not None and depth <= 2:
                parts.append(literal.replace('\\"', '"'))
            elif parts[-1:] != ["..."] and token.group(0) not in ("+", "std::string", "(", ")"):
                parts.append("...")
        yield "".join(parts)


def messages(root: pathlib.Path = REPOSITORY) -> Dict[str, str]:
    """Each sentence, and the first file that contains it."""
    found: Dict[str, str] = {}
    sources: Tuple[Tuple[str, object], ...] = (
        ("tools/lab/*.py", _of_python), ("tools/lab/commands/*.py", _of_python), ("lab", _of_shell), ("tools/lab/*.sh", _of_shell), ("virtual_gpu/tools/race_run", _of_shell),
        ("common/overlap/**/*.[ch]pp", _of_cpp), ("tools/results/plan.py", _of_python), ("tools/results/plan_*.py", _of_python))
    for pattern, of in sources:
        for path in sorted(root.glob(pattern)):
            for said in of(path.read_text(encoding="utf-8")):  # type: ignore[operator]
                if re.search(r"[a-z]{2}", re.sub(r"--\w+|\.\.\.", "", said)):
                    found.setdefault(_collapsed(said), path.relative_to(root).as_posix())
    return found


if __name__ == "__main__":
    for sentence, source in messages().items():
        print(f"{source}: {sentence}")
    sys.exit(0)
