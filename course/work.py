"""Where a student's work lies: work/NN_name in the repository (which git ignores), or where ./lab start --to has put it.

  work/NN_name/                the hand-out: TASKS.md, README.md, headers with questions, CMakeLists.txt, try
  work/NN_name/.handout.json   what it was made of: chapter, student
  work/hints/NN_name.json      how many hints of each task were asked for
  work/planted/TASK/NN_name/   the header with a planted error (./lab break)
  work/patches/TASK/NN_name/   the header with an edit and a solution that are in conflict (patches.py)
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
    """Why a command cannot go on: one sentence."""


def meant(word: str, names: Iterable[str]) -> str:
    """": did you mean NAME?" if one of the names is much like the word; else nothing."""
    close = difflib.get_close_matches(word, list(names), 1)
    return f": did you mean {close[0]}?" if close else ""


def folder_of(chapter: str) -> pathlib.Path:
    """Where the hand-out of a chapter lies."""
    return FOLDER / chapter


def started(chapter: str) -> pathlib.Path:
    """The folder of a hand-out that is there. Throws WorkError."""
    folder = folder_of(chapter)
    if not (folder / RECORD).is_file():
        raise WorkError(f"there is no hand-out in work/{chapter}: ./lab start {chapter[:2]} makes it")
    return folder


def record_of(folder: pathlib.Path) -> Dict[str, Any]:
    """What a hand-out was made of. Throws WorkError."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkError(f"{folder / RECORD} cannot be read: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("chapter"), str):
        raise WorkError(f"{folder / RECORD} is no record of a hand-out")
    return record


def cmake_path(folder: pathlib.Path) -> str:
    """A folder as CMake takes it. Throws WorkError."""
    if re.search(r'[;\\$"@\n]', str(folder)):
        raise WorkError(f'CMake cannot build in a folder with one of ; \\ $ " @ in its path: {folder}')
    return str(folder)


def keep_backup(path: pathlib.Path) -> pathlib.Path:
    """Copies a file to NAME.bak-N beside it, N being the next number."""
    number = 1
    while path.with_name(f"{path.name}.bak-{number}").exists():
        number += 1
    backup = path.with_name(f"{path.name}.bak-{number}")
    shutil.copyfile(path, backup)
    return backup
