#!/usr/bin/env python3
"""./lab bench: measures chapters and peers in one go, and prints the ladder.

  tools/bench.py --backend=cuda|virtual [--here=GPUS] [--gpus=LIST] [--sizes=first|all] [--peers=yes|no] CHAPTER...

The chapters are built already. On real GPUs each runs at the sizes of PLANS on all GPUs that are here, and on 2 and 4 of
them where there are more; then the peers of tests/peers run at the same sizes. The reports go to docs/results, and into the
tables of README.md and the pages. On virtual GPUs each chapter runs once, at its own sizes; times are modelled, and nothing
but the ladder comes of it.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import sparse_results
from results import OPERATIONS, COLUMNS, Run, Row, best_algorithm, is_dense, peer_rows, peers_of, problem_of, run_rows, size_text

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = 77
LIMIT_S = 600  # of one program; a peer's variants have limits of their own

Shape = Tuple[int, int, int]  # m, n, k of the whole problem


def gather_shapes(gpus: int) -> List[Shape]:
    """Of C = A B with rows of A and columns of B shared out: the usual one grows with the GPUs, the others are those of the
    MLP blocks of a 70B and a 175B model on 8 GPUs."""
    return [(1024 * gpus, 4096 * gpus, 4096), (8192, 3584 * gpus, 8192), (8192, 6144 * gpus, 12288)]


def scatter_shapes(gpus: int) -> List[Shape]:
    """The way back, with columns of A and rows of B: what was shared out of n is now shared out of k."""
    return [(m, k, n) for m, n, k in gather_shapes(gpus)]


def block_shapes(gpus: int) -> List[Shape]:
    """Tokens, feed-forward and hidden size of the MLP block of a 70B model, and a small one."""
    del gpus  # the models do not grow with the GPUs
    return [(8192, 28672, 8192), (1024, 14336, 4096)]


# The shapes of each chapter, and how many of them belong to the first set; the others follow on 8 GPUs.
PLANS = {"02": (gather_shapes, 1), "03": (lambda gpus: gather_shapes(gpus)[:1], 1), "04": (gather_shapes, 1),
         "05": (gather_shapes, 1), "06": (scatter_shapes, 1), "07": (block_shapes, 2)}

# Chapter 01: even and uneven columns on all GPUs, and one GPU with half of the columns as a control.
COLUMN_SPLIT = [(None, (4096, 8192, 1024)), (None, (4096, 8191, 1024)), (1, (4096, 4096, 1024))]


# Gradients: the article's table and rows, drawn in these ways.
FIRST_SPARSE, LAST_SPARSE = 8, 14
PATTERNS = ("uniform", "zipf", "identical")
# Rows of each GPU, 0.1 to 30 % of the article's table: where does version 6 no longer pay? (1 % is in the usual runs.) The
# largest take a minute and more to make and to check.
DENSITIES = (5000, 15000, 150000, 500000, 1500000)
DENSITY_LIMITS = ["--iterations", "5", "--timeout", "300"]
# The search for one of the article's eight ranks needs no other GPU.
SWEEP_OF_EIGHT = ["--features", "1", "--only", "sweep"]


def arguments_of(gpus: int, shape: Optional[Shape]) -> List[str]:
    """A chapter's command line."""
    sizes = [word for name, size in zip("mnk", shape or ()) for word in (f"--{name}", str(size))]
    return ["--gpus", str(gpus), *sizes]


def transport_plans(gpu_counts: Sequence[int]) -> List[List[str]]:
    """Chapter 08's one buffer, by both ways, and by NCCL without peer access: NCCL reads that setting once, so that it is a
    process of its own."""
    size = ["--rows", "131072", "--features", "2048", "--entries", "1", "--duplicates", "0", "--type", "f32"]
    return [[*setting, *arguments_of(gpus, None), *size, "--only", only] for gpus in gpu_counts if gpus > 1
            for setting, only in (([], "transport,through_host"), (["NCCL_P2P_DISABLE=1"], "transport"))]


