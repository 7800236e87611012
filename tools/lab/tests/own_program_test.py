#!/usr/bin/env python3
"""Tests of OVERLAP_OWN_PROGRAM: a program of one file, in any folder, is a target next to the chapters. The tests build
nothing; they check the commands that a build would run."""
import sys
import pathlib
import re
import subprocess
import unittest
from typing import List, Union

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402


class OwnProgramTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        for name in ("first.cu", "second.cu"):
            self.write(name, "int main() {}\n")

    def configure(self, preset: str, source: Union[str, pathlib.Path], options: str = "") -> None:
        run = subprocess.run(["cmake", "--preset", preset, "-B", self.folder / "build", f"-DOVERLAP_OWN_PROGRAM={source}",
                              f"-DOVERLAP_OWN_OPTIONS={options}"],
                             cwd=REPOSITORY, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def commands(self, target: str) -> str:
        """The commands that would build a target."""
        run = subprocess.run(["ninja", "-C", self.folder / "build", "-t", "commands", target], capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_virtual_gpus_run_it(self) -> None:
        self.configure("virtual", self.folder / "first.cu")
        compiled, = [line for line in self.commands("own_first").splitlines() if f"-c {self.folder / 'first.cu'}" in line]
        linked = [line for line in self.commands("own_first").splitlines() if "-o own/first" in line]
        self.assertIn("tools/compile.py", compiled)
        for option in ("-fsanitize-coverage=trace-pc", "-fstack-clash-protection", "-std=gnu++20"):
            self.assertIn(f" {option} ", compiled)
        self.assertIn(" -fsanitize=alignment,", compiled)
        self.assertNotIn("-fsanitize=thread", compiled)
        self.assertRegex(linked[-1], r"settings\.cpp\.o .*libvirtual_gpu\.a")

    def test_words_of_the_compiler(self) -> None:
        more = self.folder / "second.cu"
        for preset in ("virtual", "race"):
            self.configure(preset, self.folder / "first.cu", f"-I{self.folder};-DN=4;-fopenmp;{more}")
            compiled = [line for line in self.commands("own_first").splitlines() if "tools/compile.py" in line]
            for source in (self.folder / "first.cu", more):
                line, = [line for line in compiled if f"-c {source}" in line]
                for option in (f"-I{self.folder}", "-DN=4", "-fopenmp"):
                    self.assertIn(f" {option} ", line)
            self.configure(preset, more)  # another program in between changes nothing, and has none of these options
            self.assertIn(" -DN=4 ", self.commands("own_first"))

    def test_race_build_instruments_it(self) -> None:
        self.configure("race", self.folder / "first.cu")
        compiled, = [line for line in self.commands("own_first").splitlines() if f"-c {self.folder / 'first.cu'}" in line]
        self.assertIn("-fsanitize=thread", compiled)

    def test_all_stay_until_they_are_gone(self) -> None:
        def targets() -> List[str]:
            run = subprocess.run(["ninja", "-C", self.folder / "build", "-t", "targets", "all"], capture_output=True, text=True,
                                 check=True)
            return sorted(re.findall(r"^own/(\S+?): CXX_EXECUTABLE_LINKER", run.stdout, re.MULTILINE))

        other = self.folder / "other"
        other.mkdir()
        for source, expected in ((self.folder / "first.cu", ["first"]), (self.folder / "second.cu", ["first", "second"]),
                                 (other / "my own.cu", ["first", "my_own", "second"]),
                                 (other / "first.cu", ["first", "my_own", "second"])):
            source.touch()
            self.configure("virtual", source)
            self.assertEqual(targets(), expected)
        self.assertIn(f"-c {other}/first.cu", self.commands("own_first"))
        self.assertNotIn("own/", self.commands("all"))
        for source in (other / "first.cu", self.folder / "second.cu"):
            source.unlink()
        self.configure("virtual", "")
        self.assertEqual(targets(), ["my_own"])


if __name__ == "__main__":
    unittest.main()
