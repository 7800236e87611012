"""What the tests of all chapter programs share. Each test file is called with the program and its backend:
    01_column_split_test.py PROGRAM virtual|cuda [unittest's own arguments]"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Mapping, Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MACHINES = REPOSITORY / "common" / "virtual_gpu" / "machines"


class ProgramTestCase(unittest.TestCase):
    """Runs the program in an empty folder of its own."""

    program: pathlib.Path
    backend: str

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *arguments: str, **more) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(self.program), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False, **more)

    def call_right(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A call that must end with 0. Where real GPUs are too few for it, the test is skipped, with the reason."""
        result = self.call(*arguments)
        if result.returncode == 77 and self.backend == "cuda":
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertEqual(result.stderr, "", arguments)
        return result

    def assert_fails(self, status: int, arguments: Sequence[str], sentence: str,
                     **more) -> "subprocess.CompletedProcess[str]":
        """The exit status, one sentence on standard error that matches, and nothing left behind."""
        before = sorted(self.folder.rglob("*"))
        result = self.call(*arguments, **more)
        if result.returncode == 77 and status != 77 and self.backend == "cuda":
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertRegex(result.stderr, sentence)
        self.assertIn(len(result.stderr.splitlines()), (1, 2), result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "files were left behind")
        return result

    def assert_refused(self, cases: Mapping[Sequence[str], str]) -> None:
        """Command lines that cannot be used, each with the sentence that says why; nothing is printed as a result."""
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                self.assertEqual(self.assert_fails(2, arguments, sentence).stdout, "")

    def machine(self, **changes) -> str:
        """A machine description like the default one but for the changes: memory_mib=1, gpus=2. Its path."""
        if self.backend != "virtual":
            self.skipTest("machine descriptions are for virtual GPUs")
        description = json.loads((MACHINES / "small.json").read_text(encoding="utf-8"))
        for name, value in changes.items():
            part = description if name in description else description["gpu"]
            self.assertIn(name, part)
            part[name] = value
        path = self.folder / "machine.json"
        path.write_text(json.dumps(description), encoding="utf-8")
        return str(path)


def main() -> None:
    """Takes program and backend from the command line, and runs the tests."""
    if len(sys.argv) < 3 or sys.argv[2] not in ("virtual", "cuda"):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM virtual|cuda")
    ProgramTestCase.program = pathlib.Path(sys.argv.pop(1)).resolve()
    ProgramTestCase.backend = sys.argv.pop(1)
    unittest.main()
