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


BUILDS = {"plain": "virtual", "check": "check", "race": "race"}  # build folders


class Unreadable(Exception):
    """The file cannot be graded: one sentence."""


def read_file(path: pathlib.Path) -> bytes:
    """A submission's bytes. Throws Unreadable unless the path is a regular file (no link, pipe or device)."""
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
    """The command that runs a build's program in the submission's folder."""
    return [f"./{kind}"] if kind != "race" else ["setarch", os.uname().machine, "-R", f"./{kind}"]


@dataclasses.dataclass
class Settings:
    builds: Dict[str, pathlib.Path]  # plain and, if built, race and check
    secret: bytes
    level: str = ""  # of the sandbox; empty: the best one
    seconds: float = 60  # for one submission; scales the limits of each run
    gate: bool = True  # False in tests of the checks behind the gate


class Grader:
    """Grades submissions of one task; a context manager."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.race = "" if "race" in settings.builds else "the race build is not there"
        self.race = self.race or why_no_race()
        self._expected: Dict[str, Verdict] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Grader":
        builds = {kind: path for kind, path in self.settings.builds.items() if kind != "race" or not self.race}
        with contextlib.ExitStack() as folders:  # also deletes them if the repository's own header does not build
            self.kit = unit.Kit(self.task, builds, self.settings.seconds / 60)
            folders.callback(self.kit.close)
            self.honest = folders.enter_context(sandbox.make([self.kit.folder], self.settings.level))  # of the repository's own header
            self.kit.learn(self.honest)
            unit.link(self.honest, self.kit, "plain")
            self._stack = folders.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def expected(self, case: Case, owner: str) -> Verdict:
        """The verdict on the repository's header in a case: the expected counts."""
        key = f"{case.criterion} {case.name} {owner if case.problem == 'sparse' else ''} {case.calls}"
        if key not in self._expected:
            self._expected[key] = self._runner({"plain": self.honest}, "plain", owner).run_once(case)
            if not self._expected[key].right:
                raise RuntimeError(f"the repository's own header fails: {case.name}: {self._expected[key].why}")
        return self._expected[key]

    def grade(self, data: bytes) -> Grade:
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            # Each build has a folder and a user of its own, so that two can run at a time and each is ended alone.
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
        """Checks the submission in all builds before it runs. Throws gate.Refused, unit.BuildFailed."""
        text = gate.read(data)
        for place in places.values():
            unit.place(place, self.task, text.encode())
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for _ in pool.map(self._build, places.values(), places):
                pass

    def _build(self, place: sandbox.Sandbox, kind: str) -> None:
        """Builds the program of the submission in `place`. Throws unit.BuildFailed."""
        name = unit.build_object(place, self.kit, kind, self.settings.gate)
        if self.settings.gate:
            unit.check_object(place, self.kit, name, kind)
        unit.link(place, self.kit, kind)

    def _runner(self, places: Dict[str, sandbox.Sandbox], kind: str, owner: str) -> CaseRunner:
        """Runs cases of the submission in a build's folder."""
        judge = self.settings.builds["plain"] / "bin" / "teaching_judge"
        return CaseRunner(self.kit, places[kind], command(kind), judge, self.settings.secret, owner, self.settings.seconds / 60)


def why_not_all() -> str:
    """Why not all points can be judged here; empty if they can."""
    missing = [folder for folder in BUILDS.values() if not (ROOT / "build" / folder / "teaching" / "toolchain.json").is_file()]
    return f"build/{missing[0]}/teaching is not there: ./lab grade builds it" if missing else why_no_race()


def default_settings(level: str = "", seconds: float = 60) -> Settings:
    """Settings with the builds that exist."""
    builds = {kind: ROOT / "build" / folder for kind, folder in BUILDS.items()
              if (ROOT / "build" / folder / "teaching" / "toolchain.json").is_file()}
    if "plain" not in builds or "check" not in builds:
        raise RuntimeError(why_not_all())
    return Settings(builds, cases.secret_of(ROOT / "build" / "virtual" / "teaching" / "secret"), level, seconds)
