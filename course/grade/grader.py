"""Grades submissions of one chapter: gate, unit, cases, points."""
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import stat
import subprocess
import time
from typing import Dict, List

import cases
import gate
import points
import sandbox
import unit
from case_run import CaseRunner, Verdict
from cases import Case
from points import Grade
from task import ROOT, Task


BUILDS = {"plain": "virtual", "check": "check", "race": "race"}  # their folders


class Unreadable(Exception):
    """The file is nothing that can be graded, in one sentence."""


def read_file(path: pathlib.Path) -> bytes:
    """A submission's bytes: of a file, not of a link, a pipe or a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        link = path.is_symlink()
        raise Unreadable("a symbolic link is not graded" if link else f"cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Unreadable("a FIFO, a device or a folder is not graded")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > gate.MOST_BYTES:
            raise Unreadable(f"it is larger than {gate.MOST_BYTES // 1024} KiB")
        return file.read()


def why_no_race() -> str:
    """Why the race detector cannot start here; empty if it can."""
    return subprocess.run(["bash", ROOT / "virtual_gpu" / "tools" / "race_run", "--why-not"], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()


def command(kind: str) -> List[str]:
    """How the program of a build starts in the submission's folder."""
    return [f"./{kind}"] if kind != "race" else ["setarch", os.uname().machine, "-R", f"./{kind}"]


@dataclasses.dataclass
class Settings:
    builds: Dict[str, pathlib.Path]  # plain and, if they are there, race and check
    secret: bytes
    level: str = ""  # of the sandbox; the best one if empty
    seconds: float = 60  # for one submission; the limits of each run grow and shrink with it
    gate: bool = True  # the tests leave it out to see what stands behind it


class Grader:
    """Of one task; use it in a with."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.race = "" if "race" in settings.builds else "the race build is not there"
        self.race = self.race or why_no_race()
        self._expected: Dict[str, Verdict] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Grader":
        builds = {kind: path for kind, path in self.settings.builds.items() if kind != "race" or not self.race}
        with contextlib.ExitStack() as folders:  # deleted, too, if the repository's own header does not build
            self.kit = unit.Kit(self.task, builds, self.settings.seconds / 60)
            folders.callback(self.kit.close)
            self._honest = folders.enter_context(sandbox.make([self.kit.folder], self.settings.level))
            self.kit.learn(self._honest)
            unit.link(self._honest, self.kit, "plain")
            self._stack = folders.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def isolated(self) -> bool:
        """Whether strangers' submissions may run here."""
        return self._honest.isolated()

    def advice(self) -> str:
        """What would isolate them."""
        return self._honest.advice()

    def describe(self) -> str:
        """The level of isolation."""
        return self._honest.describe()

    def expected(self, case: Case, owner: str) -> Verdict:
        """What the repository's header moves in a case."""
        key = f"{case.criterion} {case.name} {owner if case.problem == 'sparse' else ''} {case.calls}"
        if key not in self._expected:
            self._expected[key] = self._runner({"plain": self._honest}, "plain", owner).run_once(case)
            if not self._expected[key].right:
                raise RuntimeError(f"the repository's own header fails: {case.name}: {self._expected[key].why}")
        return self._expected[key]

    def grade(self, data: bytes) -> Grade:
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            # The builds have places and users of their own: one's end is not the other's, and two run at a time.
            places = {kind: stack.enter_context(sandbox.make([self.kit.folder], self.settings.level)) for kind in self.kit.tools}
            marks = self._marks(places, data, started)
            return Grade(marks, places["plain"].describe(), time.monotonic() - started, self.task.variation)

    def _marks(self, places: Dict[str, sandbox.Sandbox], data: bytes, started: float) -> List[points.Mark]:
        try:
            self._pass_gate(places, data)
        except gate.Refused as refusal:
            return points.refused(f"refused: {refusal}")
        except unit.BuildFailed as failure:
            first, _, rest = str(failure).partition("\n")
            return points.refused(first, rest)
        owner = hashlib.sha256(data).hexdigest()
        every = cases.cases_of(self.task.problem, self.task.path, self.settings.secret, self.task.lesson.sizes, bool(self.task.extension))

        def judged(kind: str) -> List[Verdict]:
            wanted = [case for case in every if case.build == kind]
            runner = self._runner(places, kind, owner)
            return points.judge_all(runner, wanted, lambda: time.monotonic() - started > 0.75 * self.settings.seconds)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            verdicts = [verdict for found in pool.map(judged, list(self.kit.tools)) for verdict in found]
        return points.marks_of(verdicts, lambda case: self.expected(case, owner), self.race, self.task.lesson, bool(self.task.extension))

    def _pass_gate(self, places: Dict[str, sandbox.Sandbox], data: bytes) -> None:
        """What a submission is before it runs. Throws gate.Refused, unit.BuildFailed."""
        text = gate.read(data)
        for place in places.values():
            unit.place(place, self.task, text.encode())
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for _ in pool.map(self._build, places.values(), places):
                pass

    def _build(self, place: sandbox.Sandbox, kind: str) -> None:
        """The program of a submission that lies there. Throws unit.BuildFailed."""
        name = unit.build_object(place, self.kit, kind, self.settings.gate)
        if self.settings.gate:
            unit.check_object(place, self.kit, name, kind)
        unit.link(place, self.kit, kind)

    def _runner(self, places: Dict[str, sandbox.Sandbox], kind: str, owner: str) -> CaseRunner:
        """Of the submission that lies in a build's place."""
        judge = self.settings.builds["plain"] / "bin" / "teaching_judge"
        return CaseRunner(self.kit, places[kind], command(kind), judge, self.settings.secret, owner, self.settings.seconds / 60)


def why_not_all() -> str:
    """Why not all points can be judged here; empty if they can."""
    missing = [folder for folder in BUILDS.values() if not (ROOT / "build" / folder / "teaching" / "toolchain.json").is_file()]
    return f"build/{missing[0]}/teaching is not there: ./lab grade builds it" if missing else why_no_race()


def default_settings(level: str = "", seconds: float = 60) -> Settings:
    """With the builds that are there."""
    builds = {kind: ROOT / "build" / folder for kind, folder in BUILDS.items()
              if (ROOT / "build" / folder / "teaching" / "toolchain.json").is_file()}
    if "plain" not in builds or "check" not in builds:
        raise RuntimeError(why_not_all())
    return Settings(builds, cases.secret_of(ROOT / "build" / "virtual" / "teaching" / "secret"), level, seconds)
