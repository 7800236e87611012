"""Starting and ending other programs, and what ./lab says itself."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import IO, Dict, Iterator, List, NoReturn, Optional, Tuple

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 3  # between asking programs to end, and ending them


class Refusal(Exception):
    """Why ./lab ends with status 2, in one sentence."""


def say(text: str) -> None:
    """A line of ./lab's own: standard output is the programs'."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


class _Child:
    """The program that runs now, and the signal that came meanwhile."""

    process: "Optional[subprocess.Popen[bytes]]" = None
    starting = False
    alone = False  # it has a session of its own
    signal: Optional[int] = None


def _handle(number: int, _frame: object) -> None:
    if not _Child.starting:
        end_by(number)
    _Child.signal = number
    _forward()


def _forward() -> None:
    if _Child.process is None or _Child.signal is None:
        return
    with contextlib.suppress(ProcessLookupError):
        if _Child.alone:
            os.killpg(_Child.process.pid, signal.SIGTERM)
        else:
            _Child.process.send_signal(_Child.signal)


def end_by(number: int) -> NoReturn:
    """As the signal would have ended us, so that who called sees it."""
    sys.stdout.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise AssertionError("the signal is blocked")


def end_programs_with_us() -> None:
    """From now on a signal that ends ./lab ends what it has started, too. A closed pipe ends it without a word."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _handle)


@contextlib.contextmanager
def _started(command: List[str], alone: bool, **options: object) -> "Iterator[subprocess.Popen[bytes]]":
    sys.stdout.flush()
    _Child.starting, _Child.alone, _Child.signal = True, alone, None
    try:
        with subprocess.Popen(command, start_new_session=alone, **options) as process:  # type: ignore[call-overload]
            _Child.process = process
            _forward()  # a signal that came before there was somebody to get it
            yield process
            process.wait()
            if _Child.signal is not None and alone:
                _end_session(process.pid)
    finally:
        _Child.process, _Child.starting = None, False
    if _Child.signal is not None:
        end_by(_Child.signal)


def _session(leader: int) -> List[int]:
    """The processes of a session. Ninja puts compilers into groups of their own, but a session keeps all."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            state, _parent, _group, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(folder.name))
    return found


def _end_session(leader: int) -> None:
    """Waits for all of a session to end; who does not is ended."""
    deadline = time.monotonic() + PATIENCE_S
    while _session(leader) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in _session(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def quietly(command: List[str], log: IO[bytes], environment: Optional[Dict[str, str]] = None) -> int:
    """Runs a command with all that it writes in a log; its exit status."""
    with _started(command, True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment) as process:
        pass
    return process.returncode


def run(command: List[str]) -> int:
    """Runs a program in our place; its exit status, as a shell counts."""
    with _started(command, False) as process:
        pass
    return _status(process.returncode)


def run_keeping_errors(command: List[str]) -> Tuple[int, str]:
    """The same; and what it wrote to standard error, which is written there when it has ended."""
    with _started(command, False, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
    sys.stderr.buffer.write(errors)
    sys.stderr.flush()
    return _status(process.returncode), errors.decode(errors="replace")


def become(command: List[str]) -> NoReturn:
    """Runs a program in the place of this one."""
    sys.stdout.flush()
    os.execvp(command[0], command)


def output(command: List[str]) -> Tuple[int, str]:
    """The exit status and what a short command prints; it may ask on the terminal."""
    with _started(command, False, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
    return _status(process.returncode), printed.decode(errors="replace").rstrip("\n")


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code
