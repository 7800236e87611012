#!/usr/bin/env python3
"""Tests of OVERLAP_PROGRAMS: a program of one file, from wherever it lies, is built beside the chapters. Nothing is built
here: what would be run says enough."""
import pathlib
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


class OwnProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("first.cu", "second.cu"):
            (self.folder / name).write_text("int main() {}\n", encoding="utf-8")

    def configure(self, preset: str) -> "subprocess.CompletedProcess[str]":
        programs = f"{self.folder / 'first.cu'};{self.folder / 'second.cu'}"
        return subprocess.run(["cmake", "--preset", preset, "-B", self.folder / "build", f"-DOVERLAP_PROGRAMS={programs}"],
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


if __name__ == "__main__":
    unittest.main()
