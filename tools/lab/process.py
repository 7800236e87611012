"""Starting and ending other programs, and ./lab's own messages."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import IO, Dict, Iterator, List, NoReturn, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Refusal(Exception):
    """Why ./lab ends with status 2, in one sentence."""


def say(text: str) -> None:
    """Prints a line of ./lab's own to standard error: standard output is the programs'."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def end_without_a_word() -> None:
    """From now on a closed pipe and Ctrl-C end ./lab as they end other programs."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_by(number: int) -> NoReturn:
    """Ends ./lab as the signal itself would have done, so that the caller sees it."""
    sys.stdout.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise AssertionError("the signal is blocked")


@contextlib.contextmanager
def _started(command: List[str], group: bool, **options: object) -> "Iterator[subprocess.Popen[bytes]]":
    """A program that ends with ./lab: a signal to ./lab is passed on to the program, and ends ./lab once the program has ended.
    With `group`, SIGTERM goes to the program's children, too: cmake ends at once, ninja after its compilers."""
    came: List[int] = []
    process: "Optional[subprocess.Popen[bytes]]" = None

    def pass_on(number: Optional[int] = None, _frame: object = None) -> None:
        if number is not None:
            came.append(number)
        if process is not None and came:
            with contextlib.suppress(ProcessLookupError):
                if group:
                    os.killpg(process.pid, signal.SIGTERM)
                else:
                    process.send_signal(came[-1])

    sys.stdout.flush()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        if before[number] is not signal.SIG_IGN:  # nohup
            signal.signal(number, pass_on)
    try:
        with subprocess.Popen(command, start_new_session=group, **options) as process:  # type: ignore[call-overload]
            pass_on()  # a signal that arrived before the program was started
            yield process
    finally:
        for number in SIGNALS:
            signal.signal(number, before[number])
    if came:
        end_by(came[-1])


def quietly(command: List[str], log: IO[bytes], environment: Optional[Dict[str, str]] = None,
            source: Optional[pathlib.Path] = None) -> int:
    """Runs a command with its output in a log, and with the file `source` as its standard input. Returns its exit status."""
    with open(source or os.devnull, "rb") as read, \
            _started(command, True, stdin=read, stdout=log, stderr=log, env=environment) as process:
        pass
    return process.returncode


def run(command: List[str], environment: Optional[Dict[str, str]] = None) -> int:
    """Runs a program with ./lab's input and output. Returns its exit status, as a shell counts."""
    with _started(command, False, env=environment) as process:
        pass
    return _status(process.returncode)


def run_keeping_input(command: List[str], environment: Dict[str, str], kept: pathlib.Path) -> int:
    """As run(); also writes the standard input to a file while the program reads it. From a terminal nothing is kept."""
    if os.isatty(0):
        return run(command, environment)
    with _started(command, False, stdin=subprocess.PIPE, bufsize=0, env=environment) as process:
        assert process.stdin is not None
        threading.Thread(target=_copy_input, args=(process.stdin, kept), daemon=True).start()
        process.wait()
    return _status(process.returncode)


def _copy_input(program: IO[bytes], kept: pathlib.Path) -> None:
    """Copies the standard input to a program and to a file, until the input or the program ends."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE])  # the end of the program must not end ./lab
    with contextlib.suppress(OSError, ValueError), program, open(kept, "wb", 0) as file:
        for data in iter(lambda: os.read(0, 65536), b""):
            file.write(data)
            rest = memoryview(data)
            while rest:
                rest = rest[program.write(rest):]


def run_keeping_errors(command: List[str]) -> Tuple[int, str]:
    """As run(); also returns the standard error, which is printed once the program has ended."""
    with _started(command, False, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
    sys.stderr.buffer.write(errors)
    sys.stderr.flush()
    return _status(process.returncode), errors.decode(errors="replace")


def become(command: List[str]) -> NoReturn:
    """Replaces this process by a program."""
    sys.stdout.flush()
    os.execvp(command[0], command)


def leave_to(tool: str, *words: str) -> NoReturn:
    """Replaces this process by a Python script of the repository."""
    become([sys.executable, str(ROOT / tool), *words])


def output(command: List[str]) -> Tuple[int, str]:
    """The exit status and the output of a short command; it may ask on the terminal."""
    with _started(command, False, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
    return _status(process.returncode), printed.decode(errors="replace").rstrip("\n")


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code
