"""Finds the submissions of a class in a folder: a file, a folder or an archive for each student.

  Student Name_12345_assignsubmission_file_/ring_all_gather.cuh     Moodle
  ID/ring_all_gather.cuh    ID.cuh    ID.zip
"""
import dataclasses
import hashlib
import pathlib
import re
import stat
import zipfile
from typing import Dict, List, Sequence

import gate
from grader import Unreadable, read_file
from task import Task

MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?.*")
MOST_MEMBERS = 1000
MOST_ARCHIVE = 16 * 1024 * 1024


@dataclasses.dataclass
class Submission:
    """One submission; if it cannot be graded, `problem` says why."""

    name: str
    data: bytes = b""
    problem: str = ""
    student: str = ""  # the ID that determines its variation


def find(folder: pathlib.Path, task: Task) -> List[Submission]:
    """All submissions in a folder, by name. If two have one name, both are rejected."""
    found: Dict[str, Submission] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        name = name_of(path.name)
        if name in found:
            found[name] = Submission(name, problem="two submissions have this name")
            continue
        try:
            found[name] = Submission(name, _data(path, task))
        except Unreadable as error:
            found[name] = Submission(name, problem=str(error))
    return list(found.values())


def name_of(entry: str) -> str:
    """A student's number and name in Moodle, else the file's name without its extension; without control characters."""
    match = MOODLE.fullmatch(entry)
    name = f"{match.group('name')} {match.group('id')}" if match else re.sub(r"(\.handin)?\.(cuh|zip)$", "", entry)
    return re.sub(r"[\x00-\x1f\x7f]", "?", name)


def file_name(name: str) -> str:
    """The file name of a submission's report; different names give different file names."""
    plain = re.sub(r"[^\w.@+ -]", "_", name).lstrip(".")[:100]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def read_ids(path: pathlib.Path) -> Dict[str, str]:
    """The student's ID for each submission, from lines ID or SUBMISSION,ID; SUBMISSION is a name or Moodle's number. Throws
    Unreadable."""
    found: Dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None
    for line in filter(None, map(str.strip, lines)):
        name, _, student = (cell.strip() for cell in line.partition(","))
        if found.setdefault(name, student or name) != (student or name):
            raise Unreadable(f"{path}: '{name}' is there twice")
    return found


def with_ids(found: Sequence[Submission], ids: Dict[str, str]) -> List[Submission]:
    """Sets each submission's student ID. Exactly one ID must be listed for its name, or for the name's beginning or end."""
    made = []
    for each in found:
        parts = {each.name, *each.name.rpartition(" ")[::2], each.name.partition("-")[2]}
        students = sorted({ids[part] for part in parts if part in ids})
        problem = "" if len(students) == 1 else f"the list of IDs has {len(students) or 'none'} for it"
        made.append(dataclasses.replace(each, student="" if problem else students[0], problem=each.problem or problem))
    return made


def _data(path: pathlib.Path, task: Task) -> bytes:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return _of_folder(path, task)
    if path.suffix == ".zip" and stat.S_ISREG(mode):
        return _of_archive(path, task)
    return read_file(path)


def _chosen(names: List[str], task: Task) -> str:
    """The header among the files' names."""
    headers = [name for name in names if name.endswith(".cuh")]
    right = [name for name in headers if pathlib.PurePosixPath(name).name == task.header]
    candidates = right or headers
    if not candidates:
        raise Unreadable(f"there is no {task.header} in it")
    if len(candidates) > 1:
        raise Unreadable(f"there are {len(candidates)} headers in it: {', '.join(sorted(candidates)[:3])}")
    return candidates[0]


def _of_folder(folder: pathlib.Path, task: Task) -> bytes:
    names = []
    for path in sorted(folder.rglob("*")):
        if "__MACOSX" not in path.parts and not path.is_dir() or path.is_symlink():
            names.append(str(path.relative_to(folder)))
        if len(names) > MOST_MEMBERS:
            raise Unreadable(f"there are more than {MOST_MEMBERS} files in it")
    archives = [name for name in names if name.endswith(".zip")]
    if len(archives) == 1 and not any(name.endswith(".cuh") for name in names):
        if (folder / archives[0]).is_symlink():
            raise Unreadable("a symbolic link is not graded")
        return _of_archive(folder / archives[0], task)
    return read_file(folder / _chosen(names, task))


def _of_archive(path: pathlib.Path, task: Task) -> bytes:
    """Reads one member in memory and extracts no files, so that its path does not matter."""
    if path.stat().st_size > MOST_ARCHIVE:
        raise Unreadable(f"the archive is larger than {MOST_ARCHIVE // (1024 * 1024)} MiB")
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir() and "__MACOSX" not in info.filename]
            if len(members) > MOST_MEMBERS:
                raise Unreadable(f"there are more than {MOST_MEMBERS} files in it")
            for info in members:
                parts = pathlib.PurePosixPath(info.filename.replace("\\", "/")).parts
                if ".." in parts or info.filename.startswith(("/", "\\")):
                    raise Unreadable(f"the archive reaches out of its folder: {info.filename[:80]}")
            chosen = archive.getinfo(_chosen([info.filename for info in members], task))
            if stat.S_ISLNK(chosen.external_attr >> 16):
                raise Unreadable("a symbolic link is not graded")
            if chosen.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # other methods may need much memory
                raise Unreadable("the archive is packed in an unusual way")
            with archive.open(chosen) as file:
                data = file.read(gate.MOST_BYTES + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Unreadable(f"the archive cannot be read: {error}") from None
    if len(data) > gate.MOST_BYTES:
        raise Unreadable(f"it is larger than {gate.MOST_BYTES // 1024} KiB")
    return data
