#!/usr/bin/env python3
"""Runs a chapter's program and a blank of it with the same arguments: the first must end with 0, the second with 1, a
wrong result. Anything else (a crash, a time-out, a blank that nobody notices) fails the test. With --may-stop it may also
end in a deadlock or a failed kernel, of which the virtual GPUs say what happened: without the region nobody loads what
others wait for.

  judge_blank.py [--may-stop] PROGRAM BLANK [ARGUMENTS...]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import judge  # noqa: E402

LIMIT_S = 60


def main() -> int:
    words = sys.argv[1:]
    expected = ["wrong result"]
    if words[:1] == ["--may-stop"]:
        expected += ["deadlock", "failed kernel"]
        words = words[1:]
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program, blank = map(pathlib.Path, words[:2])
    try:
        print(judge.judge(expected, program, blank, words[2:], LIMIT_S), end="")
    except judge.Refused as error:
        print(f"judge_blank.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
