"""A chapter with one planted error: the output of ./lab break, and its check of a fix.

An error is a task of the kind find (tasks.py), which names a mutant of the chapter. The reader fixes the header with the error
in work/planted/TASK/NN_name.
"""
import dataclasses
import difflib
import json
import pathlib
import re
import subprocess
import sys
from typing import Dict, List, Sequence, Tuple

from tools import mutants
from tools.chapters import all_chapters
from course import tasks, work

LINES = 22   # of a program's output, at most
WIDTH = 480  # of each line; an illegal access names its line after the kernel's name with its template arguments
GPUS = (1, 2, 3, 4)
AROUND = 14  # lines that --fix shows before and after the error
SIZES = {"speed_up": "--m 33 --n 37 --k 19", "dense": "--m 33 --n 37 --k 19",
         "sparse": "--rows 97 --features 5 --entries 23 --duplicates 4"}


@dataclasses.dataclass(frozen=True)
class Planted:
    """A planted error and its copy of the header."""

    chapter: str
    task: tasks.Task
    mutant: mutants.Mutant

    @property
    def folder(self) -> pathlib.Path:
        """The value of CMake's OVERLAP_PLANTED."""
        return work.FOLDER / "planted" / self.task.name / self.chapter

    @property
    def header(self) -> pathlib.Path:
        """The header to fix."""
        return self.folder / self.task.file

    @property
    def source(self) -> str:
        return (work.REPOSITORY / "chapters" / self.mutant.file).read_text(encoding="utf-8")

    @property
    def broken(self) -> str:
        """The header with the error, without the markers of assignments."""
        return tasks.blank.without_markers(mutants.apply_mutant(self.mutant, self.source), self.task.file)

    def lines(self) -> Tuple[int, int]:
        """The first and the last line of the error in the broken header, counted from 1; for deleted lines, the two lines
        around the gap."""
        right, wrong = tasks.blank.without_markers(self.source, self.task.file).splitlines(), self.broken.splitlines()
        edits = [edit for edit in difflib.SequenceMatcher(None, right, wrong, autojunk=False).get_opcodes() if edit[0] != "equal"]
        first, last = edits[0][3] + 1, edits[-1][4]
        return (first - 1, last + 1) if first > last else (first, last)

    def plant(self) -> bool:
        """Writes the broken header unless it exists; returns whether it was written."""
        if self.header.exists():
            return False
        self.header.parent.mkdir(parents=True, exist_ok=True)
        self.header.write_text(self.broken, encoding="utf-8")
        return True

    def plant_again(self) -> str:
        """Writes the broken header again; returns where an edited one was kept."""
        kept = ""
        if self.header.exists() and self.header.read_text(encoding="utf-8") != self.broken:
            kept = shown(work.keep_backup(self.header))
        self.header.unlink(missing_ok=True)
        self.plant()
        return kept


def errors_of(chapter: str) -> Dict[str, Planted]:
    """The planted errors of a chapter by task, the easy ones first. Throws WorkError."""
    folder = work.REPOSITORY / "chapters" / chapter
    try:
        return {task.name: Planted(chapter, task, mutants.read_mutant(folder / "mutants" / f"{task.mutant}.mutant"))
                for task in tasks.read_tasks(folder).values() if task.kind == "find"}
    except (tasks.TaskError, mutants.MutantError, OSError) as error:
        raise work.WorkError(str(error)) from None


def choose(chapter: str, wanted: str) -> Planted:
    """The error of this task or mutant; by default the first one. Throws WorkError."""
    errors = errors_of(chapter)
    if not errors:
        raise work.WorkError(f"{chapter} has no planted error to find")
    if not wanted:
        return next(iter(errors.values()))
    for name, error in errors.items():
        if wanted in (name, error.task.mutant):
            return error
    raise work.WorkError(f"{chapter} has no planted error '{wanted}'; its errors are: {', '.join(errors)}")


def runs(chapter: str, sizes: str = "") -> List[List[str]]:
    """Command lines of uneven sizes on 1, 2, 3 and 4 GPUs: those for blanks if the manifest has any (perhaps for one GPU only),
    else `sizes`."""
    manifest = all_chapters()[chapter]
    own = str(manifest.tests.get("blank", ""))
    words = re.sub(r"--gpus \d+", "", own or sizes or SIZES[manifest.kind]).split()
    if "--iterations" not in words:
        words += ["--iterations", "1", "--warmup", "0"]
    gpus = (1,) if re.search(r"--gpus 1\b", own) else GPUS
    return [["--gpus", str(number), *words] for number in gpus]


