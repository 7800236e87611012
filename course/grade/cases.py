"""The cases that a submission runs. Sizes are drawn from the course's secret, data from the secret and the submission."""
import dataclasses
import hashlib
import hmac
import os
import pathlib
import random
from typing import List, Optional, Sequence


@dataclasses.dataclass(frozen=True)
class Case:
    """One process: several calls on one object per rank."""

    criterion: str  # exact, uneven, ranks, race, access or lesson
    problem: str
    ranks: int
    m: int
    n: int
    k: int
    type: str
    schedule: Optional[int] = None
    calls: int = 2
    timed: bool = False  # by the model; only without a schedule, which would randomise times

    @property
    def build(self) -> str:
        """The build in which the case runs."""
        return {"race": "race", "access": "check"}.get(self.criterion, "plain")

    @property
    def only_enqueues(self) -> bool:
        """True for a GEMM: its calls copy nothing through the host, so the host need not wait."""
        return self.problem != "sparse"

    @property
    def name(self) -> str:
        """The case in reports."""
        sizes = f"{self.m} x {self.n} x {self.k}" if self.problem != "sparse" else \
            f"{self.m} rows, {self.n} features, {self.k} entries"
        return f"P = {self.ranks}, {sizes}, {self.type}"

    def words(self, machine: str) -> List[str]:
        """The case as arguments of judge and runner."""
        words = [f"{key}={getattr(self, key)}" for key in ("problem", "ranks", "m", "n", "k", "type", "calls")]
        return [*words, f"machine={machine}", *([] if self.schedule is None else [f"schedule={self.schedule}"])]


# Large sparse cases: these lists of rows fill more than a tile and a block (256 rows in 13 and 14), and in the first one more
# than a warp's batch (2,048 rows in 12), and row numbers need more than 16 bits. A hand-out's ./try runs them, too.
LARGE = [Case("exact", "sparse", 3, 70_000, 2, 900, "f32"), Case("race", "sparse", 2, 1500, 2, 300, "f32"),
         Case("access", "sparse", 2, 1500, 2, 300, "f32")]


def secret_of(path: pathlib.Path) -> bytes:
    """The course's secret; created if missing, readable by its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(32))
    return path.read_bytes()


def schedule_of(number: int) -> int:
    """One of a thousand schedules, so that a student can type its number."""
    return 1 + number % 999


def number_of(secret: bytes, *words: str) -> int:
    """A number that only the holder of the secret can compute."""
    return int.from_bytes(hmac.new(secret, "\0".join(words).encode(), hashlib.sha256).digest()[:6], "big")


def cases_of(problem: str, chapter: str, secret: bytes, lesson: Sequence[int], extension: bool = False) -> List[Case]:
    """All cases of a task, equal for all students. `lesson`: ranks and sizes of the case that checks the chapter's lesson. A
    sparse extension has one larger case, whose kernels are timed."""
    draw = random.Random(number_of(secret, chapter, problem))
    ranks, m, n, k = lesson
    timed = Case("lesson", problem, ranks, m, n, k, "f32" if problem == "sparse" else "f16", timed=True)
    if problem == "sparse":
        return [*_sparse(draw), timed, *([Case("exact", "sparse", 2, 2000, 2, 300, "f32", timed=True)] if extension else [])]

    def odd(least: int, most: int) -> int:
        return draw.randrange(least, most) | 1

    def schedule() -> int:
        return schedule_of(draw.randrange(1 << 30))

    return [
        Case("exact", problem, 4, 64, 64, 32, "f16"),
        Case("exact", problem, 2, 48, 32, 64, "f32"),
        Case("uneven", problem, 3, odd(31, 70), odd(31, 70), odd(17, 40), "f16"),
        Case("uneven", problem, 4, odd(5, 7), 3, odd(3, 9), "f16", schedule()),
        Case("uneven", problem, 2, 1, odd(17, 99), odd(31, 70), "f16"),
        Case("uneven", problem, 4, odd(17, 99), 1, 3, "f32", schedule()),
        *[Case("ranks", problem, ranks, draw.randrange(9, 65), draw.randrange(9, 65), draw.randrange(9, 40), "f16", schedule(), 3)
          for ranks in (1, 2, 3, 4, 8)],
        Case("race", problem, 2, odd(17, 40), odd(17, 40), odd(9, 20), "f16"),
        Case("race", problem, 3, odd(17, 40), odd(17, 40), odd(9, 20), "f16", None, 3),
        Case("race", problem, 4, odd(17, 40), odd(17, 40), odd(9, 20), "f16", schedule(), 3),
        Case("race", problem, 4, 1, odd(5, 9), odd(3, 9), "f16", None, 3),  # three ranks are empty
        # A wave of tiles on eight multiprocessors: 06 then multiplies all chunks on one stream, and step 3 is odd.
        Case("race", problem, 4, odd(7, 12), odd(1800, 1900), odd(3, 6), "f16", schedule(), 3),
        Case("access", problem, 3, odd(17, 40), odd(17, 40), odd(9, 20), "f16"), timed,
    ]


def _sparse(draw: random.Random) -> List[Case]:
    """Sizes of a sparse case: rows of the table, features, entries of a rank."""
    def case(criterion: str, ranks: int, kind: str, scheduled: bool = False) -> Case:
        rows, features, entries = draw.randrange(40, 200), draw.randrange(2, 9), draw.randrange(5, 30)
        return Case(criterion, "sparse", ranks, rows, features, entries, kind, schedule_of(draw.randrange(1 << 30)) if scheduled else None)

    return [
        *LARGE, Case("exact", "sparse", 2, 64, 4, 32, "f16"),
        case("uneven", 3, "f32"), Case("uneven", "sparse", 4, 7, 1, 3, "f32"), Case("uneven", "sparse", 2, 1, 3, 1, "f32"),
        *[case("ranks", ranks, "f32", True) for ranks in (1, 2, 3, 4, 8)],
        case("race", 3, "f32", True),
        Case("race", "sparse", 3, 50, 2, 2, "f32", None, 3),  # rank 0 is empty in every other call
    ]
