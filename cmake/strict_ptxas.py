#!/usr/bin/env python3
"""Runs a compiler, and fails where its assembler says in passing what makes a tensor-core kernel slow.

  strict_ptxas.py COMPILER ARGUMENT...

ptxas only notes that it serialises wgmma (C7510), ignores setmaxnreg (C7508) or spills registers: the program is right, at
half its speed. Here that is an error.
"""
import re
import subprocess
import sys

SLOW = re.compile(r"\bC75(08|10)\b|Potential Performance Loss|\b[1-9]\d* bytes? spill|[Rr]egisters? (are )?spilled")


def main() -> int:
    done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        return done.returncode
    slow = [line for line in (done.stdout + done.stderr).splitlines() if SLOW.search(line)]
    for line in slow:
        print(f"strict_ptxas.py: error: {line.strip()}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
