#!/usr/bin/env python3
"""Runs the cases of a GoogleTest program, which CTest sees as one test:
    run_cases.py [OPTIONS] [START...] PROGRAM
START is what the program is started with (virtual_gpu/tools/race_run). One process runs all cases, or one process each suite (--suites)
or each case (--alone). Of cases that pass nothing is printed. Of one that fails: what it printed, and how to run it alone. If
a process crashes, is stopped by a deadlock or exceeds the time limit: which case was running, and which were not run.
The exit status is 0 if every case ran and passed or was skipped, 77 if all were skipped, else 1. No case is a failure.
"""
import argparse
import ctypes
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from typing import Dict, List, Optional

EVENT = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w./]+)")
LINES = 200  # of what a failed case printed
LISTED = 20  # of cases that were not run


def end_with_parent() -> None:
    """Linux ends this process when its parent has ended: else a case whose kernel waits for ever would keep the GPU busy behind
    an interrupted test."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def cases_of(command: List[str], chosen: str) -> List[str]:
    """The names of the program's cases that GoogleTest's filter chooses."""
    done = subprocess.run([*command, "--gtest_list_tests", f"--gtest_filter={chosen}"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:  # virtual_gpu/tools/race_run has said why
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{command[-1]} cannot list its cases (exit status {done.returncode})")
    names, suite = [], ""
    for line in done.stdout.splitlines():
        name = line.partition("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        elif "DISABLED_" not in suite + name:
            names.append(suite + name.strip())
    return names


def groups(names: List[str], options: argparse.Namespace) -> List[List[str]]:
    """The cases of each process."""
    if options.alone:
        return [[name] for name in names]
    if options.suites:
        suites: Dict[str, List[str]] = {}
        for name in names:
            suites.setdefault(name.partition(".")[0], []).append(name)
        return list(suites.values())
    return [names] if names else []


class Process:
    """One process that runs some cases."""

    def __init__(self, command: List[str], names: List[str], options: argparse.Namespace) -> None:
        self.command, self.names, self.options = command, names, options
        self.running: Optional[str] = None
        self.verdicts: Dict[str, str] = {}
        self.printed: Dict[Optional[str], List[str]] = {}  # by case; None: between cases

    def run(self) -> bool:
        """Runs them; whether all is well."""
        # A list of names as a filter is long, but every process gets the cases that were listed, and no others.
        arguments = [f"--gtest_filter={':'.join(self.names)}", "--gtest_color=no"]
        if self.options.shuffle is not None:
            arguments += ["--gtest_shuffle", f"--gtest_random_seed={self.options.shuffle}"]
        late = threading.Event()
        with subprocess.Popen([*self.command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                              preexec_fn=end_with_parent) as process:
            def end() -> None:
                late.set()
                os.killpg(process.pid, signal.SIGKILL)
            timer = threading.Timer(self.options.limit, end)
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                self._take(line)
            process.wait()
            timer.cancel()
        return self._judge(f"exceeded the time limit of {self.options.limit} s" if late.is_set() else _ended(process.returncode))

    def _take(self, line: str) -> None:
        event = EVENT.search(line)  # not at the beginning of a line if the case printed one without its end
        if event is None:
            self.printed.setdefault(self.running, []).append(line)
        elif event.group(1) == "RUN":
            self.running = event.group(2)
        elif event.group(2) == self.running:
            self.verdicts[event.group(2)] = event.group(1)
            self.running = None

    def _judge(self, ended: str) -> bool:
        failed = [name for name, verdict in self.verdicts.items() if verdict == "FAILED"]
        for name in failed:
            self._show(name, "failed")
        if self.running is not None:
            self._show(self.running, ended or "did not end")
        missing = [name for name in self.names if name not in self.verdicts and name != self.running]
        if missing:
            print(f"not run: {len(missing)} cases")
            print("".join(f"  {name}\n" for name in missing[:LISTED]) + ("  ...\n" if len(missing) > LISTED else ""), end="")
        if ended and not failed and self.running is None:  # between the cases, or by a report in one that went on
            print(f"{os.path.basename(self.command[-1])}, cases {self.names[0]} to {self.names[-1]}: {ended}")
            for name, lines in self.printed.items():
                print("".join(["" if name is None else f"in {name}:\n", *lines[-LINES:]]), end="")
            print(f"run again: {self._alone(':'.join(self.names))}")
        return not (failed or self.running or missing or ended)

    def _show(self, name: str, what: str) -> None:
        print(f"{name}: {what}\n{''.join(self.printed.get(name, [])[-LINES:])}alone: {self._alone(name)}\n")

    def _alone(self, name: str) -> str:
        return shlex.join([*(os.path.relpath(word) if os.path.isabs(word) else word for word in self.command),
                           f"--gtest_filter={name}"])


def _ended(status: int) -> str:
    if status >= 0:
        return "" if status == 0 else f"ended the process with exit status {status}"
    return f"crashed: {signal.Signals(-status).name}"


def main() -> int:
    """Runs all; the exit status."""
    end_with_parent()
    parser = argparse.ArgumentParser(description="Runs the cases of a GoogleTest program.", allow_abbrev=False)
    parser.add_argument("--filter", default="*", metavar="PATTERN", help="GoogleTest's filter (--filter=-A*)")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="every Nth of the cases, from number I on")
    parser.add_argument("--limit", type=float, default=280, metavar="SECONDS", help="of each process")
    parser.add_argument("--suites", action="store_true", help="a process for each suite")
    parser.add_argument("--alone", action="store_true", help="a process for each case")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in random order; 0 takes a seed from the clock")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="[START...] PROGRAM")
    options = parser.parse_args()
    first, _, step = options.shard.partition("/")
    chosen = cases_of(options.command, options.filter)
    if not chosen:
        print(f"{options.command[-1]} has no case for the filter {options.filter}")
        return 1
    names = chosen[int(first)::int(step)]
    if options.shuffle == 0:
        options.shuffle = int.from_bytes(os.urandom(2), "little") % 99999 + 1
    if options.shuffle is not None:
        print(f"shuffled: --gtest_shuffle --gtest_random_seed={options.shuffle}")
    processes = [Process(options.command, group, options) for group in groups(names, options)]
    well = [process.run() for process in processes]
    skipped = sum(verdict == "SKIPPED" for process in processes for verdict in process.verdicts.values())
    print(f"{len(names)} cases: {sum(map(len, (p.verdicts for p in processes))) - skipped} ran, {skipped} skipped")
    if not all(well):
        return 1
    return 77 if names and skipped == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
