#!/usr/bin/env python3
"""Compares what two builds test: compare_cases.py OLD_BUILD NEW_BUILD
Cases are those of GoogleTest programs, with their parameters, the test methods of scripts, and other CTest tests by name.
Printed are cases that only one build has, and cases that another set runs: quick (./lab test), chapter_only (./lab test NN and
--slow), slow (--slow) or full (--full). Both builds are configured with -DBUILD_TESTING=ON -DOVERLAP_MUTANTS=ON
-DOVERLAP_FULL=ON, and have their GoogleTest programs built.
The exit status is 1 if a case of the old build is gone.
"""
import json
import pathlib
import re
import subprocess
import sys
from typing import Dict, Iterator, List

import run_cases

SET = re.compile(r"slow|full|chapter_only")


def labels_of(test: Dict) -> List[str]:
    """The labels that CTest has for it."""
    return [label for each in test.get("properties", []) if each["name"] == "LABELS" for label in each["value"]]


def cases_of(name: str, command: List[str]) -> Iterator[str]:
    """The cases that one CTest test runs."""
    chosen = [word.partition("=")[2] for word in command if re.match(r"--(gtest_)?filter=", word)]
    script = next((word for word in command if word.endswith(".py")), "")
    if script.endswith("/run_cases.py"):
        shard = command[command.index("--shard") + 1] if "--shard" in command else "0/1"
        first, step = map(int, shard.split("/"))
        start = command[next(i for i, word in enumerate(command) if i > command.index(script) and word.startswith("/")):]
        yield from run_cases.cases_of(start, chosen[0] if chosen else "*")[first::step]
    elif chosen and not chosen[0].startswith("-"):
        yield chosen[0]  # one CTest test each case
    elif script:
        methods = re.findall(r"^ +def (test_\w+)", pathlib.Path(script).read_text(encoding="utf-8"), re.MULTILINE)
        name = re.sub(r"^(mutants\.\d\d)_\w+", r"\1", name)  # the chapter's name went
        yield from (f"{name}: {method}" for method in methods or ["all of it"])
    else:
        yield name


def sets_of(build: str) -> Dict[str, str]:
    """The set that runs each case."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    sets: Dict[str, str] = {}
    for test in json.loads(shown.stdout)["tests"]:
        command = test.get("command", [])
        if test["name"].endswith("_NOT_BUILT"):
            sys.exit(f"{build} is not whole: {test['name']}")
        if "--alone" in command or "--shuffle" in command:
            continue  # the same cases once more
        found = {match.group() for match in map(SET.match, labels_of(test)) if match}
        for case in cases_of(test["name"], command):
            which = min(found, default="quick")
            sets[case] = "quick" if "quick" in (which, sets.get(case)) else which
    return sets


def main() -> int:
    """Prints the difference."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    old, new = map(sets_of, sys.argv[1:])
    gone = sorted(old.keys() - new.keys())
    moved = sorted(f"{old[case]} -> {new[case]}: {case}" for case in old.keys() & new.keys() if old[case] != new[case])
    for title, cases in (("gone", gone), ("new", sorted(new.keys() - old.keys())), ("in another set", moved)):
        print(f"{title}: {len(cases)} cases", *cases, sep="\n  ")
    print(f"{len(old)} cases before, {len(new)} now")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
