"""Runs untrusted commands of a submission: as a user of its own, or in namespaces, within limits.

Levels, the best available one first (each report prints it):
  root         an unused user id for each submission (setpriv), so that all its processes can be found and ended; with
               bubblewrap, which root can always use, it sees no files but the compiler's and its own
  bubblewrap   namespaces of an ordinary user: the same view of the files, no network, processes that end with the first one
  none         limits only: *not isolated*
Nothing here trusts the processes' output; only what they write within the limits is returned.
"""
import contextlib
import ctypes
import dataclasses
import functools
import os
import pathlib
import pwd
import random
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from typing import Iterator, List, Optional, Sequence, Set

from processes import collect_orphans, forget, orphans, processes, quiet, resident, start, tree

OUTPUT = 64 * 1024
FRAME = 4 * 1024 * 1024
PROCESSES = 64
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
MEGABYTE = 1024 * 1024
PR_SET_CHILD_SUBREAPER = 36
_REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of one command."""

    seconds: float = 10
    memory: int = 1024 * MEGABYTE  # resident, all processes together
    output: int = OUTPUT
    file: int = 256 * MEGABYTE  # the largest file that it may write
    frame: int = FRAME


@dataclasses.dataclass
class Outcome:
    """The result of a command."""

    status: int  # exit status as in a shell; meaningless if `ended` is not empty
    ended: str  # the limit that ended it, as a sentence; "" if none
    output: str  # standard output and error
    frame: bytes  # bytes written to the descriptor of the answer
    seconds: float
    memory: int  # highest observed use


class Unavailable(Exception):
    """This level does not work on this machine."""


class Sandbox:
    """A sandbox of one submission: a folder that it may write (`work`), and a way to run commands there. A context manager."""

    level = "none"

    def __init__(self, readable: Sequence[pathlib.Path]) -> None:
        self.readable = [pathlib.Path(path) for path in readable]
        self.uid = os.getuid()
        self._one_at_a_time = threading.Lock()  # ending one command ends all processes of the submission
        # Not below TMPDIR, which another user may not be able to enter.
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="overlap-grade-", dir="/var/tmp"))
        self.work = self.home / "work"
        self.work.mkdir()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_error: object) -> None:
        self.end_all()
        shutil.rmtree(self.home, ignore_errors=True)

    # --- what differs by level ---------------------------------------------------------------------------------------

    def describe(self) -> str:
        """The level, for the report."""
        return "not isolated (neither root nor bubblewrap)"

    def isolated(self) -> bool:
        """Whether untrusted code may run at this level."""
        return False

    def advice(self) -> str:
        """What would isolate submissions."""
        return "install bubblewrap, or run as root"

    def command(self, command: Sequence[str]) -> List[str]:
        """The command line that starts `command` at this level."""
        return list(command)

    def mine(self, child: int) -> Set[int]:
        """The processes of the command that was started as `child`, and its orphans, which this process inherits."""
        return set().union(tree(child), *map(tree, orphans()))

    def end_all(self, child: Optional[int] = None) -> None:
        """Ends every process of the submission."""
        for _ in range(50):
            living = set() if child is None else self.mine(child) & set(processes())
            for pid in living:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not living:
                return
            time.sleep(0.01)

    # --- common to all levels ---------------------------------------------------------------------------------------

    def run(self, command: Sequence[str], limits: Limits, data: bytes = b"", frame: bool = False) -> Outcome:
        """Runs a command in `work`. With `frame`, its last argument is the number of a descriptor for the answer."""
        with contextlib.ExitStack() as open_files:
            open_files.enter_context(self._one_at_a_time)
            read_end = write_end = -1
            extra: List[int] = []
            if frame:
                read_end, write_end = os.pipe()
                open_files.callback(os.close, read_end)
                command, extra = [*command, str(write_end)], [write_end]
            bound = ["prlimit", f"--cpu={int(2 * limits.seconds) + 1}", "--core=0", f"--fsize={limits.file}",
                     *([f"--nproc={PROCESSES}"] if self.level != "none" else []), "--", *command]
            started = time.monotonic()
            try:
                child = start(
                    self.command(bound), cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    pass_fds=extra, start_new_session=True,
                    env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(self.work), "OPENBLAS_NUM_THREADS": "1"})
            finally:
                if frame:
                    os.close(write_end)
            try:
                watch = _Watch(self, child, limits, data, read_end)
                watch.loop()
            finally:
                self.end_all(child.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
                child.wait()
                forget(child)
                collect_orphans()
                for stream in (child.stdin, child.stdout):
                    assert stream is not None
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
        return Outcome(status, watch.ended, watch.output.decode(errors="replace"), bytes(watch.frame),
                       time.monotonic() - started, watch.memory)


class _Watch:
    """Writes a command's input, reads its output, and ends it if it exceeds a limit."""

    def __init__(self, sandbox: Sandbox, child: "subprocess.Popen[bytes]", limits: Limits, data: bytes, frame_end: int) -> None:
        self.sandbox, self.child, self.limits, self.data = sandbox, child, limits, memoryview(data)
        self.output, self.frame, self.ended, self.memory = bytearray(), bytearray(), "", 0
        self.deadline = time.monotonic() + limits.seconds
        self.selector = selectors.DefaultSelector()
        assert child.stdin is not None and child.stdout is not None
        self.input = child.stdin.fileno()
        os.set_blocking(self.input, False)
        self.selector.register(self.input, selectors.EVENT_WRITE)
        self.selector.register(child.stdout.fileno(), selectors.EVENT_READ, self.output)
        if frame_end >= 0:
            self.selector.register(frame_end, selectors.EVENT_READ, self.frame)

    def loop(self) -> None:
        """Runs until the command has ended and all its output is read, or until a limit is reached."""
        next_look = 0.0
        with self.selector:
            while self.selector.get_map() or self.child.poll() is None:
                if not self.selector.get_map():
                    time.sleep(0.01)
                for key, _events in self.selector.select(0.02):
                    self._write() if key.data is None else self._read(key)
                now = time.monotonic()
                if now > self.deadline:
                    self.ended = f"it did not end within {self.limits.seconds:g} s"
                if now > next_look and not self.ended:
                    self._look()
                    took = time.monotonic() - now  # with many processes the scan is slow: spend at most a tenth of the time
                    next_look = now + min(max(0.05, 10 * took), 0.5)
                # Do not wait for a daemon that keeps the pipes open: the command itself has ended.
                if self.ended or (self.child.poll() is not None and not self._anything_to_read()):
                    return

    def _anything_to_read(self) -> bool:
        return any(key.data is not None for key, _events in self.selector.select(0.05))

    def _write(self) -> None:
        try:
            self.data = self.data[os.write(self.input, self.data[:65536]):] if self.data else self.data
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.data = self.data[:0]
        if not self.data:
            self.selector.unregister(self.input)
            assert self.child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.child.stdin.close()

    def _read(self, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, 65536)
        if not piece:
            self.selector.unregister(key.fd)
            return
        key.data.extend(piece)
        if len(self.output) > self.limits.output:
            del self.output[self.limits.output:]
            self.ended = f"it wrote more than {self.limits.output // 1024} KiB of output"
        elif len(self.frame) > self.limits.frame:
            self.ended = "its answer is far too long"

    def _look(self) -> None:
        pids = self.sandbox.mine(self.child.pid)
        used = sum(map(resident, pids))
        self.memory = max(self.memory, used)
        if used > self.limits.memory:
            self.ended = f"it used more than {self.limits.memory // MEGABYTE} MB of memory"
        elif len(pids) > PROCESSES:
            self.ended = f"it started more than {PROCESSES} processes"


