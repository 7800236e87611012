"""Plots of measured results, as SVG: times against a number of the same section of a report, both axes logarithmic.

A chapter's manifest (chapters.py) describes the plot, docs/results holds the numbers; tools/pages/update_pages.py writes the
picture and checks that it has not drifted. The same results always give the same file.
"""
import math
from typing import Any, Dict, List, Sequence, Tuple
from xml.sax.saxutils import escape

from tools.chapters import Plot
from tools.pages.draw_timeline import FONT, SMALL, WIDTH, number, svg, text
from tools.pages.excerpts import PageError
from tools.results.ladder import by_gpus, what_and_where
from tools.results.results import Run, field_text, runs_with_section

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 64, 136, 44, 64, 400
NOT_YET = "Not run on real GPUs yet."
GAP = 15  # the least distance of two lines' names
COLOURS = ("#7d8590", "#d07a00", "#2277bb", "#3a9a3a", "#b0508c", "#5a51c4")

Points = List[Tuple[float, float]]


def lines_of(run: Run, plot: Plot) -> Dict[str, Points]:
    """The points of each line, by x: the number that the plot names, and milliseconds. A result without one of them has none."""
    results = [result for result in run["results"] if result.get("section") == plot.section]
    lines = {name: sorted((float(result[plot.x]), float(result[field])) for result in results if plot.x in result and field in result)
             for name, field in plot.lines.items()}
    return {name: points for name, points in lines.items() if points}


def ticks(low: float, high: float, factors: Sequence[int]) -> List[float]:
    """The numbers from `low` to `high` that are one of `factors` times a power of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [value for power in powers for value in (factor * 10.0**power for factor in factors) if low <= value <= high]


def apart(wanted: Sequence[float]) -> List[float]:
    """Positions near the wanted ones, in the same order, at least GAP apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = list(wanted)
    for before, here in zip(order, order[1:]):
        places[here] = max(places[here], places[before] + GAP)
    return places


def drawing(lines: Dict[str, Points], x_name: str, source: str, unit: str = "ms", what: str = "Measured time") -> str:
    """The picture. `source` says what was measured, and on what."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    times = [y for points in lines.values() for _, y in points]
    low, high = min(times) / 1.2, max(times) * 1.2
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(value: float, least: float, most: float, length: int) -> float:
        return length * math.log(value / least) / math.log(most / least) if most > least else length / 2

    def across(x: float) -> float:
        return LEFT + place(x, xs[0], xs[-1], width)

    def down(y: float) -> float:
        return TOP + height - place(y, low, high, height)

    parts = [text(16, 26, f"time, {unit}", "strong", "start")]
    for y in ticks(low, high, (1, 2, 5)):
        parts += [f'<path class="grid" d="M{LEFT} {number(down(y))} H{LEFT + width}"/>',
                  text(LEFT - 8, down(y) + 4, f"{y:g}", "note", "end", SMALL)]
    parts += [text(across(x), TOP + height + 18, f"{x:g}", "note", "middle", SMALL) for x in xs]
    parts += [text(LEFT, HEIGHT - 14, x_name.replace("_", " "), "strong", "start"),
              text(WIDTH - 16, HEIGHT - 14, source, "note", "end")]
    names = apart([down(points[-1][1]) for points in lines.values()])
    for (name, points), colour, y_of_name in zip(lines.items(), COLOURS, names):
        path = " L".join(f"{number(across(x))} {number(down(y))}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{number(across(x))}" cy="{number(down(y))}" r="3.5" fill="{colour}">'
                  f"<title>{escape(name)}, {x:g}: {field_text(y)} {escape(unit)}</title></circle>" for x, y in points]
        parts.append(f'<text x="{number(LEFT + width + 12)}" y="{number(y_of_name + 4)}" font-size="{FONT}" '
                     f'style="fill:{colour}">{escape(name)}</text>')
    return svg(parts, HEIGHT, f"{what} against {x_name.replace('_', ' ')}, of {', '.join(lines)}")


def picture(chapter: str, plot: Plot, reports: List[Dict[str, Any]]) -> str:
    """The plot of a chapter's results: of its runs with that section, the one that is first in the pages' tables."""
    runs = [run for _, group in by_gpus(runs_with_section(chapter, plot.section, reports)) for run in group]
    lines = lines_of(runs[0], plot) if runs else {}
    if not lines:
        return svg([f'<text class="note" x="16" y="26" font-size="{FONT}">{NOT_YET}</text>'], 44, NOT_YET)
    if len(lines) > len(COLOURS):
        raise PageError(f"{chapter}: {len(lines)} lines of '{plot.section}' are too many for one plot, {len(COLOURS)} at most")
    return drawing(lines, plot.x, f"measured: {what_and_where(runs[0])}, CUDA {runs[0]['hardware']['toolkit']}")
