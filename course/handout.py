"""Makes the hand-out of a chapter (./lab start), and resets it (./lab reset).

A hand-out is a folder NN_name in work/ (or FOLDER) that builds by itself:

  TASKS.md         the tasks, in the words of the student's variation (variation.py)
  *.cuh            the headers with regions to rebuild: questions replace the code
  README.md        the chapter's page, without that code and without the planted error that it shows
  CMakeLists.txt   builds it with this repository
  try              ./try tests the current state, ./try --pack writes the one file to submit

All other headers are the chapter's. start overwrites nothing; reset keeps the old files as NAME.bak-N.
"""
import json
import pathlib
import re
from typing import Dict, List

from tools.chapters import all_chapters
from course import helpers, page, tasks, variation, work

CMAKE = """# Builds this hand-out by hand, in a folder of its own. (./try builds in the repository's folder, which is faster.)
#   cmake -S . -B build -G Ninja [-D OVERLAP_REPOSITORY=...] && cmake --build build --target work_{chapter} && build/work/{chapter}
cmake_minimum_required(VERSION 3.25)
project(hand_out LANGUAGES NONE)
file(GLOB beside LIST_DIRECTORIES true ${{CMAKE_CURRENT_SOURCE_DIR}}/../* ${{CMAKE_CURRENT_SOURCE_DIR}}/../../*)
find_path(OVERLAP_REPOSITORY course/try_work.py PATHS ENV OVERLAP_REPOSITORY ${{CMAKE_CURRENT_SOURCE_DIR}}/../.. ${{beside}}
  NO_DEFAULT_PATH REQUIRED)
set(OVERLAP_WORK "${{CMAKE_CURRENT_SOURCE_DIR}}" CACHE PATH "")
add_subdirectory(${{OVERLAP_REPOSITORY}} overlap)
"""

TRY = """#!/bin/sh
# What is right so far: ./try. What else it does: ./try --help.
# The repository is found by ./try --repository FOLDER, which is kept in .repository, by $OVERLAP_REPOSITORY, above this folder or
# beside it.
here=$(dirname -- "$(readlink -f -- "$0")")
if [ "$1" = --repository ]; then
  found=$(cd -- "$2" && pwd) || exit 2
  printf '%s\\n' "$found" > "$here/.repository"
  shift 2
fi
kept=$(cat -- "$here/.repository" 2> /dev/null)
for found in "$OVERLAP_REPOSITORY" "$kept" "$here/../.." "$here/.."/* "$here/../.."/*; do
  if [ -n "$found" ] && [ -e "$found/course/try_work.py" ]; then exec python3 -I "$found/course/try_work.py" "$here" "$@"; fi
done
echo "the repository is not found: say where it is, once: ./try --repository FOLDER" >&2
exit 2
"""


def headers(chapter: str, all_tasks: Dict[str, tasks.Task], way: variation.Variation) -> Dict[str, str]:
    """The headers of a hand-out: name -> text with questions."""
    files = sorted({task.file for task in all_tasks.values() if task.kind in ("rebuild", "extend")})
    folder = work.REPOSITORY / "chapters" / chapter
    return {file: tasks.blank.blanked(way.apply((folder / file).read_text(encoding="utf-8")), file) for file in files}


def solved(chapter: str, file: str, way: variation.Variation) -> str:
    """The header with all rebuild tasks solved, in this variation."""
    text = (work.REPOSITORY / "chapters" / chapter / file).read_text(encoding="utf-8")
    return tasks.blank.without_markers(way.apply(text), file)


