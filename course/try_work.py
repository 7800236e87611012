#!/usr/bin/env python3
"""The public report of a hand-out: tests of its current state. The hand-out's ./try calls it.

  try_work.py FOLDER           builds, runs uneven sizes on 1, 2, 3 and 4 GPUs and the grade's large ones, looks for races;
                               exit status 1 if anything is wrong
  try_work.py FOLDER --check   also finds illegal accesses: another build, which takes minutes the first time
  try_work.py FOLDER --schedule N   runs all tests in random schedule N
  try_work.py FOLDER --pack    writes the one file to submit: the header, or a ZIP of several
  try_work.py FOLDER --hint [TASK] [--solution]   the tasks; the next hint; the solution
  try_work.py FOLDER --run [ARGUMENTS]            the chapter's program with your header

It is for practice: the student knows its sizes. Points come from the teacher's grader.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "tools" / "lab"), str(REPOSITORY)]
import build as builds  # noqa: E402
import process  # noqa: E402
import program  # noqa: E402
from tools.chapters import all_chapters  # noqa: E402
from course import handout, hints, planted, tasks, work  # noqa: E402
from course.grade import cases  # noqa: E402

RING = 3  # on fewer GPUs both neighbours are the same
RACES = "races and deadlocks"
ACCESSES = "wrong accesses"
ONCE = ["--iterations", "1", "--warmup", "0"]
_SENT = re.compile(r"ncclSend of \d+ bytes to rank (\d+)|copy \S+ \w+ GPU \d+ -> GPU (\d+)")
_COPY = re.compile(r"copy \S+ \w+ GPU (\d+) -> GPU (\d+)")


def sizes_of(record: Dict[str, Any]) -> List[List[str]]:
    """The arguments of the runs: the student's sizes, unless the chapter has its own."""
    return planted.runs(record["chapter"], " ".join(f"--{name} {value}" for name, value in record["sizes"].items()))


def tiny(record: Dict[str, Any]) -> List[List[str]]:
    """Sizes with fewer rows than ranks, if the chapter accepts any sizes and divides rows."""
    manifest = all_chapters()[record["chapter"]]
    return [] if manifest.tests.get("blank") or manifest.kind != "dense" else [["--gpus", "4", "--m", "3", "--n", "5", "--k", "7", *ONCE]]


def large(record: Dict[str, Any], criterion: str) -> List[List[str]]:
    """The grade's large sizes of a criterion; for exact also the lesson's. To save time, they run only the variants of the
    chapter's race tests."""
    manifest = all_chapters()[record["chapter"]]
    names = ("gpus", "rows", "features", "entries") if manifest.kind == "sparse" else ("gpus", "m", "n", "k")
    sizes = [(case.ranks, case.m, case.n, case.k) for case in cases.LARGE
             if criterion == case.criterion and manifest.kind == case.problem]
    if criterion == "exact" and manifest.lesson:
        sizes.append(manifest.lesson["sizes"])
    chosen = str(manifest.tests.get("race", {}).get("arguments", "")) if sizes else ""
    return [[*(word for name, size in zip(names, each) for word in (f"--{name}", str(size))), *chosen.split(), *ONCE] for each in sizes]


def links_of(trace: Dict[str, Any]) -> Set[Tuple[int, int]]:
    """Links (from GPU, to GPU) that a recorded run used, without the baseline's."""
    gpus: Dict[int, int] = {}
    found: Set[Tuple[int, int]] = set()
    for event in trace["traceEvents"]:
        if event["name"] == "process_labels":
            gpus[event["pid"]] = event["args"]["gpu"]
        if event["ph"] == "X":
            for match in _SENT.finditer(event["args"]["what"]):
                found.add((gpus[event["pid"]], int(match.group(1) or match.group(2))))
    return found


def first_sources(trace: Dict[str, Any]) -> Dict[int, int]:
    """The source GPU of the first copy to each GPU in a recorded run."""
    found: Dict[int, Tuple[float, int]] = {}
    for event in trace["traceEvents"]:
        match = _COPY.search(event["args"]["what"]) if event["ph"] == "X" else None
        if match and match.group(1) != match.group(2):
            source, target = int(match.group(1)), int(match.group(2))
            found[target] = min(found.get(target, (event["ts"], source)), (event["ts"], source))
    return {target: source for target, (_, source) in found.items()}


def wrong_sources(found: Dict[int, int], wanted: str, gpus: int) -> str:
    """A sentence if a rank's first data do not come from the `wanted` neighbour; else empty."""
    step = -1 if wanted == "previous" else 1
    for rank in range(gpus):
        if found.get(rank) != (rank + step) % gpus:
            other = f"begins with rank {found[rank]}" if rank in found else "takes nothing"
            return f"rank {rank} {other}; in your variation each rank begins with the {wanted} one"
    return ""


def wrong_links(found: Set[Tuple[int, int]], wanted: str, gpus: int) -> str:
    """A sentence if ranks do not send to the `wanted` neighbour in the ring; else empty."""
    step = -1 if wanted == "previous" else 1
    right = {(rank, (rank + step) % gpus) for rank in range(gpus)}
    if found == right:
        return ""
    odd = sorted(found - right) or sorted(right - found)
    verb = "sends" if found - right else "does not send"
    return f"rank {odd[0][0]} {verb} to rank {odd[0][1]}; in your variation each rank sends to the {wanted} one"


