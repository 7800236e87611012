#!/usr/bin/env python3
"""./lab bench: measures chapters and peers in one go, and prints the ladder.

  tools/results/bench.py --backend=cuda|virtual [--here=GPUS] [--gpus=LIST] [--sizes=first|all] [--peers=yes|no] [--quick]
                 [--limit=SECONDS] CHAPTER...

A CHAPTER may be the program of an experiment. All programs must be built. On real GPUs each runs at the sizes of its manifest
(bench_plans.py) on all GPUs of the machine, and also on 2 and on 4 if it has more; then the peers of tests/peers run at the
same sizes. Each report is written to docs/results when its program has ended, and replaces the one of the same command line;
the tables of README.md and the pages are updated at the end, even if the bench ends early (SIGINT, SIGTERM, --limit). With
--quick (few iterations) and on virtual GPUs (each chapter once, at its own sizes, in modelled times) only the ladder is
printed. """
import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.results import result_files  # noqa: E402
from tools.results.bench_ladder import ladder  # noqa: E402
from tools.results.bench_plans import QUICK, Words, is_setting, plans  # noqa: E402
from tools.chapters import OPERATIONS, ManifestError, all_chapters, operation_of  # noqa: E402
from tools.results.results import Run  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "docs" / "results"
SKIPPED = 77
LIMIT_S = 600  # for one program; a peer's variants have limits of their own
QUICK_LIMIT_S = 345  # six minutes, including the start
PEERS = {operation: ("pytorch_peer",) for operation in OPERATIONS}
PEERS["all_gather_matmul"] = ("pytorch_peer", "jax_peer")


class Stopped(Exception):
    """A signal has stopped the bench."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a program: a chapter, or a peer."""
    program: str
    words: Sequence[str]  # NAME=VALUE in front is a setting of the environment
    more: Sequence[str] = ()  # options that do not change what is measured

    def is_peer(self) -> bool:
        """A run of a peer of tests/peers."""
        return self.program.endswith("_peer")

    def arguments(self) -> str:
        """The options that tell the run from the program's other runs."""
        return " ".join(self.words)

    def settings(self) -> Words:
        return [word for word in self.words if is_setting(word)]

    def options(self) -> Words:
        return [word for word in self.words if word not in self.settings()] + list(self.more)

    def text(self) -> str:
        return " ".join([*self.settings(), self.program, *self.options()])


class Outcome:
    """The outcome of all programs."""

    def __init__(self) -> None:
        self.runs: List[Run] = []
        self.peers: List[Run] = []
        self.failures: List[str] = []
        self.skipped: List[str] = []
        self.left_out: List[str] = []  # programs for which no time was left
        self.statuses: Set[int] = set()

    def fail(self, what: str, status: int, reason: str) -> None:
        """Records the failure of a chapter, or of this script itself."""
        self.failures.append(f"{what}: {reason}")
        self.statuses.add(status if status in (1, 2, 3) else 2)

    def status(self) -> int:
        """The worst status: a wrong result, then a race or deadlock, then a failed call."""
        for status in (1, 3, 2):
            if status in self.statuses:
                return status
        return 0 if self.runs or self.left_out else SKIPPED

    def summary(self) -> str:
        """The programs that failed, and those that did not run."""
        lines = [f"failed: {failure}" for failure in self.failures]
        lines += [f"not run: {reason}" for reason in dict.fromkeys([*self.skipped, *self.left_out])]
        dirty = sorted({run["commit"] for run in self.runs if re.search("-dirty$|^unknown$", run["commit"])})
        lines += [f"measured from sources that are not those of a commit: {commit}" for commit in dirty]
        return "\n".join(lines)


def say(text: str) -> None:
    """Prints progress to standard error, like ./lab's own messages."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def call(command: Sequence[str], log: pathlib.Path, limit_s: float) -> Tuple[Optional[int], str]:
    """Runs a program. Returns its exit status (none if it had to be ended) and the last line of its output. The program has a
    session of its own, so that its children end with it."""
    with log.open("w", encoding="utf-8") as output:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                              start_new_session=True) as program:
            try:
                status = program.wait(timeout=limit_s)
            except BaseException as reason:  # the time limit is reached, or a signal arrived
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
                if not isinstance(reason, subprocess.TimeoutExpired):
                    raise
                return None, f"not finished after {limit_s:.0f} s"
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return status, last if status >= 0 else f"ended by {signal.Signals(-status).name}"


def read_report(path: pathlib.Path) -> Optional[Run]:
    """The file of a program's --json; none if it has not been written."""
    try:
        report: Run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report


