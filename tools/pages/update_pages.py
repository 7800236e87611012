#!/usr/bin/env python3
"""Writes the generated parts of the pages: code excerpts, programs' output, measured tables and timelines.

A page contains pairs of HTML comments; this script writes the text between them:
  <!-- code FILE START --> ... <!-- /code -->   the function or class whose first line contains START, comment included
  <!-- output ARGUMENTS --> ... <!-- /output -->  the output of `./lab run ARGUMENTS` on virtual GPUs
  <!-- tests --> ... <!-- /tests -->              the last lines of `./lab test` there (not checked, because CI runs the tests)
  <!-- race CASE --> ... <!-- /race -->          the race build's report on a planted bug (after `./lab race --test`)
  <!-- race PROGRAM GPUS --> ... <!-- /race -->  the same of a program of one file, on GPUS GPUs
  <!-- mutant NN MUTANT --> ... <!-- /mutant -->       a mutant as a diff, and its program's output (after ./lab pages; see
  mutant_blocks.py)
  <!-- planted COMMAND PROGRAM CASE --> ... <!-- /planted -->  a planted bug with its cure, and its report (see planted_blocks.py)
  <!-- calls --> ... <!-- /calls -->              the index of CUDA's, NCCL's and cuBLAS' calls, see call_index.py
  <!-- results CHAPTER --> ... <!-- /results -->  the chapter's measured table, from docs/results/*.json
  <!-- results CHAPTER SECTION --> ... <!-- /results -->  the table of the chapter's results of that section; `SECTION folded`:
                                        the first one for each number of GPUs, the others in a fold
  <!-- profile CHAPTER --> ... <!-- /profile -->  Nsight Compute's counters, from the same files
  <!-- figures ARTICLE --> ... <!-- /figures -->  an article's figures next to ours, see article_figures.py
  <!-- ladder dense|sparse|kernels|latency|short --> ... <!-- /ladder -->  a table of chapters and peers, see readme_ladders.py
  <!-- commands --> ... <!-- /commands -->        the commands of ./lab for readers
  <!-- planner WHAT --> ... <!-- /planner -->  predictions of ./lab plan, or its errors, see planner_page.py and sparse_page.py
  <!-- tasks --> ... <!-- /tasks -->              the tasks of all chapters, with minutes and points, see course/tasks.py
and, inside a line:
  <!-- line FILE START -->...<!-- /line -->       a link to the line of FILE that contains START
Excerpts omit the markers of assignments (see blank.py).

The pictures that the manifests name (chapters.py) are timelines of chapters on virtual GPUs, drawn by tools/pages/draw_timeline.py,
and plots of measured results, drawn by tools/results/plot_results.py. planner_page.py draws the pictures of predictions,
sparse_page.py that of the sparse progression.

  tools/pages/update_pages.py           rewrites the pages and the pictures
  tools/pages/update_pages.py --measured  only the blocks from docs/results: needs no build
  tools/pages/update_pages.py --check   exit status 1 and the names of the pages and pictures that have drifted; with a day in
                                        OVERLAP_TURNS programs, mutants and timelines of three chapters run

Modelled times depend on how the compiler divides kernels into basic blocks, so the check compares a program's output and
its timeline without numbers; everything else must be equal.
"""
import argparse
import concurrent.futures
import difflib
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.pages import mutant_blocks  # noqa: E402
from tools.pages import planner_page, planted_blocks, sparse_page  # noqa: E402
from tools.results import plot_results  # noqa: E402
from tools.pages.article_figures import figures_table  # noqa: E402
from course.blank import TaskError, without_markers  # noqa: E402
from tools.pages.call_index import call_table  # noqa: E402
from tools.chapters import ManifestError, Plot, all_chapters  # noqa: E402
from tools.pages.excerpts import PageError, excerpt_of  # noqa: E402
from tools.results.ladder import profile_table, results_table  # noqa: E402
from tools.mutants import MutantError  # noqa: E402
from tools.results.planner import PlanError  # noqa: E402
from tools.pages.readme_ladders import LADDERS, SHORT, ladder_table  # noqa: E402
from tools.results.results import load  # noqa: E402
from course import tasks  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"<!-- line (\S+) (.+?) -->.*?<!-- /line -->")


