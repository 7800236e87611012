#!/usr/bin/env python3
"""The manifests of the chapters: reads and checks chapters/NN_name/chapter.json.

A manifest holds
  title, idea          the page's title without its number; the idea in a few words, for the ladder
  part                 1 to 5, see PARTS
  kind                 speed_up, dense or sparse: determines the program's options and the table of its results
  builds_on            the chapters to read before, whose headers its own may include; the variants are compared with the
                       first one
  needs                gpus: the fewest real GPUs on which several ranks can run; compute_capability (9.0: no other); cuda: the
                       oldest release with the headers that it includes, if newer than the repository's minimum; memory_gb of
                       a GPU, if the sizes for real GPUs need a large one
  processes            true: it also runs as several processes, each of which is a node, as NN_name_mpi (docs/cluster.md)
  minutes              to read the page and the code, and to run it: an estimate
  operation            the peers' name for the chapter's operation (tests/peers); none: the chapter has no peers
  measure              the command lines of ./lab bench, see Measure
  pictures             {NAME: ARGUMENTS}: chapters/NN_name/NAME.svg is the timeline of these arguments
  plots                {NAME: {section, x, lines}}: chapters/NN_name/NAME.svg has the measured results of that section,
                       for each of lines, {TITLE: FIELD}, a time in milliseconds against the field x (plot_results.py)
  tests                blank: the arguments of the tests of its blanks; blank_stops: a blank may also end in a deadlock or a
                       failed kernel, which the report explains; race, program, sanitize: see below
  lesson               for ./lab grade: about, the technique that a submission must use; sizes [P, m, n, k],
                       or [P, rows, features, entries] of a sparse chapter, at which the model shows it; kernels: the technique
                       needs a kernel of the submission's own
  experiments          [{name, idea, builds_on, measure, pictures, tests}]: the programs of experiments/NAME.cu, built as
                       NN_NAME; builds_on: chapters that they may include in addition to the chapter's own; tests: only the
                       arguments of the race suite
Not in a manifest, because other files define them: number and name (the folder), variants, types and default sizes (the
program), tasks (their markers), mutants, results and prose.

  tests.race.schedules     the schedules of the race suite for each number of GPUs;  .arguments  of all its runs except those at
                           default sizes
  tests.race.same          the arguments in which builds with and without the race detector are compared
  tests.race.ranks         the largest number of GPUs: 8, or fewer if the ranks do not communicate
  tests.program.sizes      small ones, for the tests of the program (tests/programs/chapter_test.py)
  tests.sanitize           memcheck, racecheck, synccheck: the most GPUs of each (tools/sanitize); arguments; nccl: the program
                           uses it; racecheck_test: racecheck runs the chapter's test with this GoogleTest filter instead

  tools/chapters.py              exit status 2 and one sentence if a manifest is wrong
  tools/chapters.py --sanitize   the runs of tools/sanitize for each chapter, in columns
"""
import argparse
import dataclasses
import functools
import json
import pathlib
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

CHAPTERS = pathlib.Path(__file__).resolve().parents[1] / "chapters"
PARTS = ("split the work", "overlap by decomposition", "sparse all-reduce", "fused kernels", "latency")
KINDS = ("speed_up", "dense", "sparse")
OPERATIONS = ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce", "mlp_block")
FOLDER = re.compile(r"\d\d_[a-z0-9_]+")


class ManifestError(Exception):
    """A manifest is wrong: one sentence that begins with its file."""


class _Wrong(Exception):
    """The error in a value; the caller adds the file."""


# --- allowed values --------------------------------------------------------------------------------------------------

Check = Callable[[Any, str], None]  # takes a value and the name of its key; throws _Wrong


def _is(kind: type, words: str) -> Check:
    def check(value: Any, key: str) -> None:
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise _Wrong(f"'{key}' is {json.dumps(value)}, not {words}")
    return check


def _text(value: Any, key: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f"'{key}' is {json.dumps(value)}, not a text")


_flag = _is(bool, "true or false")


