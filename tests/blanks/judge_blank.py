#!/usr/bin/env python3
"""Runs a chapter's program and a blank of it with the same arguments: the first must end with 0, the second with 1, a
wrong result. Anything else (a crash, a deadlock, a time-out, a blank that nobody notices) fails the test.

  judge_blank.py PROGRAM BLANK [ARGUMENTS...]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import judge  # noqa: E402

LIMIT_S = 60


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    program, blank = map(pathlib.Path, sys.argv[1:3])
    try:
        print(judge.judge("wrong result", program, blank, sys.argv[3:], LIMIT_S), end="")
    except judge.Refused as error:
        print(f"judge_blank.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
