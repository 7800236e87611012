#!/usr/bin/env python3
"""Tests of the plots of measured results (tools/results/plot_results.py), with hand-made reports, and of the repository's
plots."""
import pathlib
import contextlib
import io
import json
import re
import sys
import unittest
import xml.etree.ElementTree as xml
from typing import Any, Dict, List, Tuple
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.results import plot_results  # noqa: E402
from tools.pages import update_pages  # noqa: E402
from tools.chapters import Plot  # noqa: E402
from tools.results.results import load  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
PLOT = Plot("sweep", "rows", {"old": "old_ms", "new & fast": "new_ms"})


def run(gpus: int, *results: Dict[str, Any], modelled: bool = False) -> Dict[str, Any]:
    return {"chapter": "90_test", "modelled": modelled, "date": "2026-11-21T10:00:00Z", "commit": "abc",
            "hardware": {"gpu": "NVIDIA H200", "gpus": "8", "driver": "580.1", "toolkit": "13.0", "machine": "small"},
            "options": {"gpus": gpus, "m": 64, "n": 32, "k": 16, "type": "f16"}, "results": list(results)}


def row(rows: int, section: str = "sweep", **times: float) -> Dict[str, Any]:
    return {"section": section, "rows": rows, **times}


# Out of order, with a row of another section and one without a time.
ROWS = (row(4, old_ms=2.0, new_ms=0.5), row(1, old_ms=2.0, new_ms=8.0), row(2, old_ms=2.0), row(2, "other", new_ms=3.0), row(16, new_ms=0.125))


class PlotTest(unittest.TestCase):
    def picture(self, *runs: Dict[str, Any], plot: Plot = PLOT) -> str:
        return plot_results.picture("90_test", plot, [{"runs": list(runs)}])

    def points(self, svg: str) -> Dict[str, Tuple[float, float]]:
        """The position of each point, by its tooltip."""
        return {circle[0].text or "": (float(circle.get("cx", "")), float(circle.get("cy", "")))
                for circle in xml.fromstring(svg).iter(f"{SVG}circle")}

    def texts(self, svg: str) -> Dict[str, Tuple[float, float]]:
        return {text.text or "": (float(text.get("x", "")), float(text.get("y", ""))) for text in xml.fromstring(svg).iter(f"{SVG}text")}

    def paths(self, svg: str) -> List[List[Tuple[str, str]]]:
        return [re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", "")) for path in xml.fromstring(svg).iter(f"{SVG}path")
                if path.get("stroke")]

    def test_each_number_is_at_its_place(self) -> None:
        """Equal factors are equal distances, along both axes; a longer time is higher."""
        found = self.points(self.picture(run(2, *ROWS)))
        self.assertEqual(list(found), ["old, 1: 2 ms", "old, 2: 2 ms", "old, 4: 2 ms", "new & fast, 1: 8 ms", "new & fast, 4: 0.5 ms",
                                       "new & fast, 16: 0.125 ms"])
        (x1, y8), (x4, y05), (x16, y0125) = list(found.values())[3:]
        self.assertAlmostEqual(x4 - x1, x16 - x4, delta=0.02)
        self.assertEqual((x1, x16), (plot_results.LEFT, plot_results.WIDTH - plot_results.RIGHT))
        self.assertAlmostEqual((y05 - y8) / 2, y0125 - y05, delta=0.02)  # a factor of 16, a factor of 4
        self.assertLess(plot_results.TOP, y8)
        self.assertLess(y8, y05)
        self.assertLess(y0125, plot_results.HEIGHT - plot_results.BOTTOM)
        x2, y2 = found["old, 2: 2 ms"]
        self.assertAlmostEqual(x2, (x1 + x4) / 2, delta=0.02)
        self.assertAlmostEqual(y2, (y8 + y05) / 2, delta=0.02)

    def test_lines_go_through_their_points(self) -> None:
        svg = self.picture(run(2, *ROWS))
        self.assertEqual([(float(x), float(y)) for path in self.paths(svg) for x, y in path], list(self.points(svg).values()))
        self.assertEqual([len(path) for path in self.paths(svg)], [3, 3])

    def test_axes(self) -> None:
        svg = self.picture(run(2, *ROWS))
        texts, points = self.texts(svg), self.points(svg)
        self.assertEqual({"1", "2", "4", "16"}, {name for name, (_, y) in texts.items() if y == plot_results.HEIGHT - plot_results.BOTTOM + 18})
        self.assertEqual(texts["16"][0], points["new & fast, 16: 0.125 ms"][0])
        self.assertAlmostEqual(texts["0.5"][1] - 4, points["new & fast, 4: 0.5 ms"][1], delta=0.02)
        self.assertNotIn("10", texts)
        for name in ("time, ms", "rows", "old", "new & fast", "measured: 64 x 32 x 16 on 2 x H200, CUDA 13.0"):
            self.assertIn(name, texts)

    def test_one_gpu_for_several_ranks(self) -> None:
        self.assertIn("measured: 64 x 32 x 16 on one H200, for 16 ranks, CUDA 13.0", self.texts(self.picture(run(16, *ROWS))))

    def test_names_do_not_overlap(self) -> None:
        names = [f"line {number}" for number in range(6)]
        plot = Plot("sweep", "rows", {name: f"{name}_ms" for name in names})
        one = {f"{name}_ms": 1 + abs(number - 2) / 1000 for number, name in enumerate(names)}
        texts = self.texts(self.picture(run(2, row(1, **one), row(2, **one)), plot=plot))
        heights = sorted(texts[name][1] for name in names)
        self.assertTrue(all(b - a >= plot_results.GAP for a, b in zip(heights, heights[1:])), heights)

    def test_the_first_run_of_the_tables(self) -> None:
        small, large = run(2, row(1, new_ms=1.0), row(2, new_ms=1.0)), run(4, row(1, new_ms=3.0), row(2, new_ms=3.0))
        for runs in ((small, large), (large, small)):
            self.assertIn("new & fast, 1: 3 ms", self.points(self.picture(*runs)))
        self.assertIn("new & fast, 1: 1 ms", self.points(self.picture(small, {**large, "modelled": True})))

    def test_a_single_number(self) -> None:
        self.assertEqual(len(self.points(self.picture(run(2, row(1, new_ms=3.0))))), 1)

    def test_the_same_every_time(self) -> None:
        self.assertEqual(self.picture(run(2, *ROWS)), self.picture(run(2, *ROWS)))

    def test_not_measured_yet(self) -> None:
        """A plot without measurements shows the same note as a table."""
        for runs in ((), (run(2),), (run(2, row(1, "other", new_ms=1.0)),), (run(2, *ROWS, modelled=True),), (run(2, row(1, odd_ms=1.0)),)):
            self.assertEqual(list(self.texts(self.picture(*runs))), ["Not run on real GPUs yet."])
            self.assertEqual(self.points(self.picture(*runs)), {})

    def test_too_many_lines(self) -> None:
        many = Plot("sweep", "rows", {str(number): "new_ms" for number in range(7)})
        with self.assertRaisesRegex(plot_results.PageError, "7 lines of 'sweep' are too many for one plot, 6 at most"):
            self.picture(run(2, *ROWS), plot=many)


