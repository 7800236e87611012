#!/usr/bin/env python3
"""Tests of OVERLAP_PROGRAMS: a program of one file, from wherever it lies, is built beside the chapters. Nothing is built
here: what would be run says enough."""
import re
import subprocess
import unittest
from typing import List

from support import REPOSITORY, FolderTest


class OwnProgramTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        for name in ("first.cu", "second.cu"):
            self.write(name, "int main() {}\n")

    def configure(self, preset: str, setting: str = "") -> "subprocess.CompletedProcess[str]":
        setting = setting or f"-DOVERLAP_PROGRAMS={self.folder / 'first.cu'};{self.folder / 'second.cu'}"
        return subprocess.run(["cmake", "--preset", preset, "-B", self.folder / "build", setting],
                              cwd=REPOSITORY, capture_output=True, text=True, check=False)

    def commands(self, target: str) -> str:
        """What would be run to build a target."""
        run = subprocess.run(["ninja", "-C", self.folder / "build", "-t", "commands", target], capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_each_is_a_target_that_virtual_gpus_run(self) -> None:
        configured = self.configure("virtual")
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        for name in ("first", "second"):
            compiled, = [line for line in self.commands(name).splitlines() if f"-c {self.folder / name}.cu" in line]
            linked = [line for line in self.commands(name).splitlines() if f"-o bin/{name}" in line]
            self.assertIn("tools/compile.py", compiled)
            for option in ("-fsanitize-coverage=trace-pc", "-fsanitize=alignment"):
                self.assertIn(f" {option} ", compiled)
            self.assertNotIn("-fsanitize=thread", compiled)
            self.assertRegex(linked[-1], r"settings\.cpp\.o .*libvirtual_gpu\.a")

    def test_race_build_instruments_them(self) -> None:
        self.assertEqual(self.configure("race").returncode, 0)
        compiled, = [line for line in self.commands("first").splitlines() if f"-c {self.folder / 'first.cu'}" in line]
        self.assertIn("-fsanitize=thread", compiled)

    def test_a_file_that_is_not_there(self) -> None:
        (self.folder / "second.cu").unlink()
        configured = self.configure("virtual")
        self.assertNotEqual(configured.returncode, 0)
        self.assertIn("second.cu", configured.stderr)

    def test_those_of_lab_stay_until_they_are_gone(self) -> None:
        """OVERLAP_OWN_PROGRAM is what ./lab run FILE.cu sets, one file at a time."""
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
            configured = self.configure("virtual", f"-DOVERLAP_OWN_PROGRAM={source}")
            self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
            self.assertEqual(targets(), expected)
        self.assertIn(f"-c {other}/first.cu", self.commands("own_first"))
        self.assertNotIn("own/", self.commands("all"))
        for source in (other / "first.cu", self.folder / "second.cu"):
            source.unlink()
        configured = self.configure("virtual", "-DBUILD_TESTING=OFF")
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        self.assertEqual(targets(), ["my_own"])


if __name__ == "__main__":
    unittest.main()