def _count(least: int) -> Check:
    def check(value: Any, key: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _Wrong(f"'{key}' is {json.dumps(value)}, not a whole number from {least} on")
    return check


def _one_of(*allowed: Any) -> Check:
    def check(value: Any, key: str) -> None:
        if isinstance(value, bool) or value not in allowed:
            raise _Wrong(f"'{key}' is {json.dumps(value)}, none of {', '.join(map(str, allowed))}")
    return check


def _each(check_one: Check) -> Check:
    def check(value: Any, key: str) -> None:
        _is(list, "a list")(value, key)
        for number, one in enumerate(value):
            check_one(one, f"{key}[{number}]")
    return check


def _named(check_one: Check) -> Check:
    def check(value: Any, key: str) -> None:
        _is(dict, "an object")(value, key)
        for name, one in value.items():
            check_one(one, f"{key}.{name}")
    return check


def _record(required: Dict[str, Check], optional: Optional[Dict[str, Check]] = None) -> Check:
    known = {**required, **(optional or {})}

    def check(value: Any, key: str) -> None:
        _is(dict, "an object")(value, key or "it")
        prefix = f"{key}." if key else ""
        for name, one in value.items():
            if name not in known:
                raise _Wrong(f"'{prefix}{name}' is not known (known: {', '.join(known)})")
            known[name](one, prefix + name)
        for name in required:
            if name not in value:
                raise _Wrong(f"'{prefix}{name}' is missing")
    return check


def _gpus(value: Any, key: str) -> None:
    if value not in ("most", "several"):
        try:
            _count(1)(value, key)
        except _Wrong:
            raise _Wrong(f"'{key}' is {json.dumps(value)}, neither most, several nor a number of GPUs") from None


_MEASURE = _record({}, {"usual": _each(_text), "large": _each(_text), "on_all_gpus_only": _flag,
                        "also": _each(_record({"gpus": _gpus, "lines": _each(_text)}))})
_TESTS = _record({}, {
    "blank": _text, "blank_stops": _flag,
    "race": _record({}, {"schedules": _count(1), "arguments": _text, "same": _text, "ranks": _count(1)}),
    "program": _record({}, {"sizes": _text}),
    "sanitize": _record({}, {"arguments": _text, "nccl": _flag, "racecheck_test": _text,
                             **{tool: _count(0) for tool in ("memcheck", "racecheck", "synccheck")}})})
_LESSON = _record({"about": _text, "sizes": _each(_count(1))}, {"kernels": _flag})
_PLOT = _record({"section": _text, "x": _text, "lines": _named(_text)})
_EXPERIMENT = _record({"name": _text, "idea": _text},
                      {"builds_on": _each(_text), "measure": _MEASURE, "pictures": _named(_text),
                       "tests": _record({}, {"race": _record({}, {"arguments": _text})})})
_MANIFEST = _record(
    {"title": _text, "idea": _text, "part": _one_of(*range(1, len(PARTS) + 1)), "kind": _one_of(*KINDS), "builds_on": _each(_text),
     "needs": _record({"gpus": _count(1), "compute_capability": _text}, {"cuda": _text, "memory_gb": _count(1)}), "minutes": _count(1)},
    {"processes": _flag, "operation": _one_of(*OPERATIONS), "lesson": _LESSON, "measure": _MEASURE, "pictures": _named(_text),
     "plots": _named(_PLOT), "tests": _TESTS, "experiments": _each(_EXPERIMENT)})


# --- the checked manifests -------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Measure:
    """How a program is measured on real GPUs: command lines without --gpus. A size of 1024*P grows with the number of GPUs, and
    NAME=VALUE in front of the options sets an environment variable."""
    usual: Sequence[str] = ("",)  # on each number of GPUs, the most important one first: --quick runs only it
    large: Sequence[str] = ()  # after them on 8 GPUs
    on_all_gpus_only: bool = False  # meaningful on all GPUs of the machine only
    also: Sequence[Tuple[Union[int, str], Sequence[str]]] = ()  # measured again: on a number of GPUs, "most" or "several"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A further program of a chapter, which measures more than the lesson needs."""
    program: str  # NN_name
    idea: str
    builds_on: Sequence[str]
    measure: Measure
    pictures: Dict[str, str]
    tests: Dict[str, Any]

    @property
    def word(self) -> str:
        """NN/name, the form that ./lab run accepts."""
        return f"{self.program[:2]}/{self.program[3:]}"


@dataclasses.dataclass(frozen=True)
class Plot:
    section: str
    x: str
    lines: Dict[str, str]


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A chapter, from its folder and its manifest."""
    name: str
    title: str
    idea: str
    part: int
    kind: str
    builds_on: Sequence[str]
    needs: Dict[str, Any]
    minutes: int
    processes: bool
    operation: str
    measure: Measure
    pictures: Dict[str, str]
    plots: Dict[str, Plot]
    tests: Dict[str, Any]
    experiments: Sequence[Experiment]
    lesson: Dict[str, Any]

    @property
    def number(self) -> str:
        return self.name[:2]


def _measure(value: Dict[str, Any]) -> Measure:
    return Measure(**{**value, "also": [(also["gpus"], also["lines"]) for also in value.get("also", ())]})


def _without_repeats(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """Refuses a key that occurs twice: JSON would silently take the last value."""
    for name, _ in pairs:
        if [other for other, _ in pairs].count(name) > 1:
            raise _Wrong(f"'{name}' is there twice")
    return dict(pairs)


def _read(path: pathlib.Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_repeats)
    except FileNotFoundError:
        raise _Wrong("the file is not there") from None
    except json.JSONDecodeError as error:
        raise _Wrong(f"line {error.lineno}: {error.msg}") from None


def _chapter(folder: pathlib.Path, names: Sequence[str]) -> Chapter:
    """The chapter of a folder; `names` are all. Throws _Wrong."""
    value = _read(folder / "chapter.json")
    _MANIFEST(value, "")
    experiments = value.get("experiments", [])
    others = {"builds_on": value["builds_on"],
              **{f"experiments[{number}].builds_on": each.get("builds_on", []) for number, each in enumerate(experiments)}}
    for key, builds_on in others.items():
        for number, other in enumerate(builds_on):
            if other not in names or other >= folder.name:
                raise _Wrong(f"'{key}[{number}]' is {json.dumps(other)}, which is no chapter before this one")
    sources = {path.stem for path in folder.glob("experiments/*.cu")}
    for number, experiment in enumerate(experiments):
        if experiment["name"] not in sources:
            raise _Wrong(f"'experiments[{number}].name' is {json.dumps(experiment['name'])}, and there is no "
                         f"experiments/{experiment['name']}.cu")
    for source in sorted(sources - {experiment["name"] for experiment in experiments}):
        raise _Wrong(f"'experiments' does not name experiments/{source}.cu")
    for name in sorted(set(value.get("plots", {})) & set(value.get("pictures", {}))):
        raise _Wrong(f"'plots.{name}' has the name of a picture")
    return Chapter(**{
        "name": folder.name, "processes": False, "operation": "", "pictures": {}, "tests": {}, "lesson": {}, **value,
        "measure": _measure(value.get("measure", {})),
        "plots": {name: Plot(**each) for name, each in value.get("plots", {}).items()},
        "experiments": [Experiment(f"{folder.name[:2]}_{each['name']}", each["idea"], each.get("builds_on", []),
                                   _measure(each.get("measure", {})), each.get("pictures", {}), each.get("tests", {}))
                        for each in experiments]})


def read_chapters(folder: pathlib.Path) -> Dict[str, Chapter]:
    """All chapters of a folder, by name and in order. Throws ManifestError."""
    names = sorted(path.parent.name for path in folder.glob("*/main.cu") if FOLDER.fullmatch(path.parent.name))
    chapters: Dict[str, Chapter] = {}
    for name in names:
        try:
            chapters[name] = _chapter(folder / name, names)
        except _Wrong as wrong:
            raise ManifestError(f"chapters/{name}/chapter.json: {wrong}") from None
    return chapters


@functools.lru_cache(maxsize=None)
def all_chapters() -> Dict[str, Chapter]:
    """The repository's chapters. Throws ManifestError."""
    return read_chapters(CHAPTERS)


def operation_of(chapter: str) -> str:
    """The peers' name for the chapter's operation; none if the chapter has no peers or does not exist."""
    found = all_chapters().get(chapter)
    return found.operation if found else ""


def sanitize_row(chapter: Chapter) -> str:
    """What the shell script tools/sanitize runs for each chapter. A chapter without tests.sanitize runs under memcheck on one
    GPU."""
    wanted = {"memcheck": 1, "racecheck": 0, "synccheck": 0, **chapter.tests.get("sanitize", {})}
    return "|".join([chapter.number, chapter.kind, *(str(wanted[tool]) for tool in ("memcheck", "racecheck", "synccheck")),
                     "nccl" if wanted.get("nccl") else "", wanted.get("racecheck_test", ""), wanted.get("arguments", "")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitize", action="store_true")
    chosen = parser.parse_args()
    try:
        chapters = all_chapters()
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    if chosen.sanitize:
        print("\n".join(map(sanitize_row, chapters.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