def file_name(hardware: Dict[str, str]) -> str:
    """The name of a machine's result file: h200-x8."""
    gpu = re.sub(r"[^a-z0-9]+", "-", hardware["gpu"].lower().replace("nvidia", "")).strip("-")
    return f"{gpu}-x{hardware['gpus']}"


class Bench:
    """Runs the programs one after the other."""

    def __init__(self, backend: str, jobs: Sequence[Job], limit_s: float, keep: bool) -> None:
        self._programs = REPOSITORY / "build" / backend / "bin"
        self._folder = REPOSITORY / "build" / backend / "bench"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._jobs = list(jobs)
        self._done = 0
        self._started, self._limit_s, self._keep_results = time.monotonic(), limit_s, keep
        self._measured: Set[Tuple[str, ...]] = set()  # problems of the peers
        self.outcome = Outcome()
        self.written = False  # to docs/results

    def _so_far(self) -> float:
        return time.monotonic() - self._started

    def run(self) -> None:
        """Measures the programs that fit in the time limit. Throws Stopped."""
        say(f"{len(self._jobs)} programs")
        try:
            for job in self._jobs:
                self._next(job)
                self._done += 1
                say(f"{self._done} of {len(self._jobs)} done, {self._so_far():.0f} s so far" + self._left())
        except Stopped as stopped:
            self.outcome.left_out += [f"{job.text()}: {stopped}" for job in self._jobs[self._done:]]
            raise

    def _next(self, job: Job) -> None:
        if job.is_peer() and problem_words(job) not in self._measured:
            self.outcome.skipped.append(f"{job.text()}: no chapter has measured this")
        elif self._so_far() >= self._limit_s:
            self.outcome.left_out.append(f"{job.text()}: no time left")
        else:
            self._run(job)

    def _left(self) -> str:
        programs = [job.program for job in self._jobs[self._done:]]
        counts = [f"{name} x {programs.count(name)}" if programs.count(name) > 1 else name for name in dict.fromkeys(programs)]
        return f"; left: {', '.join(counts)}" if counts else ""

    def _run(self, job: Job) -> None:
        path = self._folder / f"{self._done + 1:02}-{job.program}.json"
        path.unlink(missing_ok=True)
        script = [sys.executable, str(REPOSITORY / "tests" / "peers" / f"{job.program}.py")]
        program = script if job.is_peer() else [str(self._programs / job.program)]
        command = [*(["env", *job.settings()] if job.settings() else []), *program, *job.options(), "--json", str(path)]
        left = self._limit_s - self._so_far()
        started = time.monotonic()
        say(job.text())
        status, last = call(command, path.with_suffix(".log"), min(LIMIT_S, left))
        seconds = time.monotonic() - started
        say(f"  {'ok' if status == 0 else last} ({seconds:.1f} s)")
        report = read_report(path)
        if status is None and left < LIMIT_S:
            self.outcome.left_out.append(f"{job.text()}: {last}, then the time was over")
        elif status == SKIPPED:
            self.outcome.skipped.append(f"{job.program if job.is_peer() else job.text()}: {last}")
        elif status == 0 and report is not None:
            report["bench"] = {"program": job.program, "arguments": job.arguments(), "seconds": round(seconds, 1)}
            self._keep(job, report)
        elif job.is_peer():  # a peer that fails is named, but does not change the exit status
            self.outcome.skipped.append(f"{job.text()}: {last}")
        elif status is None or status == 0:
            self.outcome.fail(job.text(), 2, last if status is None else "no report")
        else:
            self.outcome.fail(job.text(), status, f"exit status {status}: {last}")

    def _keep(self, job: Job, report: Run) -> None:
        """Keeps a report for the ladder, and in docs/results."""
        if job.is_peer():
            self.outcome.peers.append(report)
        else:
            self.outcome.runs.append(report)
            self._measured.add(problem_words(job))
        if report["modelled"] or not self._keep_results:
            return
        path = RESULTS / f"{file_name(report['hardware'])}.json"
        try:
            result_files.require_published(report, job.text())
            held = result_files.load(path)
            result_files.merge(held, {"peers" if job.is_peer() else "runs": [report]})
            result_files.save(path, held)
            self.written = True
        except (result_files.Refused, OSError, ValueError) as error:
            self.outcome.fail(path.name, 2, str(error))


def problem_words(job: Job) -> Tuple[str, ...]:
    """Operation, GPUs and sizes, as options of a peer; nothing for a chapter without peers."""
    options = dict(zip(job.words[::2], job.words[1::2]))
    operation = options.get("--operation", operation_of(job.program))
    names = ("--gpus", "--m", "--n", "--k")
    if not operation or any(name not in options for name in names):
        return ()
    return ("--operation", operation, *(word for name in names for word in (name, options[name])))