def is_turn(program: str) -> bool:
    """True if it is the turn of NN or NN/EXPERIMENT to be checked, by the rule of overlap_is_turn in tests/CMakeLists.txt."""
    day = os.environ.get("OVERLAP_TURNS", "")
    return not day or (int(program[:2]) - int(day)) % 7 == 0


def pictures() -> Dict[str, Tuple[str, ...]]:
    """The timelines: file -> the number of the chapter that it shows, and the program's arguments."""
    return {f"chapters/{chapter.name}/{name}.svg": (word, *arguments.split())
            for chapter in all_chapters().values()
            for word, drawn in [(chapter.number, chapter.pictures), *((each.word, each.pictures) for each in chapter.experiments)]
            for name, arguments in drawn.items()}


def plots() -> Dict[str, Tuple[str, Plot]]:
    """The plots of measured results: file -> the chapter, and the plot's description in its manifest."""
    return {f"chapters/{chapter.name}/{name}.svg": (chapter.name, plot)
            for chapter in all_chapters().values() for name, plot in chapter.plots.items()}


def read(path: str) -> str:
    try:
        return (REPOSITORY / path).read_text()
    except OSError as error:
        raise PageError(f"{path}: {error.strerror}") from None


def only_line(lines: List[str], path: str, start: str) -> int:
    """The index of the only line that contains `start`."""
    hits = [number for number, line in enumerate(lines) if start in line]
    if len(hits) != 1:
        raise PageError(f"{path} has {len(hits)} lines with '{start}'")
    return hits[0]


def link_to_line(path: str, start: str, page: pathlib.Path) -> str:
    """A link from a page to the line of a file that contains `start`: "column_split.cuh:25"."""
    number = only_line(read(path).splitlines(), path, start) + 1
    target = os.path.relpath(REPOSITORY / path, page.parent)
    return f"<!-- line {path} {start} -->[{pathlib.Path(path).name}:{number}]({target}#L{number})<!-- /line -->"


def excerpt(path: str, start: str) -> str:
    """The lines from the comment above the line that contains `start` to its closing brace, without common indent."""
    try:
        lines = without_markers(read(path), path).splitlines()
    except TaskError as error:
        raise PageError(str(error)) from None
    return excerpt_of(lines, only_line(lines, path, start))


def lab(*arguments: str) -> str:
    """The output of ./lab for these arguments on virtual GPUs."""
    return printed("./lab", "--backend", "virtual", *arguments)


