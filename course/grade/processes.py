"""Processes: the grader's own, and process trees."""
import contextlib
import os
import subprocess
import threading
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

_started: Set[int] = set()  # the grader's own commands that run now
_starting = threading.Lock()


def start(command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Starts a process that orphans() does not count, until forget()."""
    with _starting:
        child = subprocess.Popen(command, **options)  # pylint: disable=consider-using-with
        _started.add(child.pid)
        return child


def trusted(command: Sequence[str], data: bytes = b"", statuses: Sequence[int] = (0,)) -> bytes:
    """The output of a command of the grader's own, run outside of any sandbox. Throws RuntimeError for another exit status."""
    with start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            printed, _ = child.communicate(data)
        finally:
            _started.discard(child.pid)
    if child.returncode not in statuses:
        raise RuntimeError(f"{os.path.basename(command[0])} ends with status {child.returncode}")
    return printed


def quiet(command: Sequence[str]) -> bool:
    """True if a command succeeds; its output is discarded."""
    try:
        child = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    try:
        return child.wait(timeout=20) == 0
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return False
    finally:
        forget(child)


def tree(root: int) -> Set[int]:
    """A process and all its descendants."""
    children: Dict[int, List[int]] = {}
    for pid, (parent, _uid) in processes().items():
        children.setdefault(parent, []).append(pid)
    found, rest = set(), [root]
    while rest:
        pid = rest.pop()
        found.add(pid)
        rest += [child for child in children.get(pid, []) if child not in found]
    return found


def processes() -> Dict[int, Tuple[int, int]]:
    """Parent and user id of each live process."""
    return {pid: (parent, uid) for pid, state, parent, uid in _listed() if state != "Z"}


def _listed() -> Iterator[Tuple[int, str, int, int]]:
    """Number, state, parent and user id of each process."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            yield int(name), state, int(parent), os.stat(f"/proc/{name}").st_uid


def resident(pid: int) -> int:
    """Resident bytes of a process."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def orphans() -> Set[int]:
    """Processes that this process, a subreaper, inherited when their parent ended."""
    with _starting:
        return {pid for pid, (parent, _uid) in processes().items() if parent == os.getpid()} - _started


def collect_orphans() -> None:
    """Waits for the orphans that have ended: otherwise they stay in /proc, which every look reads."""
    with _starting:
        for pid, state, parent, _uid in list(_listed()):
            if state == "Z" and parent == os.getpid() and pid not in _started:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def forget(child: "subprocess.Popen[bytes]") -> None:
    """Called when the process has ended and was waited for."""
    _started.discard(child.pid)