def _bubblewrap(readable: Sequence[pathlib.Path], work: pathlib.Path) -> List[str]:
    """Sees only system files, `readable` and `work`; no network; a process namespace of its own."""
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--proc",
               "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", "/tmp"):  # files there use memory that the watchdog does not see
        command += ["--size", str(MEGABYTE), "--tmpfs", folder]
    # bubblewrap creates missing parent folders readable by root only.
    for folder in sorted({parent for path in (*SYSTEM, *map(str, readable), str(work)) for parent in pathlib.Path(path).parents}):
        if folder != pathlib.Path("/"):
            command += ["--dir", str(folder), "--chmod", "0755", str(folder)]
    for path in SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            command += ["--ro-bind", path, path]
    for folder in readable:
        command += ["--ro-bind", str(folder), str(folder)]
    return [*command, "--bind", str(work), str(work), "--chdir", str(work)]


class BubblewrapSandbox(Sandbox):
    """Namespaces of an ordinary user."""

    level = "bubblewrap"

    def describe(self) -> str:
        return "bubblewrap (own namespaces: files, processes, network)"

    def isolated(self) -> bool:
        return True

    def command(self, command: Sequence[str]) -> List[str]:
        return [*_bubblewrap(self.readable, self.work), "--", *command]


class RootSandbox(Sandbox):
    """An unused user id."""

    level = "root"

    def __init__(self, readable: Sequence[pathlib.Path]) -> None:
        super().__init__(readable)
        self.uid = _unused_uid()
        os.chmod(self.home, 0o711)
        os.chown(self.work, self.uid, self.uid)
        os.chmod(self.work, 0o700)
        self.wrapped = _wraps()

    def describe(self) -> str:
        files = "sees no files but its own" if self.wrapped else f"no bubblewrap; {'cannot' if self.isolated() else 'CAN'} read the repository"
        return f"root (own user id {self.uid}, {files})"

    def advice(self) -> str:
        return f"install bubblewrap, or make the repository unreadable for others: chmod 700 {_REPOSITORY}"

    def isolated(self) -> bool:
        return self.wrapped or not self._reads_the_repository()

    def _reads_the_repository(self) -> bool:
        return quiet([*self._as_user(), "test", "-r", str(_REPOSITORY / "chapters")])

    def _as_user(self) -> List[str]:
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--no-new-privs",
                "--bounding-set=-all", "--inh-caps=-all"]

    def command(self, command: Sequence[str]) -> List[str]:
        before = [*_bubblewrap(self.readable, self.work), "--"] if self.wrapped else []
        return [*before, *self._as_user(), "--", *command]

    def mine(self, child: int) -> Set[int]:
        return {pid for pid, (_parent, uid) in processes().items() if uid == self.uid} | tree(child)

    def end_all(self, child: Optional[int] = None) -> None:
        # kill(-1) is one system call, so forking cannot outrun it; it reaches only this user's processes.
        for _ in range(100):
            if not any(uid == self.uid for _parent, uid in processes().values()):
                break
            quiet([*self._as_user(), "--", "sh", "-c", "kill -9 -1"])
        super().end_all(child)


