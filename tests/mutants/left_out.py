#!/usr/bin/env python3
"""Leaves out every wait, fence, barrier and signal of a chapter in turn, and says by what each loss is noticed.

  left_out.py NN_name START PROGRAM TEST GPUS [ARGUMENT...]

START starts a program of the race build, as virtual_gpu/tools/race_run does; TEST is the chapter's test program in that build, "" if
there is none; GPUS are numbers such as 2,3. The virtual GPUs themselves list the calls that run (VGPU_SYNC_SITES) and ignore one
(VGPU_DROP): nothing is compiled. Of an atomic access, an arrival at an mbarrier and the barrier of a cluster only the order is left
out: without the access itself all would hang.

The program runs with the arguments and with its default sizes (if these are possible), in the order of time and in random schedules,
and so does the test, until a run notices the loss. A site is the innermost line of a call in each file of the chapter, and in what
kernels use of common/overlap/gpu, if one call alone is made through it. Sites whose loss no run notices stand in
chapters/NN_name/mutants/left_out.txt, each with the reason:

    file: ring_all_gather.cuh
    line: rank.synchronize(transfers_);
    why: end of the warm-up

The line is given without the comment at its end, or with it where it would else be one of several. The test fails if a loss is not
noticed and not listed, if a listed one is noticed or is no site, and if the program fails unchanged.
"""
import collections
import dataclasses
import os
import pathlib
import re
import sys
import tempfile
from typing import Dict, List, Sequence, Set, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from tools import mutants  # noqa: E402

LIMIT_S = 150  # of each run
SEEDS = ("1", "2")
NOT_NOTICED = "not noticed"
HELPERS = "common/overlap/gpu/"
# Whose functions are waits and signals.
WAITS = tuple(HELPERS + name for name in ("backend/virtual_run_state.cpp", "ranks.cpp", "ranks.hpp", "signals.cpp", "signals.hpp",
                                          "signal_barrier.hpp"))
HOST_CALLS = re.compile(r"cuda[A-Z]|cuStream|a barrier of host threads")

Stack = Tuple[str, ...]  # a call's name, then its lines, innermost first: "chapters/NN_name/ring.cuh:59"