def printed(*command: str) -> str:
    """The output of a command that must succeed."""
    run = subprocess.run(command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise PageError(f"{' '.join(command)}: exit status {run.returncode}: {run.stderr.strip()}")
    return run.stdout.rstrip()


@functools.lru_cache(maxsize=None)
def built(program: str) -> pathlib.Path:
    """The program of a chapter, or of its experiment (NN/NAME)."""
    number, _, experiment = program.partition("/")
    folder, = (REPOSITORY / "chapters").glob(f"{number}_*")
    return REPOSITORY / "build" / "virtual" / "bin" / (f"{number}_{experiment}" if experiment else folder.name)


@functools.lru_cache(maxsize=None)
def output(arguments: str) -> str:
    """A chapter's output on virtual GPUs, below the command."""
    chapter, *own = arguments.split()
    return f"```\n$ ./lab run {arguments}\n{printed(str(built(chapter)), *own)}\n```\n"


def tests() -> str:
    """The last lines of the quick tests' output."""
    closing = [line for line in lab("test").splitlines() if re.search(r"tests passed|Total Test time", line)]
    return "```\n$ ./lab test\n" + "\n".join(closing) + "\n```\n"


def race(case: str) -> str:
    """The race build's report on a case of virtual_gpu/tests/race/planted_bugs.cu, or on "PROGRAM GPUS"."""
    name, _, gpus = case.partition(" ")
    arguments = [] if gpus else [case, "bug", "time"]
    program = REPOSITORY / "build" / "race" / "bin" / (name if gpus else "planted_bugs")
    if not program.exists():
        raise PageError(f"{program.relative_to(REPOSITORY)} is not built: ./lab race --test builds it")
    run = subprocess.run([REPOSITORY / "virtual_gpu" / "tools" / "race_run", program, *arguments], stdin=subprocess.DEVNULL,
                         env={**os.environ, **({"VGPU_GPUS": gpus} if gpus else {})}, capture_output=True, text=True, check=False)
    if run.returncode != 3:
        raise PageError(f"{program.name} {case}: exit status {run.returncode}: {run.stderr.strip()}")
    return f"```\n{run.stderr.rstrip()}\n```\n"


mutant_block = functools.lru_cache(maxsize=None)(mutant_blocks.block)
planted_block = functools.lru_cache(maxsize=None)(planted_blocks.block)


@functools.lru_cache(maxsize=None)
def timeline(chapter: str, *arguments: str) -> str:
    """The timeline of a chapter on virtual GPUs, as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        trace, drawing = pathlib.Path(folder) / "trace.json", pathlib.Path(folder) / "timeline.svg"
        printed(str(built(chapter)), *arguments, "--timeline", str(trace))
        subprocess.run([sys.executable, REPOSITORY / "tools" / "pages" / "draw_timeline.py", trace, "-o", drawing], check=True)
        return drawing.read_text(encoding="utf-8")


def run_side_by_side(outputs: List[str], timelines: List[Tuple[str, ...]], mutants: List[str], planted: List[str]) -> None:
    """Runs all these programs in parallel, so that output(), timeline(), mutant_block() and planted_block() have their results.
    Builds those of outputs and timelines."""
    programs = {arguments.split()[0] for arguments in outputs} | {picture[0] for picture in timelines}
    printed("cmake", "--build", "build/virtual", "-j", str(os.cpu_count()), "--target", *sorted(built(each).name for each in programs))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(output, arguments) for arguments in outputs]
        runs += [pool.submit(timeline, *picture) for picture in timelines]
        runs += [pool.submit(mutant_block, mutant, REPOSITORY) for mutant in mutants]
        runs += [pool.submit(planted_block, argument, REPOSITORY) for argument in planted]
        for run in runs:
            run.result()  # throws the exception of the run, if any


# Blocks from docs/results, which need no build; the planner's errors are updated if its programs are built.
MEASURED = ("results", "profile", "ladder", "figures", *(("planner",) if planner_page.can_predict(REPOSITORY) else ()))


def results() -> List[Dict[str, Any]]:
    """The reports of docs/results."""
    return load(REPOSITORY / "docs" / "results")


def ladder(which: str) -> str:
    """A ladder of README.md."""
    if which not in (*LADDERS, SHORT):
        raise PageError(f"there is no ladder '{which}'; the ladders are: {', '.join((*LADDERS, SHORT))}")
    return ladder_table(which, all_chapters(), results())


# What generates each kind of block from its argument.
GENERATORS: Dict[str, Callable[[str], str]] = {
    "code": lambda argument: excerpt(*argument.split(" ", 1)),
    "output": output,
    "tests": lambda _: tests(),
    "race": race,
    "mutant": lambda argument: mutant_block(argument, REPOSITORY),
    "planted": lambda argument: planted_block(argument, REPOSITORY),
    "results": lambda argument: results_table(argument, results()),
    "profile": lambda argument: profile_table(argument, results()),
    "ladder": ladder,
    "figures": lambda argument: figures_table(argument, REPOSITORY, results()),
    "commands": lambda _: "```\n" + read("tools/lab/commands.txt").split("\n\n")[0] + "\n```\n",
    "calls": lambda _: call_table(REPOSITORY),
    "tasks": lambda _: tasks.table(),
    "planner": lambda argument: planner_page.block(argument, REPOSITORY / planner_page.PROGRAM, results())}
KINDS = tuple(GENERATORS)
BLOCK = re.compile(rf"^<!-- ({'|'.join(KINDS)})(?: (.*?))? -->\n(.*?)^<!-- /\1 -->$", re.DOTALL | re.MULTILINE)


def generate(kind: str, argument: str) -> str:
    """The text between two markers."""
    return GENERATORS[kind](argument)


def comparable(kind: str, text: str) -> str:
    """The part of a generated text that must stay equal."""
    if kind == "mutant":
        return mutant_blocks.comparable(text)
    if kind == "planted":
        return planted_blocks.comparable(text)
    return mutant_blocks.without_numbers(text) if kind in ("output", "race", "timeline") else text


def updated(page: str, path: pathlib.Path, check: bool, same: Callable[[str, str, str], bool], measured: bool = False) -> str:
    """The page with all generated texts that are not the `same` as before replaced; `path` is the page's own. `measured`:
    only those that come from docs/results."""
    def replace(block: re.Match) -> str:
        kind, argument, old = block.group(1), block.group(2) or "", block.group(3)
        if measured and kind not in MEASURED:
            return block.group(0)
        left_alone = kind == "tests" or kind in ("output", "mutant") and not is_turn(argument)
        new = old if check and left_alone else generate(kind, argument)
        opening = block.group(0).split("\n", 1)[0]
        return f"{opening}\n{old if same(kind, old, new) else new}<!-- /{kind} -->"
    page = BLOCK.sub(replace, page)
    if measured:
        return page
    return LINE.sub(lambda line: link_to_line(line.group(1), line.group(2), path), page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 if a page has drifted")
    parser.add_argument("--measured", action="store_true", help="only what comes from docs/results: needs no build")
    arguments = parser.parse_args()
    check, measured = arguments.check, arguments.measured
    try:
        all_chapters()
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2

    def same(kind: str, old: str, new: str) -> bool:
        return check and comparable(kind, old) == comparable(kind, new)

    drifted, word = [], "drifted" if check else "updated"
    pages = {path: path.read_text() for path in [
        REPOSITORY / "README.md", REPOSITORY / "virtual_gpu" / "README.md", *REPOSITORY.glob("examples/README.md"),
        *sorted(REPOSITORY.glob("chapters/**/*.md")), *sorted(REPOSITORY.glob("docs/**/*.md"))]}
    if not measured:
        shown = [(block.group(1), block.group(2)) for page in pages.values() for block in BLOCK.finditer(page)]
        outputs, mutants, planted = ([argument for each, argument in shown if each == kind and (
            not check or kind == "planted" or is_turn(argument))] for kind in ("output", "mutant", "planted"))
        try:
            timelines = {name: picture for name, picture in pictures().items() if not check or is_turn(picture[0])}
            for words in ((), ("--sparse",)):
                lab("plan", *words)  # builds the programs that it calls
            run_side_by_side(outputs, list(timelines.values()), mutants, planted)
        except (PageError, MutantError) as error:
            print(error, file=sys.stderr)
            return 2
    for path, page in pages.items():
        try:
            new = updated(page, path, check, same, measured)
        except (PageError, MutantError, tasks.TaskError, PlanError) as error:
            print(f"{path.relative_to(REPOSITORY)}: {error}", file=sys.stderr)
            return 2
        if new != page:
            drifted.append(f"{word}: {path.relative_to(REPOSITORY)}")
            if check:
                drifted += difflib.unified_diff(page.splitlines(), new.splitlines(), "in the page", "made now", n=0, lineterm="")
            else:
                path.write_text(new)
    try:
        reports = results()
        drawn = [(name, "plot", plot_results.picture(*plot, reports)) for name, plot in plots().items()]
        drawn += [(name, "plot", new) for name, new in sparse_page.pictures(reports).items()]
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    if not measured:
        drawn += [(name, "timeline", timeline(*chapter)) for name, chapter in timelines.items()]
        drawn += [(name, "plot", planner_page.picture(name, REPOSITORY / planner_page.PROGRAM)) for name in planner_page.PICTURES]
    for name, kind, new in drawn:
        path = REPOSITORY / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if new != old and not same(kind, old, new):
            drifted.append(f"{word}: {name}")
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(new, encoding="utf-8")
    if drifted:
        print("\n".join(drifted))
    return 1 if check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