class Report:
    """The lines of the report, and whether anything is wrong."""

    def __init__(self) -> None:
        self.wrong = False

    def line(self, what: str, verdict: str, reason: str = "") -> None:
        """Adds one verdict; `reason` if it is wrong."""
        print(f"{what:<44} {verdict}")
        if reason:
            print("\n".join(f"    {line}" for line in reason.splitlines()))
            self.wrong = True


def report(folder: pathlib.Path, record: Dict[str, Any], check: bool, order: List[str]) -> int:
    """Builds and runs with the additional arguments `order`; returns the exit status."""
    out = Report()
    work_program = program.of_work(folder)
    plain = builds.set_up("run", "virtual", False)
    work_program.build(plain)
    out.line("builds", "yes")
    for arguments in [*sizes_of(record), *tiny(record), *large(record, "exact")]:
        status, text = planted.said([*plain.command(work_program.path), *arguments, *order])
        out.line(" ".join([*arguments[:-len(ONCE)], *order]), "right" if status == 0 else "WRONG", "" if status == 0 else text)
    if not out.wrong:
        _links(out, plain, work_program, record)
    for what, build in ((RACES, plain.race()), *([(ACCESSES, plain.check())] if check else [])):
        work_program.build(build)
        try:
            build.need_gpus()
            free_of(what, out, build.command(work_program.path), record, order)
        except builds.Skip as skip:
            out.line(f"free of {what}", f"not judged: {skip}")
    print("\nSomething is still to be done." if out.wrong else "\nAll of it is right. ./try --pack writes the file to hand in.")
    return 1 if out.wrong else 0


def free_of(what: str, out: Report, command: List[str], record: Dict[str, Any], order: Sequence[str] = ()) -> None:
    """Runs a detector of races or illegal accesses on every number of GPUs, because some errors need four."""
    for arguments in [*sizes_of(record), *large(record, "race" if what == RACES else "access")]:
        status, text = planted.said([*command, *arguments, *order])
        if status == 3:
            is_other = what == RACES and "cudaErrorIllegalAddress" in text
            out.line(f"free of {what}", "not judged: an illegal access" if is_other else "NO", text)
            return
        if status != 0:
            out.line(f"free of {what}", "not judged: the result is wrong")
            return
    out.line(f"free of {what}", "yes")


def _links(out: Report, plain: "builds.Build", work_program: "program.Program", record: Dict[str, Any]) -> None:
    """Checks the direction of the data if the variation determines one."""
    wanted = handout.way_of(record).links
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as scratch:
        trace = pathlib.Path(scratch, "trace.json")
        arguments = [*sizes_of(record)[RING - 1], *handout.way_of(record).arguments.split()]
        command = [*plain.command(work_program.path), *arguments, "--timeline", str(trace)]
        status, text = planted.said(command)
        if status != 0 or not trace.is_file():
            out.line("the data's way", "WRONG", text)
            return
        recorded = json.loads(trace.read_text(encoding="utf-8"))
    first = wanted.startswith("from ")
    reason = (wrong_sources(first_sources(recorded), wanted.removeprefix("from "), RING) if first
              else wrong_links(links_of(recorded), wanted, RING))
    out.line("the data's way", "WRONG" if reason else "right", reason)


def pack(folder: pathlib.Path, record: Dict[str, Any]) -> pathlib.Path:
    """Writes the file to hand in."""
    chapter = record["chapter"]
    names = sorted(handout.headers(chapter, tasks.read_tasks(work.REPOSITORY / "chapters" / chapter), handout.way_of(record)))
    suffix = f"-{record['student']}" if record.get("student") else ""
    if len(names) == 1:
        packed = folder / f"{pathlib.Path(names[0]).stem}{suffix}.handin.cuh"
        packed.write_bytes((folder / names[0]).read_bytes())
        return packed
    packed = folder / f"{chapter}{suffix}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(folder / name, name)
    return packed


def run(folder: pathlib.Path, arguments: List[str]) -> int:
    """Builds and runs the chapter's program with the hand-out's headers; returns the exit status."""
    work_program = program.of_work(folder)
    plain = builds.set_up("run", "virtual", False)
    work_program.build(plain)
    return subprocess.run([*plain.command(work_program.path), *arguments], check=False).returncode


def main(words: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--schedule", type=int, metavar="N")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--hint", nargs="?", const="", metavar="TASK")
    parser.add_argument("--solution", action="store_true")
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    chosen = parser.parse_args(words)
    try:
        folder = chosen.folder.resolve()
        record = work.record_of(folder)
        if chosen.pack:
            print(pack(folder, record).name)
            return 0
        if chosen.hint is not None:
            print(hints.text(record["chapter"], chosen.hint, chosen.solution, str(folder), "./try --hint"))
            return 0
        if chosen.run is not None:
            return run(folder, chosen.run)
        return report(folder, record, chosen.check, [] if chosen.schedule is None else ["--schedule", str(chosen.schedule)])
    except OSError as error:
        process.say(f"{error.filename}: {error.strerror}")
    except (process.Refusal, work.WorkError, tasks.TaskError) as problem:
        process.say(str(problem))
    return 2


if __name__ == "__main__":
    process.end_without_a_word()
    sys.exit(main())