def cases(error: Planted) -> List[List[str]]:
    """The command lines that a fix must pass: the error's own, and uneven sizes."""
    return [error.mutant.arguments, *runs(error.chapter)]


def said(command: Sequence[str], limit: float = 120) -> Tuple[int, str]:
    """A program's exit status, its first lines of output, and its last line."""
    try:
        run = subprocess.run(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=limit, check=False, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return 124, f"it did not end within {limit:g} s"
    half = WIDTH // 2
    lines = [line if len(line) <= WIDTH else f"{line[:half - 5]} ... {line[-half:]}" for line in run.stdout.rstrip().splitlines()]
    return run.returncode, "\n".join(lines if len(lines) <= LINES else [*lines[:LINES - 2], "...", lines[-1]])


def quoted(error: Planted, report: str) -> str:
    """The lines of the broken header that a report names."""
    lines = error.header.read_text(encoding="utf-8").splitlines()
    named = sorted({int(number) for number in re.findall(rf"\b{re.escape(error.header.name)}:(\d+)", report)})
    return "\n".join(f"{error.header.name}:{number}  {lines[number - 1].strip()}" for number in named if number <= len(lines))


def timeline_arguments(error: Planted) -> List[str]:
    """The arguments of the run whose timeline is drawn."""
    if error.task.timeline:
        return error.task.timeline.split()
    pictures = all_chapters()[error.chapter].pictures
    return str(next(iter(pictures.values()))).split() if pictures else error.mutant.arguments


def draw(error: Planted, right: Sequence[str], wrong: Sequence[str]) -> str:
    """Draws both timelines into one picture; returns its path, or why there is none."""
    folder = error.folder.parent
    traces = []
    for name, program in (("as in the chapter", right), ("with the error", wrong)):
        trace = folder / f"{name.replace(' ', '_')}.json"
        trace.unlink(missing_ok=True)
        arguments = [*timeline_arguments(error), "--no-check", "--timeline", str(trace)]
        status, text = said([*program, *arguments])
        if status != 0 or not trace.is_file():
            return f"there is no timeline {name}: {(text.splitlines() or ['nothing is said'])[-1]}"
        _rename(trace, name)
        traces.append(str(trace))
    picture = folder / "timelines.svg"
    drawn = subprocess.run([sys.executable, str(work.REPOSITORY / "tools" / "pages" / "draw_timeline.py"), *traces, "-o", str(picture)],
                           capture_output=True, text=True, check=False)
    if drawn.returncode != 0:
        return f"there is no picture: {drawn.stderr.strip()}"
    return shown(picture)


def _rename(path: pathlib.Path, name: str) -> None:
    """Adds the program's name to the sections of a trace, and removes the baseline."""
    trace = json.loads(path.read_text(encoding="utf-8"))
    sections = {event["pid"]: event["args"]["labels"] for event in trace["traceEvents"] if event["name"] == "process_labels"}
    if set(sections.values()) - {"gemm_only"}:  # the baseline does not run the error
        trace["traceEvents"] = [event for event in trace["traceEvents"] if sections[event["pid"]] != "gemm_only"]
    for event in trace["traceEvents"]:
        if event["name"] == "process_labels":
            event["args"]["labels"] = f"{event['args']['labels']}, {name}".lstrip(", ")
    path.write_text(json.dumps(trace), encoding="utf-8")


def shown(path: pathlib.Path) -> str:
    """A path as typed in the repository's root."""
    return str(path.relative_to(work.REPOSITORY) if work.REPOSITORY in path.parents else path)


def numbered(error: Planted, text: str) -> str:
    """The numbered lines around the error; its position among them varies."""
    lines = text.splitlines()
    first, last = error.lines()
    shift = (first * 7) % AROUND  # so that the position does not reveal the error
    begin = max(1, first - AROUND + shift // 2)
    end = min(len(lines), last + AROUND - shift // 2)
    return "\n".join(f"{number:4d}  {lines[number - 1]}" for number in range(begin, end + 1))