def plans(chapter: str, gpu_counts: Sequence[int], all_sizes: bool) -> List[List[str]]:
    """The command lines that measure a chapter on real GPUs."""
    number = chapter[:2]
    if number == "01":
        return [arguments_of(gpus or max(gpu_counts), shape) for gpus, shape in COLUMN_SPLIT]
    if FIRST_SPARSE <= int(number) <= LAST_SPARSE:
        baselines = number == "08"  # there the transports do not depend on the rows
        runs = [[*arguments_of(gpus, None), "--pattern", pattern, *(["--only", "dense_nccl,host_gloo"] if baselines else [])]
                for gpus in gpu_counts for pattern in PATTERNS]
        if number == "14":
            most = arguments_of(max(gpu_counts), None)
            runs += [[*most, "--entries", str(entries), "--only", "v6_ordered", *DENSITY_LIMITS] for entries in DENSITIES]
            runs.append([*arguments_of(8, None), *SWEEP_OF_EIGHT])
        return runs + (transport_plans(gpu_counts) if baselines else [])
    if number not in PLANS:
        return [arguments_of(gpus, None) for gpus in gpu_counts]
    shapes, first = PLANS[number]
    return [arguments_of(gpus, shape) for gpus in gpu_counts
            for shape in (shapes(gpus) if all_sizes or gpus == 8 else shapes(gpus)[:first])]


class Outcome:
    """What came of all programs."""

    def __init__(self) -> None:
        self.reports: List[pathlib.Path] = []
        self.runs: List[Run] = []
        self.peers: List[Run] = []
        self.failures: List[str] = []
        self.skipped: List[str] = []
        self.statuses: Set[int] = set()

    def fail(self, what: str, status: int, reason: str) -> None:
        """Of a chapter, or of this script's own work."""
        self.failures.append(f"{what}: {reason}")
        self.statuses.add(status if status in (1, 2, 3) else 2)

    def status(self) -> int:
        """A wrong result is worse than a race or deadlock, that is worse than a failed call."""
        for status in (1, 3, 2):
            if status in self.statuses:
                return status
        return 0 if self.runs else SKIPPED


def say(text: str) -> None:
    """Progress goes where ./lab's own does."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def call(command: Sequence[str], log: pathlib.Path) -> Tuple[int, str]:
    """Runs a program; its exit status (2 if it had to be ended) and the last line that it wrote. It has a session of its
    own, so that what it has started ends with it."""
    with log.open("w", encoding="utf-8") as output:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                              start_new_session=True) as program:
            try:
                status = program.wait(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
                return 2, f"not finished after {LIMIT_S} s"
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return status, last if status >= 0 else f"ended by {signal.Signals(-status).name}"


def read_report(path: pathlib.Path) -> Optional[Run]:
    """A program's --json; none if it has not written one."""
    try:
        report: Run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report


