"""Shared by the tests of tools: the repository, its tools on Python's path, and a folder for each test."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import List, Union

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
NOT_OURS = {".git", ".deps", "build", "__pycache__", "work"}


def repository_files() -> List[pathlib.Path]:
    """The repository's files: git's list, or without git all but the build's."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY,
                            capture_output=True, check=False) if shutil.which("git") else None
    if listed is not None and listed.returncode == 0:
        found = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    else:
        found = [path for path in REPOSITORY.rglob("*") if not NOT_OURS & set(path.relative_to(REPOSITORY).parts)]
    return [path for path in found if path.is_file()]


def real_gpus() -> int:
    """The number of GPUs that respond, of those in CUDA_VISIBLE_DEVICES if it is set."""
    listed = subprocess.run(["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
    here, visible = len(re.findall("(?m)^GPU ", listed.stdout)), os.environ.get("CUDA_VISIBLE_DEVICES")
    return min(here, len(visible.split(","))) if visible else here


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