class LeftOutError(Exception):
    """What is wrong, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Listed:
    """A site whose loss no run notices."""
    file: str
    line: str
    why: str


def read_list(path: pathlib.Path) -> List[Listed]:
    """The listed sites of a chapter; none if the list is empty or not there. Throws LeftOutError."""
    found = []
    text = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    for block in re.split(r"\n\s*\n", text) if text else []:
        match = re.fullmatch(r"file: (\S+)\nline: (\S.*)\nwhy: (\S.*)", block)
        if match is None:
            raise LeftOutError(f"{path}: '{block}' is not three lines: file, line, why")
        found.append(Listed(*match.groups()))
    return found


def read_stacks(text: str, root: pathlib.Path) -> Set[Stack]:
    """What the virtual GPUs have listed, with paths from `root` on; calls through no other file are left out."""
    found = set()
    for row in text.splitlines():
        name, *places = row.split("\t")
        places = [os.path.relpath(os.path.normpath(place), root) for place in places]
        found.add((name, *(place for place in places if not place.startswith(".."))))
    return found


def sites(stacks: Set[Stack], chapter: str) -> Dict[str, Set[Stack]]:
    """The sites among the lines of the stacks, each with the stacks that pass it, the chapter's own first. Of lines that the same stacks
    pass, the first one counts."""
    through: Dict[str, Set[Stack]] = collections.defaultdict(set)
    candidates: Set[str] = set()
    for stack in stacks:
        files: Set[str] = set()
        for place in stack[1:]:
            through[place].add(stack)
            file = place.rpartition(":")[0]
            on_host = HOST_CALLS.match(stack[0]) is not None
            own = file.startswith(f"chapters/{chapter}/") and file.endswith(".cuh")
            if file not in files and (own or file.startswith(HELPERS) and not on_host):
                candidates.add(place)
            files.add(file)
            if on_host and file.startswith("common/") and file not in WAITS:
                break  # the helper's own wait
    found: Dict[str, Set[Stack]] = {}
    for place in sorted(candidates, key=_in_order):
        if len({stack[:stack.index(place)] for stack in through[place]}) == 1 and through[place] not in found.values():
            found[place] = through[place]
    return found


def _in_order(place: str) -> Tuple[bool, str, int]:
    file, _, line = place.rpartition(":")
    return (file.startswith(HELPERS), file, int(line))


def verdict_of(command: Sequence[str], start: Sequence[str]) -> str:
    """What a run says; "refused" if a call has failed, "crash" or, after the time limit, "no end". Throws mutants.NoVerdict."""
    try:
        run = mutants.run(pathlib.Path(command[0]), list(command[1:]), LIMIT_S, start)
    except mutants.NoVerdict as reason:
        if "did not end" in str(reason):
            return "no end"
        raise
    try:
        return mutants.verdict_of(run.returncode, run.stdout)
    except mutants.NoVerdict as reason:
        if run.returncode == 2:
            return "refused"
        if run.returncode < 0:
            return "crash"
        raise mutants.NoVerdict(f"{reason}:\n{run.stdout}") from None


class Chapter:
    """A chapter's program, and the runs that look for a loss."""

    def __init__(self, name: str, start: str, program: str, test: str, gpus: str, arguments: Sequence[str],
                 root: pathlib.Path = REPOSITORY) -> None:
        self.name, self.start, self.root = name, start, root
        numbers = gpus.split(",")
        self.default_sizes = [(program, "--gpus", number) for number in numbers]
        own = [(*run, *arguments) for run in self.default_sizes]
        self.runs = own + (self.default_sizes if arguments else [])
        large = [number for number in ("4", "8") if number not in numbers]
        self.runs += [(test, "--gtest_filter=-" + ":".join(f"*/{number}" for number in large))] if test else []
        self.runs += [(*run, "--schedule", seed) for seed in SEEDS for run in own]
        self.executed: Dict[Tuple[str, ...], Set[Stack]] = {}  # by each run

    def find_sites(self) -> Dict[str, Set[Stack]]:
        """Runs the unchanged program. Throws LeftOutError if that fails, or has no sites."""
        for run in self.runs:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "sites"
                verdict = verdict_of(run, ["env", f"VGPU_SYNC_SITES={file}", self.start])
                if verdict == "refused" and run in self.default_sizes and run != self.runs[0]:
                    continue  # sizes that do not go with this number of GPUs
                if verdict != NOT_NOTICED:
                    raise LeftOutError(f"{' '.join(run)}: the unchanged program fails: {verdict}")
                self.executed[run] = read_stacks(file.read_text(encoding="utf-8") if file.exists() else "", self.root)
        found = sites(set().union(*self.executed.values()), self.name)
        if not found:
            raise LeftOutError("the program synchronises nowhere")
        return found

    def leave_out(self, place: str, passing: Set[Stack]) -> str:
        """The verdict of the first run that notices the loss."""
        for run in self.runs:
            if passing & self.executed.get(run, set()):
                verdict = verdict_of(run, ["env", f"VGPU_DROP={place}", self.start])
                if verdict != NOT_NOTICED:
                    return verdict
        return NOT_NOTICED

    def text_of(self, place: str) -> str:
        """The site's line in the source."""
        file, _, line = place.rpartition(":")
        return (self.root / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip()


def judge(chapter: Chapter, listed: Sequence[Listed]) -> List[str]:
    """Prints a row for each site and a sum. Returns what is wrong, a sentence each."""
    counts: Dict[str, int] = collections.Counter()
    wrong, used = [], set()
    for place, passing in chapter.find_sites().items():
        verdict, text = chapter.leave_out(place, passing), chapter.text_of(place)
        reasons = [one for one in listed if pathlib.Path(place).name.startswith(one.file + ":") and
                   one.line in (text, re.sub(r"\s*//.*", "", text))]
        used.update(reasons)
        counts[verdict] += 1
        name = min(passing)[0]
        print(f"{verdict:13} {place.removeprefix('chapters/')}  {name}: {text}", flush=True)
        for one in reasons if verdict == NOT_NOTICED else ():
            print(f"{'':13}   {one.why}")
        if verdict == NOT_NOTICED and not reasons:
            wrong.append(f"{place}: '{text}' can be left out, and no run notices it")
        if verdict != NOT_NOTICED and reasons:
            wrong.append(f"{place}: '{text}' is listed, but its loss is noticed: {verdict}")
    wrong += [f"left_out.txt: '{one.line}' of {one.file} is no site" for one in listed if one not in used]
    total = sum(counts.values())
    print(f"{chapter.name}: {total - counts[NOT_NOTICED]} of {total} noticed (" +
          ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items())) + ")")
    return wrong


def main(name: str, start: str, program: str, test: str, gpus: str, *arguments: str) -> int:
    try:
        listed = read_list(REPOSITORY / "chapters" / name / "mutants" / "left_out.txt")
        wrong = judge(Chapter(name, start, program, test, gpus, arguments), listed)
    except (LeftOutError, mutants.NoVerdict, OSError) as error:
        wrong = [str(error)]
    for sentence in wrong:
        print(f"left_out.py: {name}: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