def peer_jobs(jobs: Sequence[Job]) -> List[Job]:
    """Runs all peers at the sizes of the chapters, with the usual number of iterations even in a quick run."""
    problems = dict.fromkeys(problem for problem in map(problem_words, jobs) if problem)
    return [Job(peer, problem) for problem in problems for peer in PEERS[problem[1]]]


def busy_gpus() -> List[str]:
    """The GPUs that another program uses: its kernels and ours would take turns, so that times would be those of both. A program that
    has no kernel just now may start one later; and in a container only the utilization shows that there is one."""
    def listed(query: str) -> List[List[str]]:
        found = subprocess.run(["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits"], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False).stdout
        return [row.split(", ") for row in found.splitlines()]

    users = [(row[0], row[1]) for row in listed("compute-apps=gpu_uuid,pid") if len(row) == 2]
    ours = os.environ.get("CUDA_VISIBLE_DEVICES")
    busy = []
    for gpu, uuid, share in (row for row in listed("gpu=index,uuid,utilization.gpu") if len(row) == 3):
        said = [f"process {process}" for user, process in users if user == uuid]
        if share.isdecimal() and int(share) > 10:
            said.append(f"{share} % busy")
        if said and (not ours or {gpu, uuid} & set(ours.split(","))):
            busy.append(f"GPU {gpu} ({', '.join(said)})")
    return busy


def publish(outcome: Outcome) -> None:
    """Updates the tables of README.md and the pages from docs/results."""
    done = subprocess.run([sys.executable, str(REPOSITORY / "tools" / "pages" / "update_pages.py"), "--measured"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    say("\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()] or ["the pages are as they were"]))
    if done.returncode != 0:
        outcome.fail("update_pages.py", 2, done.stderr.strip())


def gpu_counts(text: str) -> List[int]:
    """2,4,8 -> [2, 4, 8]"""
    counts = [int(word) for word in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("at least 1 GPU")
    return counts


def seconds_from(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("more than 0 s")
    return seconds


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./lab bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cuda", "virtual"), required=True)
    parser.add_argument("--here", type=int, default=0, metavar="GPUS", help="real GPUs that answer")
    parser.add_argument("--gpus", type=gpu_counts, metavar="LIST", help="numbers of GPUs (default: 2, 4 and all)")
    parser.add_argument("--sizes", choices=("first", "all"), default="first",
                        help="all: the larger sizes on fewer than 8 GPUs, too")
    parser.add_argument("--peers", choices=("yes", "no"), default="yes")
    parser.add_argument("--quick", action="store_true",
                        help=f"one size and one pattern of each chapter on all GPUs, few iterations; --limit={QUICK_LIMIT_S}")
    parser.add_argument("--limit", type=seconds_from, metavar="SECONDS",
                        help="end what runs then, start nothing more, and name what was not run")
    parser.add_argument("--unbuilt", action="append", default=[], metavar="CHAPTER", help="one that does not build")
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER")
    chosen = parser.parse_args()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    here = min(chosen.here, len(visible.split(","))) if visible else chosen.here
    chosen.gpus = chosen.gpus or sorted({count for count in (2, 4) if count < here} | {max(here, 1)})
    chosen.limit = chosen.limit or (QUICK_LIMIT_S if chosen.quick else math.inf)
    return chosen


def stop(number: int, frame: Any) -> None:
    """Handles the first signal; the next one ends this script at once."""
    del frame
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    raise Stopped(number)


def main() -> int:
    chosen = parse()
    try:
        all_chapters()
    except ManifestError as error:
        say(str(error))
        return 2
    real = chosen.backend == "cuda"
    if real and busy_gpus():
        time.sleep(2)  # the utilization is a mean of the last second, in which a program may have ended
    if real and (busy := busy_gpus()):
        say(f"another program uses {', '.join(busy)}, and times would be those of both: end it first")
        return 2
    jobs = [Job(name, words, QUICK if chosen.quick else ()) for name in chosen.chapters if name not in chosen.unbuilt
            for words in (plans(name, chosen.gpus, chosen.sizes == "all", chosen.quick) if real else [[]])]
    if real and chosen.peers == "yes":
        jobs += peer_jobs(jobs)
    bench = Bench(chosen.backend, jobs, chosen.limit, not chosen.quick)
    outcome = bench.outcome
    for name in chosen.unbuilt:
        outcome.fail(name, 2, "does not build")
    status = None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        bench.run()
    except Stopped as stopped:
        status = stopped.status
    if bench.written:
        publish(outcome)
    for text in (ladder(outcome.runs, outcome.peers), outcome.summary()):
        if text:
            print(text, flush=True)
    return outcome.status() if status is None else status


if __name__ == "__main__":
    sys.exit(main())
