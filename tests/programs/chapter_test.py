#!/usr/bin/env python3
"""Tests of a chapter's program: the suite of its manifest's kind, with the chapter's own variants and special cases from its
tests/*_program.py, if any. Or of an experiment's program, likewise.
    chapter_test.py PROGRAM virtual|cuda [unittest's own arguments]"""
import importlib.util
import pathlib
import types
import unittest

import dense_program
import program_test_case
import sparse_program
from chapter_program import ChapterProgram, ExperimentProgram
from tools.chapters import all_chapters

SUITES = {"speed_up": ChapterProgram, "dense": dense_program.DenseProgram, "sparse": sparse_program.SparseProgram}


def tests_of(name: str) -> types.ModuleType:
    """The module with the tests of a chapter."""
    chapter, = program_test_case.REPOSITORY.glob(f"chapters/{name[:2]}_*/main.cu")
    path = chapter.parent / "tests" / f"{name[3:]}_program.py"
    if not path.exists():
        module = types.ModuleType("suite")
        suite = SUITES[all_chapters()[name].kind] if name in all_chapters() else ExperimentProgram
        setattr(module, "Program", type("Program", (suite,), {}))
        return module
    spec = importlib.util.spec_from_file_location("suite", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Takes program and backend from the command line, and runs the tests."""
    program_test_case.take_program_and_backend()
    unittest.main(module=tests_of(pathlib.Path(program_test_case.ProgramTestCase.program).name))


if __name__ == "__main__":
    main()
