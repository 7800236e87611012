"""build and run a program again whenever a source is saved"""
import argparse
import pathlib
import time
from typing import Dict, Iterator, List

import process
from build import Build, set_up
from process import ROOT
from program import Program, add_to, asked_for, work_on

LOOK_EVERY_S = 0.3
SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".h", ".cmake", ".txt", ".json")


arguments = add_to


def main(call: argparse.Namespace) -> int:
    program = asked_for(call)
    assert program is not None  # its parser says that it takes one
    build = set_up("run", call.backend, call.yes)
    own = [pathlib.Path(call.program).resolve()] if call.program.endswith(".cu") else []
    if call.work:
        own = sorted(work_on(call.program).rglob("*.cuh"))
    while True:
        seen = _saved(own)
        _build_and_run(build, program, call)
        process.say("waiting for a source to be saved; Ctrl-C ends")
        while _saved(own) == seen:
            time.sleep(LOOK_EVERY_S)


def _build_and_run(build: Build, program: Program, call: argparse.Namespace) -> None:
    try:
        program.build(build)
        build.need_gpus()
    except (process.Refusal, OSError) as problem:
        process.say(str(problem))
        return
    status = process.run(build.command(program.path) + call.arguments)
    process.say(f"exit status {status}")


def _files(own: List[pathlib.Path]) -> Iterator[pathlib.Path]:
    yield from own
    for folder in ("chapters", "common", "cmake"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES)


def _saved(own: List[pathlib.Path]) -> Dict[pathlib.Path, int]:
    """The time at which each source was saved. A source that disappears is being saved: editors write a new file and rename
    it."""
    times: Dict[pathlib.Path, int] = {}
    for path in _files(own):
        try:
            times[path] = path.stat().st_mtime_ns
        except FileNotFoundError:
            times[path] = 0
    return times
