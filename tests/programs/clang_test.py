#!/usr/bin/env python3
"""CXX=clang++: sources that clang++ rejected before, and g++ did not, compile with both. Checks syntax and types only, with the
include folders of the configured build for virtual GPUs, or else with those that it would use."""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import List, Optional

from support import REPOSITORY
COMMANDS = REPOSITORY / "build" / "virtual" / "compile_commands.json"
COMMON = REPOSITORY / "common"
SOURCES = (COMMON / "overlap" / "bench" / "mlp_problem.cpp",  # calls a dependent member template without `template`
           COMMON / "overlap" / "bench" / "gpu_clocks.cpp")  # captures a structured binding


def clang() -> Optional[str]:
    """clang++, or the newest clang++-NN."""
    names = ["clang++", *(f"clang++-{number}" for number in range(40, 9, -1))]
    return next((name for name in names if shutil.which(name)), None)


def folders(source: pathlib.Path) -> List[str]:
    """The options for a source's include folders."""
    for entry in json.loads(COMMANDS.read_text(encoding="utf-8")) if COMMANDS.exists() else []:
        if pathlib.Path(entry["file"]) == source:
            words = shlex.split(entry["command"])
            systems = [words[place + 1] for place, word in enumerate(words) if word == "-isystem"]
            return [word for word in words if re.match(r"-I.", word)] + [f"-isystem{folder}" for folder in systems]
    return [*(f"-I{folder}" for folder in (COMMON / "for_virtual_gpus", COMMON)),
            f"-isystem{REPOSITORY / 'virtual_gpu' / 'include'}", f"-isystem{REPOSITORY / '.deps' / 'usr' / 'include'}"]


class ClangTest(unittest.TestCase):
    def errors(self, file: pathlib.Path, source: pathlib.Path) -> List[str]:
        """clang++'s errors in a file, compiled like `source`."""
        done = subprocess.run([str(clang()), "-fsyntax-only", "-std=c++20", *folders(source), str(file)], capture_output=True,
                              text=True, check=False)
        found = [line for line in done.stderr.splitlines() if "error:" in line]
        self.assertEqual(done.returncode != 0, bool(found), done.stderr)
        return found

    def test_sources_have_no_errors(self) -> None:
        for source in SOURCES:
            with self.subTest(source.name):
                self.assertEqual(self.errors(source, source), [])

    def test_errors_are_found(self) -> None:
        text = SOURCES[0].read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "wrong.cpp"
            file.write_text(text.replace("= whole();", "= hole();", 1), encoding="utf-8")
            self.assertIn("'hole'", " ".join(self.errors(file, SOURCES[0])))


if __name__ == "__main__":
    if clang() is None:
        print("skipped: clang++ is not here")
        sys.exit(77)
    unittest.main()
