"""Shared by the scripts that measure other systems (the chapters' peers): options, worker processes with a time limit for each
variant, table and JSON.

Each script measures one operation at one size, with the protocol of the chapters: f16 (matmul_all_reduce: bf16), random
normals, device time, slowest GPU, median, interleaved with GEMM only in the same processes. --m, --n and --k are the sizes of
the whole problem, as in the chapters:
  all_gather_matmul      C[m, n] = A[m, k] B[k, n]: rank r holds rows of A and columns of B, and needs its columns of C
  matmul_reduce_scatter  C[m, n] = A[m, k] B[k, n]: rank r holds columns of A and rows of B, and needs its rows of C
  matmul_all_reduce      the same, and all ranks need all of C
  mlp_block              m tokens, hidden size k, feed-forward size n: all-gather, GEMM, GELU, GEMM, reduce-scatter

Exit status 0, 2 (nothing could be measured) or 77, with one line "not run: reason".
"""
import argparse
import dataclasses
import datetime
import json
import math
import multiprocessing
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

OPERATIONS = ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce", "mlp_block")
FAILED, NOT_RUN = 2, 77

# Environment variables that affect measurements are recorded in the report; the host's settings are not changed.
STAMPED = ("NCCL_", "TORCH_NCCL_", "TORCH_SYMM_MEM_", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


class NotRun(Exception):
    """The peer cannot be measured here; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Case:
    """The operation, its sizes, and the options of the measurement."""
    operation: str
    gpus: int
    m: int
    n: int
    k: int
    iterations: int
    warmup: int
    limit_s: float

    def flops(self) -> float:
        """Floating point operations of each rank."""
        products = 2 if self.operation == "mlp_block" else 1
        return 2.0 * products * self.m * self.n * self.k / self.gpus

    def element_type(self) -> str:
        """The type of all matrices. PyTorch's small all-reduces do not support f16."""
        return "bf16" if self.operation == "matmul_all_reduce" else "f16"

    def options(self) -> Dict[str, Any]:
        """As the report names them."""
        return {"operation": self.operation, "gpus": self.gpus, "m": self.m, "n": self.n, "k": self.k, "type": self.element_type(),
                "iterations": self.iterations, "warmup": self.warmup}

    def require_even_shares(self) -> None:
        """Throws NotRun if shards would be unequal, which the peers do not support."""
        for name, size in (("m", self.m), ("n", self.n), ("k", self.k)):
            if size % self.gpus and not (name == "m" and self.operation == "matmul_all_reduce"):
                raise NotRun(f"--{name} {size} is not a multiple of {self.gpus} GPUs")


@dataclasses.dataclass(frozen=True)
class Times:
    """Samples of one variant in milliseconds, each the slowest rank's, and of GEMM only interleaved with it."""
    device_ms: List[float]
    gemm_only_ms: List[float]
    host_ms: List[float]
    more: Dict[str, Any]

    def result(self, variant: str, case: Case) -> Dict[str, Any]:
        """The variant's entry in the report."""
        device, gemm = statistics.median(self.device_ms), statistics.median(self.gemm_only_ms)
        fields: Dict[str, Any] = {"variant": variant, "role": "algorithm", "gpus": case.gpus, "device_ms": device,
                                  "device_p99_ms": percentile(self.device_ms, 99),
                                  "tflops": case.flops() / (device * 1e9), "ratio_to_gemm_only": device / gemm,
                                  "gemm_only_ms": gemm, **self.more}
        if self.host_ms:
            fields["host_ms"] = statistics.median(self.host_ms)
        return fields


# Messages of workers: of rank 0 ("version", text), ("starts", variant), ("measured", variant, Times), ("done",); of any rank
# ("failed", reason, variant or None) or ("not run", reason).
Message = Tuple[Any, ...]


class Progress:
    """Reports a worker's progress to the parent."""

    def __init__(self, rank: int, messages: Any) -> None:
        self._rank, self._messages = rank, messages
        self._variant: Optional[str] = None

    def _tell(self, *message: Any) -> None:
        if self._rank == 0:
            self._messages.put(message)

    def version(self, text: str) -> None:
        """The framework's version."""
        self._tell("version", text)

    def starts(self, variant: str) -> None:
        """The variant's time limit begins."""
        self._variant = variant
        self._tell("starts", variant)

    def measured(self, variant: str, times: Times) -> None:
        """The variant is done."""
        self._variant = None
        self._tell("measured", variant, times)

    def done(self) -> None:
        """All variants are done."""
        self._tell("done")

    def failed(self, error: BaseException) -> None:
        """A failure on any rank."""
        if isinstance(error, NotRun):
            self._messages.put(("not run", str(error)))
        else:
            self._messages.put(("failed", sentence(error), self._variant))


# work(rank, case, variants, port, progress): measures the variants in this order. May throw.
Work = Callable[[int, Case, Sequence[str], int, Progress], None]


def run_worker(work: Work, rank: int, case: Case, variants: Sequence[str], port: int, messages: Any) -> None:
    """The main function of a worker process."""
    progress = Progress(rank, messages)
    try:
        work(rank, case, variants, port, progress)
    except Exception as error:
        progress.failed(error)
        raise SystemExit(1) from error
    progress.done()


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that `percent` per cent of all do not exceed (nearest rank)."""
    return sorted(samples)[max(0, math.ceil(len(samples) * percent / 100) - 1)]


def sentence(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def free_port() -> int:
    """A port of this host for the workers' rendezvous."""
    import socket
    with socket.socket() as meeting:
        meeting.bind(("127.0.0.1", 0))
        return int(meeting.getsockname()[1])


class Team:
    """The worker processes of some variants. Leaving `with` ends them in any state."""

    def __init__(self, processes: int, work: Work, case: Case, variants: Sequence[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._messages = context.Queue()
        port = free_port()
        self._processes = [context.Process(target=run_worker, daemon=True,
                                            args=(work, rank, case, variants, port, self._messages))
                           for rank in range(processes)]
        for process in self._processes:
            process.start()

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.join(timeout=5)  # a finished worker frees its GPU itself
            if process.is_alive():
                process.kill()
                process.join()

    def next(self, limit_s: float) -> Message:
        """The next message; a failure after the time limit or if a process has died."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            dead = [process.exitcode for process in self._processes if process.exitcode not in (None, 0)]
            try:
                message: Message = self._messages.get(timeout=1 if dead else 0.2)
                return message
            except queue.Empty:
                if dead:
                    return "failed", f"a process ended with status {dead[0]}", None
        self.kill()
        return "failed", f"not finished after {limit_s:g} s", None

    def kill(self) -> None:
        """Kills all processes, because they wait for each other."""
        for process in self._processes:
            process.kill()


def measure(case: Case, variants: Sequence[str], processes: int, work: Work) -> Tuple[str, List[Dict[str, Any]]]:
    """The framework's version, and one result for each variant. If a variant fails or hangs, its processes are ended, and the
    remaining variants run in new ones."""
    version, results, left = "", [], list(variants)
    while left:
        with Team(processes, work, case, left) as team:
            running: Optional[str] = None
            while True:
                kind, *content = team.next(case.limit_s)
                if kind == "version":
                    version = content[0]
                elif kind == "starts":
                    running = content[0]
                elif kind == "measured":
                    results.append(content[1].result(content[0], case))
                    left.remove(content[0])
                    running = None
                elif kind == "not run":
                    raise NotRun(content[0])
                elif kind == "failed":
                    team.kill()
                    running = content[1] or running
                    failed = [running] if running else list(left)  # no variant: the start failed, the same for all
                    results += [{"variant": name, "status": "failed", "reason": content[0]} for name in failed]
                    left = [name for name in left if name not in failed]
                    break
                else:
                    return version, results
    return version, results


def gemm_only_result(results: List[Dict[str, Any]], case: Case) -> List[Dict[str, Any]]:
    """GEMM only, as measured beside the variants; empty if none was measured."""
    times = [result["gemm_only_ms"] for result in results if "gemm_only_ms" in result]
    if not times:
        return []
    median = statistics.median(times)
    return [{"variant": "gemm_only", "role": "gemm_only", "gpus": case.gpus, "device_ms": median,
             "tflops": case.flops() / (median * 1e9), "ratio_to_gemm_only": 1.0}]


def hardware() -> Dict[str, str]:
    """GPU, number of GPUs and driver, by the keys of the chapters' reports."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        listed = []
    if not listed:
        raise NotRun("no GPU answers (nvidia-smi)")
    name, driver = (word.strip() for word in listed[0].split(","))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = min(len(listed), len(visible.split(","))) if visible else len(listed)
    return {"gpu": name, "gpus": str(gpus), "driver": driver}


def report(peer: str, protocol: str, version: str, machine: Dict[str, str], options: Dict[str, Any],
           results: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The JSON report: like a chapter's, with the peer's name as the chapter."""
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith(STAMPED)}
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = "ok" if any("host_ms" in result or "device_ms" in result for result in results) else "failed"
    return {"peer": peer, "version": version, "modelled": False, "hardware": machine, "environment": environment,
            "options": options, "protocol": protocol, "date": date, "status": status, "results": results}


def table(results: List[Dict[str, Any]]) -> str:
    """The results as a text table."""
    lines = [f"{'variant':44} {'time us':>9} {'p99 us':>9} {'host us':>9} {'TFLOP/s':>8} {'x GEMM only':>12}"]
    for result in results:
        if "device_ms" not in result:
            lines.append(f"{result['variant']:44} failed: {result['reason']}")
            continue
        cells = [f"{1e3 * result[name]:9.1f}" if name in result else f"{'':9}"
                 for name in ("device_ms", "device_p99_ms", "host_ms")]
        lines.append(f"{result['variant']:44} {' '.join(cells)} {result['tflops']:8.0f} "
                     f"{result['ratio_to_gemm_only']:10.3f} x")
    return "\n".join(lines)


def parse(description: str, operations: Sequence[str]) -> Tuple[Case, Optional[pathlib.Path]]:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=description, epilog=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def count(text: str) -> int:
        value = int(text)
        if value < 1:
            raise argparse.ArgumentTypeError(f"{value} is less than 1")
        return value
    parser.add_argument("--operation", choices=operations, default=operations[0])
    parser.add_argument("--gpus", type=count, default=2, help="processes, one for each GPU (default 2)")
    for name in "mnk":
        parser.add_argument(f"--{name}", type=count, required=True, help="of the whole problem, in elements")
    parser.add_argument("--iterations", type=count, default=30, help="timed calls of each variant (default 30, at least 20)")
    parser.add_argument("--warmup", type=count, default=5, help="calls before them (default 5)")
    parser.add_argument("--limit", type=float, default=240, metavar="SECONDS",
                        help="time limit of each variant, and of the start (default 240)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    chosen = parser.parse_args()
    return Case(chosen.operation, chosen.gpus, chosen.m, chosen.n, chosen.k, max(20, chosen.iterations), chosen.warmup,
                chosen.limit), chosen.json


def run_peer(peer: str, protocol: str, description: str, variants: Dict[str, Sequence[str]], require: Callable[[], None],
             processes: Callable[[Case], int], work: Work) -> int:
    """Runs a whole script; returns the exit status. `variants` by operation; `require` throws NotRun if the framework is
    missing; `processes` gives the number that a case needs."""
    case, json_path = parse(description, tuple(variants))
    try:
        require()
        machine = hardware()
        if case.gpus > int(machine["gpus"]):
            raise NotRun(f"{case.gpus} GPUs asked for, {machine['gpus']} here")
        case.require_even_shares()
        version, results = measure(case, variants[case.operation], processes(case), work)
    except NotRun as reason:
        print(f"not run: {reason}")
        return NOT_RUN
    results = gemm_only_result(results, case) + results
    print(f"{peer} {version}: {case.operation} {case.m} x {case.n} x {case.k} on {case.gpus} x {machine['gpu']}")
    print(table(results), flush=True)
    whole = report(peer, protocol, version, machine, case.options(), results)
    if json_path is not None:
        json_path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    return 0 if whole["status"] == "ok" else FAILED


if __name__ == "__main__":
    sys.exit("this is no program: see pytorch_peer.py and jax_peer.py")