class UpdateTest(FolderTest):
    """tools/pages/update_pages.py --measured, in a folder with two pages and one plot."""

    def setUp(self) -> None:
        super().setUp()
        for page in ("README.md", "virtual_gpu/README.md"):
            self.write(page, "A page.\n")
        self.save(run(2, *ROWS))

    def save(self, *runs: Dict[str, Any]) -> None:
        self.write("docs/results/h200-x2.json", json.dumps({"runs": runs}))

    def update(self, *arguments: str) -> Tuple[int, str]:
        said = io.StringIO()
        with mock.patch.object(update_pages, "REPOSITORY", self.folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), \
                mock.patch.object(update_pages, "plots", lambda: {"docs/pictures/a.svg": ("90_test", PLOT)}), \
                mock.patch.object(sys, "argv", ["update_pages.py", "--measured", *arguments]):
            return update_pages.main(), said.getvalue()

    def test_writes_and_finds_drift(self) -> None:
        picture = self.folder / "docs" / "pictures" / "a.svg"
        self.assertEqual(self.update("--check"), (1, "drifted: docs/pictures/a.svg\n"))
        self.assertFalse(picture.exists())
        self.assertEqual(self.update(), (0, "updated: docs/pictures/a.svg\n"))
        self.assertIn("new &amp; fast, 1: 8 ms", picture.read_text())
        self.assertEqual(self.update("--check"), (0, ""))
        self.save(run(2, *ROWS[:-1], row(16, new_ms=0.126)))
        self.assertEqual(self.update("--check"), (1, "drifted: docs/pictures/a.svg\n"))  # unlike a timeline, by one number

    def test_without_results(self) -> None:
        self.save()
        self.assertEqual(self.update(), (0, "updated: docs/pictures/a.svg\n"))

    def test_what_cannot_be_drawn(self) -> None:
        with mock.patch.object(plot_results, "COLOURS", ("#000000",)):
            self.assertEqual(self.update(), (2, "90_test: 2 lines of 'sweep' are too many for one plot, 1 at most\n"))


class RepositoryTest(unittest.TestCase):
    def test_no_plot_has_drifted(self) -> None:
        """This check needs no build."""
        reports = load(REPOSITORY / "docs" / "results")
        self.assertTrue(update_pages.plots())
        for name, plot in update_pages.plots().items():
            self.assertEqual((REPOSITORY / name).read_text(encoding="utf-8"), plot_results.picture(*plot, reports), f"{name}: ./lab pages --measured")

    def test_each_line_has_points(self) -> None:
        """A line whose name is in no result would be missing."""
        for name, (_, plot) in update_pages.plots().items():
            drawn = [text.text for text in xml.parse(REPOSITORY / name).iter(f"{SVG}text")]
            self.assertLessEqual(set(plot.lines), set(drawn), name)


if __name__ == "__main__":
    unittest.main()
