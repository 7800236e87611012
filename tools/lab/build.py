"""Set-up, configuring and building."""
import contextlib
import fcntl
import os
import pathlib
import re
import sys
from typing import IO, Dict, Iterator, List, Optional, Sequence

import process
from process import ROOT, Refusal

LINES = 40  # of a log, when something failed
BEFORE = 3  # lines before the first error: its function, and the files that include it
NOT_THE_COMPILERS = re.compile(r"-- |\[\d+/\d+\]|FAILED: |ninja: |(: && )?/\S+(python3|cmake|c\+\+|nvcc) |Preset CMake|  [A-Z_]+[=:]|\s*$")
NAMES = {"virtual": " for virtual GPUs", "cuda": " for cuda GPUs", "race": " for virtual GPUs", "check": " for virtual GPUs"}


class Skip(Exception):
    """Why the programs cannot run here."""


def shell(function: str, *arguments: str) -> str:
    """The output of a function of tools/lab/setup.sh. If the function fails, it has printed the reason, and ./lab exits with
    its status."""
    status, printed = process.output(["bash", str(ROOT / "tools" / "lab" / "setup.sh"), function, *arguments])
    if status != 0:
        raise SystemExit(status)
    return printed


def check_path(path: pathlib.Path) -> None:
    """Throws Refusal if the path holds a character that CMake or ninja's dependency files do not support, see
    cmake/Paths.cmake."""
    odd = re.search(r"""["#$&'*;<>?[\\\]^`|\x00-\x1f]""", str(path))
    if odd:
        raise Refusal(f"CMake and ninja cannot build what has {odd[0]} in its path: {path}")


def set_up(purpose: str, backend: str, yes: bool) -> "Build":
    """Installs the packages that run, test or a notebook needs. Returns the build for the requested GPUs, else for those of the
    machine."""
    check_path(ROOT)
    chosen, _, nvcc = shell("set_up", purpose, backend, str(yes).lower()).partition(" ")
    return Build(chosen, nvcc)


class Build:
    """One folder below build/."""

    def __init__(self, backend: str, nvcc: str) -> None:
        self.backend, self.nvcc = backend, nvcc
        self.folder = ROOT / "build" / backend
        self._configured: Optional[List[str]] = None

    def race(self) -> "Build":
        """The build with the race detector."""
        return Build("race", self.nvcc)

    def check(self) -> "Build":
        """The build that checks each access."""
        return Build("check", self.nvcc)

    def command(self, program: str) -> List[str]:
        """The command that starts a program of this build."""
        start = [str(ROOT / "virtual_gpu" / "tools" / "race_run")] if self.backend == "race" else []
        return [*start, str(self.folder / program)]

    def build(self, target: str, *settings: str) -> None:
        """Builds a target, or several with spaces between them, with all output in the log; one ./lab at a time. Refusal if it
        fails."""
        log = self.folder / "lab.log"
        self._make_folder()
        with self._locked():
            try:
                file = open(log, "wb")
            except OSError as error:
                raise Refusal(f"build/{self.backend}/lab.log cannot be written: {error.strerror}; run what is "
                              f"built by its path, in build/{self.backend}/bin") from None
            targets = target.split()
            what = target if len(targets) == 1 else f"{len(targets)} targets"
            process.say(f"building {what}{NAMES[self.backend]} (output: {log.relative_to(ROOT)})")
            with file:
                built = self._configure(settings, file) and self._cmake(
                    ["--build", str(self.folder), "--target", *targets, "-j", jobs()], file)
            if not built:
                sys.stderr.write(what_failed(log.read_text(encoding="utf-8", errors="replace")))
                raise Refusal(f"building {what} failed")

    def need_gpus(self) -> None:
        """Throws Skip if real GPUs are requested and none responds, or if the race detector cannot start."""
        problem = ""
        if self.backend == "cuda":
            problem = shell("why_no_cuda_run")
        if self.backend == "race":
            problem = process.output([str(ROOT / "virtual_gpu" / "tools" / "race_run"), "--why-not"])[1]
        if problem:
            raise Skip(problem)

    def _configure(self, settings: Sequence[str], log: IO[bytes]) -> bool:
        """Configures once for the same settings; afterwards ninja detects changes. A hand-out's folder is in CMake's cache,
        where another ./lab may have replaced it."""
        of_a_folder = any(setting.startswith(("-DOVERLAP_WORK=", "-DOVERLAP_PLANTED=")) for setting in settings)
        if of_a_folder or self._configured != list(settings):
            self._configured = None
            if not self._cmake(["-S", str(ROOT), "--preset", self.backend, *settings], log):
                return False
            self._configured = list(settings)
        return True

    def _cmake(self, arguments: List[str], log: IO[bytes]) -> bool:
        environment: Dict[str, str] = dict(os.environ)
        if self.backend == "cuda":
            environment["CUDACXX"] = self.nvcc
        return process.quietly(["cmake", *arguments], log, environment) == 0

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refusal(f"{self.folder.relative_to(ROOT)} cannot be made: {error.strerror}") from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds a lock: no other ./lab configures or builds in this folder."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                process.say(f"another ./lab is building in {self.folder.relative_to(ROOT)}; this one waits")
                fcntl.flock(folder, fcntl.LOCK_EX)
            except OSError:
                pass  # the file system does not support locks
            yield
        finally:
            os.close(folder)


def what_failed(log: str) -> str:
    """The messages of the compiler or the linker in a build's log, from the first error on; without an error, the log's end."""
    own = [line for line in log.splitlines(keepends=True) if not NOT_THE_COMPILERS.match(line)]
    first = next((number for number, line in enumerate(own) if re.search(r"\b(error|undefined reference)\b", line)), None)
    no_main = re.search("undefined reference to [`']main'", log) is not None
    hint = "no source has a main(): name the file that has one behind --\n" if no_main else ""
    return "".join(log.splitlines(keepends=True)[-LINES:] if first is None else own[max(first - BEFORE, 0):][:LINES]) + hint


def jobs() -> str:
    """The number of compilers or tests that run in parallel."""
    return process.output(["nproc"])[1]