def _unused_uid() -> int:
    """A user id without account and process; where ids are mapped, a mapped one."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        most = sum(int(line.split()[2]) for line in file)
    low, high = (1_000_000, 2_000_000) if most > 2_000_000 else (20_000, min(most, 60_000))
    used = {uid for _parent, uid in processes().values()} | {entry.pw_uid for entry in pwd.getpwall()}
    while True:
        uid = random.SystemRandom().randrange(low, high)
        if uid not in used:
            return uid


@functools.lru_cache(maxsize=None)
def _wraps() -> bool:
    return shutil.which("bwrap") is not None and quiet([*_bubblewrap([], pathlib.Path("/usr")), "--", "true"])


@functools.lru_cache(maxsize=None)
def best_level() -> str:
    """The best available level: root, bubblewrap or none."""
    if os.getuid() == 0 and quiet(["setpriv", "--reuid=60999", "--regid=60999", "--clear-groups", "--no-new-privs", "true"]):
        return "root"
    return "bubblewrap" if _wraps() else "none"


@contextlib.contextmanager
def make(readable: Sequence[pathlib.Path], level: str = "") -> Iterator[Sandbox]:
    """A sandbox of that level; "" is the best one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    kinds = {"root": RootSandbox, "bubblewrap": BubblewrapSandbox, "none": Sandbox}
    level = level or best_level()
    if level not in kinds or (level == "root" and os.getuid() != 0) or (level == "bubblewrap" and not _wraps()):
        raise Unavailable(f"the level '{level}' does not work here")
    with kinds[level](readable) as sandbox:
        yield sandbox