class Bench:
    """Runs the programs one after the other."""

    def __init__(self, backend: str) -> None:
        self._programs = REPOSITORY / "build" / backend / "bin"
        self._folder = REPOSITORY / "build" / backend / "bench"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._calls = 0
        self.outcome = Outcome()

    def _measure(self, name: str, program: Sequence[str], arguments: Sequence[str]) -> Tuple[int, str, pathlib.Path]:
        self._calls += 1
        report = self._folder / f"{self._calls:02}-{name.split()[-1]}.json"
        report.unlink(missing_ok=True)
        started = time.monotonic()
        say(" ".join([name, *arguments]))
        status, last = call([*program, *arguments, "--json", str(report)], report.with_suffix(".log"))
        say(f"  {'ok' if status == 0 else last} ({time.monotonic() - started:.1f} s)")
        return status, last, report

    def chapter(self, name: str, arguments: Sequence[str]) -> None:
        """One run of a chapter. What of the arguments is no option and has a value, NAME=VALUE, goes to the environment."""
        settings = [word for word in arguments if "=" in word and not word.startswith("-")]
        options = [word for word in arguments if word not in settings]
        program = [*(["env", *settings] if settings else []), str(self._programs / name)]
        status, last, path = self._measure(" ".join([*settings, name]), program, options)
        what = " ".join([name, *arguments])
        report = read_report(path)
        if status == SKIPPED:
            self.outcome.skipped.append(f"{what}: {last}")
        elif status != 0:
            self.outcome.fail(what, status, f"exit status {status}: {last}")
        elif report is None:
            self.outcome.fail(what, 2, "no report")
        else:
            self.outcome.reports.append(path)
            self.outcome.runs.append(report)

    def peer(self, script: str, problem: Tuple[Any, ...]) -> None:
        """One run of a peer. One that fails is named, but says nothing of the chapters."""
        operation, m, n, k, gpus = problem
        sizes = [word for name, size in zip("mnk", (m, n, k)) for word in (f"--{name}", str(size))]
        program = [sys.executable, str(REPOSITORY / "tests" / "peers" / f"{script}.py")]
        arguments = ["--operation", operation, "--gpus", str(gpus), *sizes]
        status, last, path = self._measure(script, program, arguments)
        report = read_report(path)
        if report is not None and status == 0:
            self.outcome.reports.append(path)
            self.outcome.peers.append(report)
        else:
            what = f"{script}, {operation} on {gpus} GPUs"
            self.outcome.skipped.append(f"{script}: {last}" if status == SKIPPED else f"{what}: {last}")

    def peers(self) -> None:
        """All peers at what the chapters have measured."""
        problems = dict.fromkeys((OPERATIONS[run["chapter"][:2]], *problem_of(run)[:3], run["options"]["gpus"])
                                 for run in self.outcome.runs
                                 if run["chapter"][:2] in OPERATIONS and run["options"]["type"] == "f16")
        for problem in problems:
            self.peer("pytorch_peer", problem)
            if problem[0] == "all_gather_matmul":
                self.peer("jax_peer", problem)


# --- what is said of it ---------------------------------------------------------------------------------------------


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal: names on the left, numbers on the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in (header, *rows))


def ladder_rows(runs: Sequence[Run], peers: Sequence[Run]) -> List[List[str]]:
    """GEMM only, then the algorithms of each chapter, the best of each marked, then the peers."""
    rows: List[List[str]] = []

    def add(row: Row, name: str) -> None:
        rows.append([name, *row.cells()[1:]])
    for run in runs:
        best = best_algorithm(run)
        for row in run_rows(run):
            if row.role == "gemm_only" and not rows:
                add(row, "GEMM only")
            elif row.role == "algorithm":
                add(row, f"{run['chapter'][:2]} {row.name}{' *' if best and best['variant'] == row.name else ''}")
    for peer in peers_of(runs[0], peers):
        for row in peer_rows(peer):
            add(row, row.name)
    return rows


def where(run: Run) -> str:
    """The GPUs of a run."""
    return f"{run['options']['gpus']} x {run['hardware']['gpu']}"


def ladder(outcome: Outcome) -> str:
    """All that was measured: a table for each problem."""
    parts = []
    groups: Dict[Tuple[Any, ...], List[Run]] = {}
    gradients: Dict[Tuple[Any, ...], List[Run]] = {}
    for run in outcome.runs:
        if sparse_results.is_sparse(run):
            gradients.setdefault(problem_of(run), []).append(run)
        elif is_dense(run):
            groups.setdefault((OPERATIONS.get(run["chapter"][:2], run["chapter"]), *problem_of(run)), []).append(run)
        elif "kernel_ms" in run["results"][-1]:
            base, last = run["results"][0], run["results"][-1]
            parts.append(f"{run['chapter']}, {size_text(run)} on {where(run)}: {last['kernel_ms']:.2f} ms, "
                         f"{base['kernel_ms'] / last['kernel_ms']:.2f} x one GPU")
    for (operation, *_), runs in groups.items():
        modelled = " (modelled)" if runs[0]["modelled"] else ""
        header = [f"{COLUMNS[0]} (* best of the chapter)", COLUMNS[1] + modelled, *COLUMNS[2:]]
        parts.append(f"\n{operation} {size_text(runs[0])} on {where(runs[0])}\n"
                     + aligned(header, ladder_rows(runs, outcome.peers)))
    for runs in gradients.values():
        modelled = " (modelled)" if runs[0]["modelled"] else ""
        results = [(run["chapter"][:2], result) for run in runs for result in sparse_results.algorithms(run)]
        phases = sparse_results.phases_of([result for _, result in results])
        parts.append(f"\nsparse all-reduce {size_text(runs[0])} on {where(runs[0])}\n" + aligned(
            ["variant", "ms, host-timed" + modelled, *(name[:-3] for name in phases)],
            [[f"{number} {result['variant']}", *(sparse_results.milliseconds(result[name]) if name in result else ""
                                                for name in ("host_ms", *phases))] for number, result in results]))
    if any(run["modelled"] for run in outcome.runs):
        parts.append("\nTimes on virtual GPUs are modelled: they show what is faster than what. Nothing was written.")
    return "\n".join(parts)


