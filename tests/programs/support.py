"""Shared by the tests of tools: the repository, its tools on Python's path, and a folder for each test."""
import pathlib
import sys
import tempfile
import unittest
from typing import Union

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))


class FolderTest(unittest.TestCase):
    """Base of tests that write files."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, name: Union[str, pathlib.Path], text: str = "") -> pathlib.Path:
        """Writes a file in the folder, or at another path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def script(self, name: Union[str, pathlib.Path], text: str) -> pathlib.Path:
        """Writes an executable shell script."""
        path = self.write(name, f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path
