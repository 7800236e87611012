"""The blocks `planted` of pages: a planted bug as a diff whose added lines are its cure, and the report on the bug.

  <!-- planted COMMAND PROGRAM CASE [FUNCTION...] --> ... <!-- /planted -->

COMMAND is run, race or check, and selects the build that shows the bug. PROGRAM is one of
virtual_gpu/tests/{race,check}/planted_*.cu, whose tests assert the report and that the program without the bug has none. Of the
FUNCTIONs (without any: of the one named CASE) the block shows the lines from the first to the last that has a mark @CASE or
uses `fixed`; a short function is shown whole.
"""
import difflib
import pathlib
import re
import subprocess
import sys
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.pages import mutant_blocks  # noqa: E402
from tools.pages.excerpts import PageError  # noqa: E402

BUILDS = {"run": "virtual", "race": "race", "check": "check"}
SHORT = 9  # lines of a function that is shown whole
_ASKS = re.compile(r"\bif \(!?fixed\)|\bfixed \?")
_IF = re.compile(r"( *)if \((!?)fixed\) (.*;.*)")
_BRANCH = re.compile(r"^( *)if \(fixed\) \{\n(.*?)^\1\} else \{\n(.*?)^\1\}\n", re.DOTALL | re.MULTILINE)
_TERM = r"(?:[^?:(),;<]|::|<[^<>;]*>|\([^()]*\))"
_EITHER = re.compile(rf"\bfixed \? ({_TERM}+?)\s+: ({_TERM}+)")


def specialised(code: str, fixed: bool) -> str:
    """The code with each use of `fixed` replaced by its value."""
    def branch(match: "re.Match[str]") -> str:
        return re.sub("^  ", "", match.group(2 if fixed else 3), flags=re.MULTILINE)
    code = _EITHER.sub(lambda either: either.group(1 if fixed else 2), _BRANCH.sub(branch, code))
    lines = []
    for line in code.splitlines():
        asked = _IF.fullmatch(line)
        if not asked:
            lines.append(line)
        elif fixed != bool(asked.group(2)):
            lines.append(asked.group(1) + asked.group(3))
    if any(re.search(r"\bfixed\b", line) for line in lines):
        raise PageError(f"nothing here can answer what is asked of 'fixed' in:\n{code}")
    return "\n".join(lines)


def function(lines: List[str], name: str) -> List[str]:
    """The body of the only function of this name."""
    starts = [number for number, line in enumerate(lines) if re.match(rf"(?!return)[\w_ (]*[\w\]>)*] \*?{name}\(", line)]
    if len(starts) != 1:
        raise PageError(f"{len(starts)} functions are called '{name}'")
    end = next(number for number in range(starts[0], len(lines)) if lines[number].startswith("}"))
    return lines[starts[0] + 1:end]


def shown(body: List[str], case: str) -> List[str]:
    """A short function whole; of others the lines from the first that matters to the last, extended until braces are
    balanced."""
    if len(body) <= SHORT:
        return body
    matters = [number for number, line in enumerate(body) if _ASKS.search(line) or re.search(rf"@{case}\b", line)]
    if not matters:
        raise PageError(f"nothing of '{case}' is in:\n" + "\n".join(body))
    first, last = matters[0], matters[-1]
    depth = [line.count("{") - line.count("}") for line in body]
    while first > 0 and any(sum(depth[first:end]) < 0 for end in range(first + 1, last + 2)):
        first -= 1
    while last + 1 < len(body) and (sum(depth[first:last + 1]) > 0 or not re.search("[;{}]( *//.*)?$", body[last])):
        last += 1
    return body[first:last + 1]


def diff(source: str, case: str, functions: List[str]) -> str:
    """The code with the bug; lines of the cure begin with +, the lines that it replaces with -."""
    lines = source.splitlines()
    parts = []
    for name in functions or [case]:
        code = "\n".join(re.sub(r"\s*// @.*", "", line) for line in shown(function(lines, name), case)) + "\n"
        indent = min(len(line) - len(line.lstrip()) for line in code.splitlines() if line)
        bug, cured = (re.sub(f"^ {{{indent}}}", "", specialised(code, fixed), flags=re.MULTILINE).splitlines()
                      for fixed in (False, True))
        parts.append("\n".join(line[0] + line[2:] for line in difflib.ndiff(bug, cured, None, None) if line[0] != "?"))
    return "\n\n".join(parts)


def said(command: str, program: str, case: str, root: pathlib.Path) -> str:
    """The output of the program with the bug, without the line that names the schedule."""
    path = root / "build" / BUILDS[command] / "bin" / program
    if not path.exists():
        how = "race" if command == "run" else command
        raise PageError(f"{path.relative_to(root)} is not built: ./lab {how} --test builds it")
    start = [root / "virtual_gpu" / "tools" / "race_run"] if command == "race" else []
    run = subprocess.run([*start, path, case, "bug", "time"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         check=False)
    if not run.stderr:
        raise PageError(f"{program} {case}: exit status {run.returncode}, and nothing is said")
    return re.sub(r"^  schedule .*\n", "", run.stderr, flags=re.MULTILINE) + f"(exit status {run.returncode})"


def block(argument: str, root: pathlib.Path) -> str:
    command, program, case, *functions = argument.split()
    found = list(root.glob(f"virtual_gpu/tests/*/{program}.cu"))
    if command not in BUILDS or len(found) != 1:
        raise PageError(f"'{argument}' is not COMMAND PROGRAM CASE [FUNCTION...]")
    change = diff(found[0].read_text(encoding="utf-8"), case, functions)
    return f"```diff\n{change}\n```\n\n```\n{said(command, program, case, root)}\n```\n"


def comparable(text: str) -> str:
    """The part of a block that must stay equal: the change, the exit status, and the report without numbers."""
    change, border, report = text.partition("\n```\n\n```\n")
    report, status, end = report.rpartition("\n(exit status ")
    return change + border + mutant_blocks.in_one_order(mutant_blocks.without_numbers(report)) + status + end
