#!/usr/bin/env python3
"""Tests of the notebooks without running them (./lab notebook --execute does, in .ci/run --full): the stored content, what they
may contain, and which differences count as drift."""
import pathlib
import sys
import copy
import json
import re
import unittest
from typing import Any, Dict, List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY  # noqa: E402
from tools.pages import notebooks  # noqa: E402

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def code_of(notebook: Dict[str, Any]) -> List[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def picture(data: str = "AA==") -> Dict[str, Any]:
    """An output that is a picture."""
    return {"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}, "metadata": {}}


def sample() -> Dict[str, Any]:
    """A notebook of two cells, as Jupyter saves it."""
    stream = {"output_type": "stream", "name": "stdout", "text": ["GPUs  1.25\n", "x  10\n"]}
    return {"metadata": {"language_info": {"version": "3.11"}}, "nbformat": 4, "nbformat_minor": 5, "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Title\n", "[a](../README.md)"]},
        {"cell_type": "code", "id": "b", "metadata": {"time": 1}, "execution_count": 7, "source": ["run()"], "outputs": [stream, picture()]}]}


class KeptTest(unittest.TestCase):
    def test_all_are_here_and_listed(self) -> None:
        self.assertEqual([path.name[0] for path in NOTEBOOKS], ["1", "2", "3", "4", "5"])
        page = (REPOSITORY / "notebooks" / "README.md").read_text(encoding="utf-8")
        for path in NOTEBOOKS:
            self.assertIn(f"({path.name})", page)

    def test_kept_as_they_should_be(self) -> None:
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                text = path.read_text(encoding="utf-8")
                notebook = json.loads(text)
                self.assertLessEqual(len(text.encode()), notebooks.LIMIT_BYTES)
                self.assertEqual(notebooks.stripped(copy.deepcopy(notebook)), notebook)
                outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
                self.assertTrue(any("image/png" in output.get("data", {}) for output in outputs))
                self.assertFalse([output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"])

    def test_they_hold_no_algorithm_and_assert_their_lesson(self) -> None:
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                code = "\n".join(code_of(json.loads(path.read_text(encoding="utf-8"))))
                self.assertNotRegex(code, r"(?m)^\s*(def|class|import (?!matplotlib|numpy|pandas)|while)\b")
                self.assertGreaterEqual(len(re.findall(r"(?m)^assert ", code)), 3)

    def test_every_plot_has_a_unit_and_a_stamp(self) -> None:
        for path in NOTEBOOKS:
            for code in code_of(json.loads(path.read_text(encoding="utf-8"))):
                if "plt.show()" in code:
                    with self.subTest(path.name, code=code):
                        self.assertRegex(code, r"title=stamp\(")
                        self.assertRegex(code, r"label=\"[^\"]*\((modelled|measured|predicted|predicted against measured)\)")
                        self.assertEqual(sum(f"({kind})" in code for kind in ("modelled", "measured", "predicted")) +
                                         ("(predicted against measured)" in code), 1, "one plot mixes them")


class DriftTest(unittest.TestCase):
    def changed(self, change: Any) -> List[str]:
        new = sample()
        change(new["cells"])
        return notebooks.differences(sample(), new)

    def test_numbers_may_differ(self) -> None:
        self.assertEqual(self.changed(lambda cells: cells[1]["outputs"][0].update(text=["GPUs 12.5\n", "x 1e-05\n"])), [])
        self.assertEqual(self.changed(lambda cells: cells[1]["outputs"].__setitem__(1, picture("BBBB"))), [])

    def test_words_and_pictures_may_not(self) -> None:
        for change in (lambda cells: cells[1]["outputs"][0].update(text=["GPUS 1\n", "x 10\n"]), lambda cells: cells[1]["outputs"].pop(),
                       lambda cells: cells[1]["outputs"].append(picture())):
            self.assertRegex(self.changed(change)[0], "^cell 2 shows")
        self.assertEqual(self.changed(lambda cells: cells.pop()), ["it has other cells"])

    def test_what_is_stripped(self) -> None:
        kept = notebooks.stripped(sample())
        self.assertNotIn("version", json.dumps(kept))
        self.assertEqual((kept["cells"][1]["metadata"], kept["cells"][1]["execution_count"]), ({}, None))
        self.assertEqual(set(kept["cells"][1]["outputs"][1]["data"]), {"image/png", "text/plain"})


if __name__ == "__main__":
    unittest.main()
