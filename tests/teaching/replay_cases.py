"""What the tests of call log and replay share: writing a log, and asking a judge of it."""
import json
import pathlib
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

RACE_RUN = pathlib.Path(__file__).resolve().parents[2] / "tools" / "race_run"


class Case(NamedTuple):
    """An algorithm on a shape."""

    chapter: str
    algorithm: str
    gpus: int
    shape: Sequence[int]
    calls: int = 2
    type: str = "f16"

    def arguments(self) -> List[str]:
        """As both programs take them."""
        m, n, k = self.shape
        return ["--only", self.algorithm, "--gpus", str(self.gpus), "--m", str(m), "--n", str(n), "--k", str(k),
                "--calls", str(self.calls), "--type", self.type]


# The algorithms that only enqueue.
ALGORITHMS = (("02_gather_then_multiply", "nccl"), ("03_ring_all_gather", "ring"), ("04_copy_engine", "copy_engine_ring"),
              ("05_two_streams", "ring_two_streams"), ("05_two_streams", "pull_two_streams"), ("06_reduce_scatter", "nccl"),
              ("06_reduce_scatter", "rotating"), ("06_reduce_scatter", "rotating_f32"),
              ("06_reduce_scatter", "rotating_zero_filled"), ("06_reduce_scatter", "all_to_all"))


def write_log(program: pathlib.Path, case: Case, log: pathlib.Path) -> str:
    """Runs the program that writes a log, and returns what it says. Raises if it writes none."""
    done = subprocess.run([str(program), *case.arguments(), str(log)], capture_output=True, text=True, timeout=120,
                          check=False, errors="replace")
    if done.returncode != 0:
        raise AssertionError(f"{program.name} ends with {done.returncode}: {done.stderr}")
    return done.stderr


STATUS = {"right": 0, "wrong result": 1, "race": 3, "deadlock": 3}


def judge(build: pathlib.Path, case: Case, log: pathlib.Path, seed: int = 7, schedule: Optional[int] = None,
          race: bool = False) -> Dict[str, Any]:
    """The verdict of that build's judge. Raises if its exit status is not that of the verdict."""
    command = [str(build / "bin" / f"replay_{case.chapter}"), *case.arguments(), str(log), "--json", "--seed", str(seed)]
    command += [] if schedule is None else ["--schedule", str(schedule)]
    done = subprocess.run(([str(RACE_RUN)] if race else []) + command, capture_output=True, text=True, timeout=240,
                          check=False, errors="replace")
    if done.returncode == 77:
        raise ImportError(done.stdout + done.stderr)
    verdict = json.loads(done.stdout)
    if done.returncode != STATUS.get(verdict["verdict"], 2):
        raise AssertionError(f"status {done.returncode} for {verdict}")
    return verdict
