#!/usr/bin/env python3
"""Measures every chapter's program at its default sizes on 1 to 16 virtual GPUs, chapter 20 up to 64, and writes the table of
CPU time and memory into virtual_gpu/README.md, between <!-- scale --> and <!-- /scale -->.

  tools/pages/scale_table.py [BIN]     BIN: the programs' folder (default: build/virtual/bin); on an idle machine

Ends with 1 if a program fails. Not a part of update_pages.py: it takes minutes, and its numbers are those of one machine.
"""
import os
import pathlib
import subprocess
import sys
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # the repository's root
from tools.chapters import all_chapters  # noqa: E402
from tools.results.ladder import table  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "virtual_gpu" / "README.md"
BEGIN, END = "<!-- scale -->\n", "<!-- /scale -->"
GPUS = (1, 2, 4, 8, 16)
MORE = {"20": (32, 64)}  # chapters that take more GPUs
LIMIT_S = 300


def cell(program: pathlib.Path, gpus: int) -> str:
    """CPU time in seconds and peak memory in MB of one run (at least this script's own, about 17); "-" if the
    program does not run on so few GPUs (status 77)."""
    process = subprocess.Popen(["timeout", str(LIMIT_S), program, "--gpus", str(gpus)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode == 77:
        return "-"
    if process.returncode != 0:
        sys.exit(f"{program.name} --gpus {gpus}: exit status {process.returncode}: {said.strip()[-200:]}")
    return f"{used.ru_utime + used.ru_stime:.1f}, {used.ru_maxrss / 1024:.0f}"


def main(folder: pathlib.Path) -> None:
    """The command line."""
    most = GPUS + max(MORE.values(), key=len)
    rows: List[List[str]] = []
    for chapter in all_chapters().values():
        program = folder / chapter.name
        takes = GPUS + MORE.get(chapter.number, ())
        rows.append([chapter.number] + [cell(program, gpus) if gpus in takes else "" for gpus in most])
        print(" | ".join(rows[-1]), flush=True)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table(['chapter', *map(str, most)], rows)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "build" / "virtual" / "bin")