def summary(outcome: Outcome) -> str:
    """What failed, and what did not run."""
    lines = [f"failed: {failure}" for failure in outcome.failures]
    lines += [f"not run: {reason}" for reason in dict.fromkeys(outcome.skipped)]
    dirty = sorted({run["commit"] for run in outcome.runs if re.search("-dirty$|^unknown$", run["commit"])})
    lines += [f"measured from sources that are not those of a commit: {commit}" for commit in dirty]
    return "\n".join(lines)


def file_name(hardware: Dict[str, str]) -> str:
    """The name of a machine's result file: h200-x8."""
    gpu = re.sub(r"[^a-z0-9]+", "-", hardware["gpu"].lower().replace("nvidia", "")).strip("-")
    return f"{gpu}-x{hardware['gpus']}"


def publish(outcome: Outcome) -> None:
    """Into docs/results, README.md and the pages."""
    tools = REPOSITORY / "tools"
    for command in ([str(tools / "collect_results"), "--keep", file_name(outcome.runs[0]["hardware"]),
                     *map(str, outcome.reports)], [str(tools / "update_pages.py"), "--measured"]):
        done = subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        say("\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()]))
        if done.returncode != 0:
            outcome.fail(pathlib.Path(command[0]).name, 2, done.stderr.strip())
            return


def gpu_counts(text: str) -> List[int]:
    """2,4,8 -> [2, 4, 8]"""
    counts = [int(word) for word in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("at least 1 GPU")
    return counts


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./lab bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cuda", "virtual"), required=True)
    parser.add_argument("--here", type=int, default=0, metavar="GPUS", help="real GPUs that answer")
    parser.add_argument("--gpus", type=gpu_counts, metavar="LIST", help="numbers of GPUs (default: 2, 4 and all)")
    parser.add_argument("--sizes", choices=("first", "all"), default="first",
                        help="all: the larger sizes on fewer than 8 GPUs, too")
    parser.add_argument("--peers", choices=("yes", "no"), default="yes")
    parser.add_argument("--unbuilt", action="append", default=[], metavar="CHAPTER", help="one that does not build")
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER")
    chosen = parser.parse_args()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    here = min(chosen.here, len(visible.split(","))) if visible else chosen.here
    chosen.gpus = chosen.gpus or sorted({count for count in (2, 4) if count < here} | {max(here, 1)})
    return chosen


def main() -> int:
    chosen = parse()
    bench = Bench(chosen.backend)
    outcome = bench.outcome
    for name in chosen.chapters:
        if name in chosen.unbuilt:
            outcome.fail(name, 2, "does not build")
            continue
        for arguments in plans(name, chosen.gpus, chosen.sizes == "all") if chosen.backend == "cuda" else [[]]:
            bench.chapter(name, arguments)
    if chosen.backend == "cuda" and chosen.peers == "yes":
        bench.peers()
    if any(not run["modelled"] for run in outcome.runs):
        publish(outcome)
    for text in (ladder(outcome), summary(outcome)):
        if text:
            print(text, flush=True)
    return outcome.status()


if __name__ == "__main__":
    sys.exit(main())
