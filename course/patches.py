#!/usr/bin/env python3
"""Patches of lessons: chapters/NN_name/assignment/TASK.patch turns a header of the chapter into the solution of an extend task.

  git apply chapters/NN_name/assignment/TASK.patch   in the repository's root, to build and edit the solution

  course/patches.py                          after an edit of lessons: regenerates all patches
  course/patches.py PATCH HEADER             regenerates PATCH, which turns the chapter's header of that name into HEADER
  course/patches.py --apply PATCH HEADER     writes the solution to HEADER

A patch applies if its context is exact; its lines may have moved. If an edit has changed the context, `patch --merge` locates
the changes. If the edit and the patch changed adjacent lines, a header with conflict markers is written to work/patches:
resolve the conflicts there, and regenerate the patch from that header. Exit status 1 if there are conflicts.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
from typing import Optional, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # the repository's root
from course import work  # noqa: E402

COMMAND = "python3 -I course/patches.py"
_FILE = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)\S* \S+ @@.*\n", re.MULTILINE)


class PatchError(Exception):
    """A patch is malformed, or does not apply: one sentence."""


def header_of(patch: str) -> str:
    """The path of the header that a patch changes, relative to the repository's root. Throws PatchError."""
    found = _FILE.findall(patch)
    if len(found) != 1:
        raise PatchError(f"it changes {len(found)} files, not one")
    return str(found[0])


def applied(patch: str, header: str) -> str:
    """A header with a patch applied. Throws PatchError if a hunk matches nowhere, or in several places and not at its line."""
    lines, moved = header.splitlines(), 0
    hunks = _HUNK.split(patch)[1:]
    for line, hunk in zip(hunks[::2], hunks[1::2]):
        rows = [row or " " for row in hunk.splitlines()]
        if {row[0] for row in rows} - set(" +-"):
            raise PatchError("a line of it begins with none of a blank, + and -")
        before, after = ([row[1:] for row in rows if row[0] in kinds] for kinds in (" -", " +"))
        expected = int(line) - 1 + moved
        places = [place for place in range(len(lines)) if lines[place:place + len(before)] == before]
        if expected in places:
            places = [expected]
        if len(places) != 1:
            raise PatchError(f"its changes at line {line} fit in {len(places)} places of the header, not in one")
        lines[places[0]:places[0] + len(before)] = after
        moved += places[0] - expected + len(after) - len(before)
    return "".join(f"{line}\n" for line in lines)


def solution_of(patch: pathlib.Path, header: pathlib.Path) -> str:
    """The solution: a chapter's header with a patch applied. Throws PatchError, OSError."""
    text = patch.read_text(encoding="utf-8")
    if header_of(text) != "/".join(header.parts[-3:]):
        raise PatchError(f"it changes {header_of(text)}, not {header.name}")
    return applied(text, header.read_text(encoding="utf-8"))


def difference(before: str, after: str, path: str) -> str:
    """The patch from `before` to `after` for the header at `path`; without trailing blanks."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "".join(line.rstrip() + "\n" for line in lines)


def merged(patch: pathlib.Path, lesson: pathlib.Path) -> str:
    """The lesson's header merged with a patch whose context has changed. Throws PatchError."""
    header = work.FOLDER / "patches" / patch.stem / lesson.parent.name / lesson.name
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_bytes(lesson.read_bytes())
    try:
        run = subprocess.run(["patch", "--merge", "--silent", str(header), str(patch)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        raise PatchError("its context has changed, and the program patch, which merges, is not here") from None
    if run.returncode:
        raise PatchError(f"its changes and the lesson's are in conflict: {run.stdout.strip()}\n"
                         f"  solve the conflicts in {header}, then: {COMMAND} {patch} {header}")
    text = header.read_text(encoding="utf-8")
    header.unlink()
    return text


def remake(patch: pathlib.Path) -> bool:
    """Regenerates a patch for the current lesson; returns whether it changed. Throws PatchError, OSError."""
    old = patch.read_text(encoding="utf-8")
    lesson = patch.parents[3] / header_of(old)
    text = lesson.read_text(encoding="utf-8")
    try:
        solution = applied(old, text)
    except PatchError:
        solution = merged(patch, lesson)
    new = difference(text, solution, header_of(old))
    patch.write_text(new, encoding="utf-8")
    return new != old


def main(words: Optional[Sequence[str]] = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patch", nargs="?", type=pathlib.Path)
    parser.add_argument("header", nargs="?", type=pathlib.Path)
    parser.add_argument("--apply", action="store_true")
    chosen = parser.parse_args(words)
    if (chosen.patch is None) != (chosen.header is None):
        parser.error("a PATCH is made of a HEADER")
    status = 0
    try:
        if chosen.patch:
            lesson = chosen.patch.resolve().parents[1] / chosen.header.name
            if chosen.apply:
                chosen.header.write_text(solution_of(chosen.patch, lesson), encoding="utf-8")
            else:
                texts = [path.read_text(encoding="utf-8") for path in (lesson, chosen.header)]
                chosen.patch.write_text(difference(*texts, str(lesson.relative_to(work.REPOSITORY))), encoding="utf-8")
            return 0
        for patch in sorted(work.REPOSITORY.glob("chapters/*/assignment/*.patch")):
            try:
                if remake(patch):
                    print(f"{patch.relative_to(work.REPOSITORY)} is made anew")
            except PatchError as error:
                status = 1
                print(f"{patch.relative_to(work.REPOSITORY)}: {error}", file=sys.stderr)
    except (PatchError, OSError, ValueError) as error:
        print(f"patches.py: {error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
