"""PROGRAM of the command line: a chapter, an experiment of one, or a CUDA source of the reader's own."""
import dataclasses
import pathlib
import re
from typing import List

import chapters
from build import Build
from process import Refusal


@dataclasses.dataclass
class Program:
    """What is built, and what is run then."""

    target: str
    path: str  # in the build's folder
    settings: List[str] = dataclasses.field(default_factory=list)  # of CMake
    experiments: List[str] = dataclasses.field(default_factory=list)  # that its chapter has

    def build(self, build: Build) -> None:
        """Builds it."""
        build.build(self.target, *self.settings)


def find(operand: str) -> Program:
    """The program that an operand names; Refusal if there is none."""
    if operand.endswith(".cu"):
        return _own(operand)
    if "/" in operand:
        name = chapters.find_experiment(operand)
        return Program(name, f"bin/{name}")
    name = chapters.find(operand)
    return Program(name, f"bin/{name}", experiments=[f"{name[:2]}/{each}" for each in chapters.experiments(name)])


def _own(operand: str) -> Program:
    source = pathlib.Path(operand).resolve()
    if not source.is_file():
        raise Refusal(f"there is no file '{operand}'")
    if re.search(r"[;\\$\n]", str(source)):
        raise Refusal(f"CMake cannot build a file with one of ; \\ $ in its path: {source}")
    name = re.sub(r"[^\w.+-]", "_", source.stem, flags=re.ASCII)  # as in cmake/Program.cmake
    return Program(f"own_{name}", f"own/{name}", [f"-DOVERLAP_OWN_PROGRAM={source}"])
