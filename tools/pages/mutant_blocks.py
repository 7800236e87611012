#!/usr/bin/env python3
"""The blocks `mutant` of pages: a mutant of the chapter as a diff, the command that shows its error, and the output.

  <!-- mutant NN MUTANT --> ... <!-- /mutant -->    chapters/NN_*/mutants/MUTANT.mutant

The mutant's program is the one that its test builds and runs (tests/mutants/CMakeLists.txt): with the verdict race in the race
build, else in the one for virtual GPUs. `./lab pages` builds those that pages name; the slow tests and those of the race build
have built them already.

  tools/pages/mutant_blocks.py --targets    "BUILD TARGET" for each mutant that a page names, one a line
"""
import argparse
import difflib
import pathlib
import re
import shlex
import sys
from typing import Iterator, List, Sequence, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools import mutants  # noqa: E402
from tools.mutants import Mutant, MutantError  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^<!-- mutant (.+) -->$", re.MULTILINE)
_ANNOUNCEMENT = re.compile(r"Running main\(\) from |Note: Google Test filter = |\[(?:=+|-+| RUN +)\] ")
LINES = 25   # lines of the program's output, at most
CONTEXT = 2  # lines around the change
LIMIT_S = 60.0


def mutant_of(argument: str, root: pathlib.Path) -> Mutant:
    """The mutant that "NN MUTANT" names; NN may also be NN_EXPERIMENT."""
    chapter, _, name = argument.partition(" ")
    found = list(root.glob(f"chapters/{chapter[:2]}_*/mutants/{name}.mutant"))
    if len(found) != 1 or not re.fullmatch(r"\d\d(_\w+)? \w+", argument):
        raise MutantError(f"'{argument}' names no mutant: NN MUTANT, of chapters/NN_*/mutants/MUTANT.mutant")
    mutant = mutants.read_mutant(found[0])
    if len(chapter) > 2 and chapter not in (mutant.chapter, mutant.program):
        raise MutantError(f"the mutant {name} is none of {chapter}, but of {mutant.program or mutant.chapter}")
    return mutant


def build_of(mutant: Mutant) -> str:
    """The build that its test is in."""
    return "race" if mutant.verdict == "race" else "virtual"


def target_of(mutant: Mutant) -> str:
    """The target, and the program in bin/changed."""
    return f"mutant_{mutant.chapter}_{mutant.path.stem}"


def diff(mutant: Mutant, root: pathlib.Path) -> str:
    """The change as `patch -p0` takes it."""
    source = (root / "chapters" / mutant.file).read_text(encoding="utf-8")
    changed = mutants.apply_mutant(mutant, source)
    path = f"chapters/{mutant.file}"
    return "\n".join(difflib.unified_diff(source.splitlines(), changed.splitlines(), path, path, n=CONTEXT, lineterm=""))


def command(mutant: Mutant) -> str:
    """The command that shows the error in a repository with the change."""
    race = build_of(mutant) == "race"
    if mutant.test:
        words = [*(["virtual_gpu/tools/race_run"] if race else []), f"build/{build_of(mutant)}/bin/{mutant.chapter}_test"]
    else:
        number, _, experiment = (mutant.program or mutant.chapter).partition("_")
        words = ["./lab", "race" if race else "run", f"{number}/{experiment}" if mutant.program else number]
    return shlex.join([*words, *mutant.arguments])


def said(mutant: Mutant, root: pathlib.Path) -> Tuple[str, int]:
    """The output of the mutant's program, and its exit status. Throws MutantError if the program is missing, is older than its
    sources, or its verdict is not the one that its test requires."""
    program = root / "build" / build_of(mutant) / "bin" / "changed" / target_of(mutant)
    how = "./lab pages builds it, and so does ./lab " + ("race --test" if build_of(mutant) == "race" else "test --slow")
    if not program.exists():
        raise MutantError(f"{program.relative_to(root)} is not built: {how}")
    for source in (mutant.path, root / "chapters" / mutant.file):
        if source.stat().st_mtime > program.stat().st_mtime:
            raise MutantError(f"{program.relative_to(root)} is older than {source.relative_to(root)}: {how}")
    start = [str(root / "virtual_gpu" / "tools" / "race_run")] if build_of(mutant) == "race" else []
    try:
        run = mutants.run(program, mutant.arguments, LIMIT_S, start)
        verdict = mutants.verdict_of(run.returncode, run.stdout)
    except mutants.NoVerdict as reason:
        raise MutantError(f"{program.name}: {reason}") from None
    if verdict != mutant.verdict:
        raise MutantError(f"{program.name}: its verdict is '{verdict}', not '{mutant.verdict}'")
    return run.stdout.replace(f"{root}/", ""), run.returncode  # a test prints its file's whole path


def shortened(text: str) -> str:
    """The first lines, without GoogleTest's announcements, and three dots if there were more."""
    lines = [line for line in text.rstrip().splitlines() if not _ANNOUNCEMENT.match(line)]
    return "\n".join(lines if len(lines) <= LINES else [*lines[:LINES - 1], "..."])


def block(argument: str, root: pathlib.Path = REPOSITORY) -> str:
    mutant = mutant_of(argument, root)
    change, (text, status) = diff(mutant, root), said(mutant, root)
    return f"```diff\n{change}\n```\n\n```\n$ {command(mutant)}\n{shortened(text)}\n(exit status {status})\n```\n"


def comparable(text: str) -> str:
    """The part of a block that must stay equal: the change, the command, its exit status, and the output without numbers."""
    change, command_line, rest = re.split(r"(^\$ .*\n)", text, maxsplit=1, flags=re.MULTILINE) if "\n$ " in text else (text, "", "")
    said_so, status, end = rest.rpartition("\n(exit status ")
    return re.sub(r"^@@ .* @@$", "@@", change, flags=re.MULTILINE) + command_line + in_one_order(without_numbers(said_so)) + status + end


def without_numbers(text: str) -> str:
    """Modelled times, lines and addresses may change with the compiler."""
    return re.sub(r" *\b[\da-f.]*\d[\da-f.]*\b", " #", text)


def in_one_order(text: str) -> str:
    """The report with a race's two accesses in a fixed order, because their order may differ between runs."""
    return re.sub(r"(?:^  (?:read|write) by .*\n){2}", lambda accesses: "".join(sorted(accesses.group().splitlines(True))), text,
                  flags=re.MULTILINE)


def targets(pages: Sequence[pathlib.Path], root: pathlib.Path) -> Iterator[str]:
    """The targets that the blocks of these pages need."""
    arguments: List[str] = [argument for page in pages for argument in BLOCK.findall(page.read_text(encoding="utf-8"))]
    for argument in sorted(set(arguments)):
        mutant = mutant_of(argument, root)
        yield f"{build_of(mutant)} {target_of(mutant)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--targets", action="store_true", required=True, help="what must be built for the pages")
    parser.parse_args()
    try:
        print("\n".join(targets(sorted(REPOSITORY.glob("chapters/**/*.md")), REPOSITORY)))
    except (MutantError, OSError) as error:
        print(f"mutant_blocks.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