def instructions(chapter: str, all_tasks: Dict[str, tasks.Task], way: variation.Variation, student: str) -> str:
    number = chapter[:2]
    lines = [f"# Tasks of chapter {chapter}", ""]
    if student:
        lines += [f"For {student}.", ""]
    if way.kind != "none":
        lines += [f"Your variation: {way.kind}, {way.name}.", "What follows, the header and the page say it that way.", ""]
    lines += ["`./try` says what is right so far, `./try --check` also looks for wrong accesses, `./try --schedule 7` runs all of it in "
              "another order of events, `./try --hint TASK` gives hints, `./try --run --help` runs the chapter's program with your "
              "header, and `./try --pack` writes the one file to hand in.",
              "If it does not find the repository, say once where it is: `./try --repository FOLDER`.", ""]
    for task in all_tasks.values():
        if task.kind == "exercise":
            continue
        facts = f"{task.minutes} minutes, difficulty {task.difficulty} of 3, {task.points} points"
        needs = "" if task.needs == "nothing" else f"; needs {task.needs}"
        lines += [f"## {task.name}: {way.apply(task.title)}", "", f"*{facts}{needs}.*", ""]
        if task.kind == "rebuild":
            lines += [f"In `{task.file}`, at {' and '.join(f'`TASK {region}`' for region in task.regions)}.", ""]
        if task.kind == "extend":
            lines += [f"Extend `{task.file}`: a header that takes its place.", ""]
        if task.kind == "find":
            lines += [f"`./lab break {number} {task.name}` in the repository plants the error, and `--fix` checks the cure.", ""]
        lines += [way.apply(task.text), ""]
    shown = helpers.shown(chapter, headers(chapter, all_tasks, way), way)
    if shown:
        lines += ["## Helpers", "", "Your code needs these, which the header calls nowhere else:", "", "```cpp", shown, "```", ""]
    return "\n".join(lines)


def write(folder: pathlib.Path, files: Dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def start(chapter: str, student: str, key_file: str, to: str) -> pathlib.Path:
    """Makes a hand-out; returns its folder. Throws WorkError, TaskError."""
    folder = (pathlib.Path(to).resolve() if to else work.FOLDER) / chapter
    if folder.exists():
        again = "" if to else f" (./lab reset {chapter[:2]} begins again, and keeps it)"
        raise work.WorkError(f"{folder} is already there: it may hold somebody's work{again}")
    if not re.fullmatch(r"[\w.@+-]{0,80}", student):
        raise work.WorkError(f"the ID '{student}' has other characters than letters, digits and . _ @ + -")
    if key_file and not student:
        raise work.WorkError("--key says how the variation of --student is chosen: it needs --student")
    all_tasks = tasks.read_tasks(work.REPOSITORY / "chapters" / chapter)
    if not any(task.kind == "rebuild" for task in all_tasks.values()):
        raise work.WorkError(f"{chapter} has no tasks yet")
    work.cmake_path(folder)
    key = variation.key_of(key_file)
    way = variation.of_student(chapter, student, key)
    kind = all_chapters()[chapter].kind
    record = {"chapter": chapter, "student": student, "variation": way.name, "sizes": variation.sizes(kind, student, key)}
    write(folder, {
        **headers(chapter, all_tasks, way), "TASKS.md": instructions(chapter, all_tasks, way, student),
        "README.md": page.without_answers(chapter, folder, headers(chapter, all_tasks, way), way),
        "CMakeLists.txt": CMAKE.format(chapter=chapter), "try": TRY, work.RECORD: json.dumps(record, indent=2) + "\n"})
    (folder / "try").chmod(0o755)
    return folder


def way_of(record: Dict[str, object]) -> variation.Variation:
    """The variation of a hand-out. Throws WorkError."""
    for way in variation.ways(str(record["chapter"])):
        if way.name == record.get("variation"):
            return way
    raise work.WorkError(f"{record['chapter']} has no variation '{record.get('variation')}' any more")


def reset(chapter: str) -> List[str]:
    """Resets the headers of a hand-out; returns which files were kept, and where. Throws WorkError, TaskError."""
    folder = work.started(chapter)
    all_tasks = tasks.read_tasks(work.REPOSITORY / "chapters" / chapter)
    kept = []
    for name, text in headers(chapter, all_tasks, way_of(work.record_of(folder))).items():
        path = folder / name
        if path.exists() and path.read_bytes() == text.encode():
            continue
        if path.exists():
            kept.append(f"{name} is kept in {work.keep_backup(path).name}")
        write(folder, {name: text})
    return kept
