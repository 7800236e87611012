"""The folder of a student's work: work/NN_name in the repository (ignored by git), or the one given to ./lab start --to.

  work/NN_name/                the hand-out: TASKS.md, README.md, headers with questions, CMakeLists.txt, try
  work/NN_name/.handout.json   its chapter and student
  work/hints/NN_name.json      the number of hints shown for each task
  work/planted/TASK/NN_name/   the header with a planted error (./lab break)
  work/patches/TASK/NN_name/   the header with merge conflicts of an edit and a solution (patches.py)
"""
import difflib
import json
import pathlib
import re
import shutil
from typing import Any, Dict, Iterable

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "work"
RECORD = ".handout.json"


class WorkError(Exception):
    """A command cannot continue: one sentence."""


def meant(word: str, names: Iterable[str]) -> str:
    """": did you mean NAME?" if one of the names is similar to the word; else empty."""
    close = difflib.get_close_matches(word, list(names), 1)
    return f": did you mean {close[0]}?" if close else ""


def started(chapter: str) -> pathlib.Path:
    """The folder of an existing hand-out. Throws WorkError."""
    folder = FOLDER / chapter
    if not (folder / RECORD).is_file():
        raise WorkError(f"there is no hand-out in work/{chapter}: ./lab start {chapter[:2]} makes it")
    return folder


def record_of(folder: pathlib.Path) -> Dict[str, Any]:
    """The record of a hand-out: chapter, student. Throws WorkError."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkError(f"{folder / RECORD} cannot be read: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("chapter"), str):
        raise WorkError(f"{folder / RECORD} is no record of a hand-out")
    return record


def cmake_path(folder: pathlib.Path) -> str:
    """A folder as CMake expects it. Throws WorkError."""
    if re.search(r'[;\\$"@\n]', str(folder)):
        raise WorkError(f'CMake cannot build in a folder with one of ; \\ $ " @ in its path: {folder}')
    return str(folder)


def keep_backup(path: pathlib.Path) -> pathlib.Path:
    """Copies a file to the next unused NAME.bak-N; returns the copy's path."""
    number = 1
    while path.with_name(f"{path.name}.bak-{number}").exists():
        number += 1
    backup = path.with_name(f"{path.name}.bak-{number}")
    shutil.copyfile(path, backup)
    return backup
