#!/usr/bin/env python3
"""Draws timelines as SVG: the GPUs' operations over time, one lane for each stream and each group of copy engines.

  build/virtual/bin/01_column_split --gpus 2 --timeline trace.json
  tools/pages/draw_timeline.py trace.json -o timeline.svg

A trace is the file of --timeline, modelled or measured; the two differ only in the text below the axis. Each
section of a trace (a variant of a chapter, say) becomes a panel whose time begins at 0; several traces are drawn one
below the other, on one axis. A name is drawn in its bar if it fits (of "step 3: multiply shard 5" at least the part behind the
colon); a viewer shows a bar's name and times when the mouse rests on it. The same traces always give the same file.
"""
import argparse
import json
import pathlib
import re
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Sequence
from xml.sax.saxutils import escape, quoteattr

WIDTH = 900
LEFT, RIGHT = 152, 24        # the left end of the axis, and the margin at the right
ROW, BAR = 24, 18            # heights
FONT, SMALL = 12, 11         # sizes
LETTER = 0.58                # mean width of a letter, in font sizes; rounded up, so that names fit in their bars
KINDS = {"kernel": "kernel", "collective": "NCCL", "copy": "copy", "memset": "memset", "host function": "host function"}

STYLE = """
    text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; fill: #24292f; }
    .page { fill: #ffffff; stroke: #d0d7de; } .note { fill: #57606a; } .strong { font-weight: 600; }
    .lane { fill: #f6f8fa; } .grid { stroke: #d8dee4; } .end { stroke: #57606a; stroke-dasharray: 3 3; }
    .bar { stroke-width: 1; } .in { fill: #1b1f24; text-anchor: middle; }
    .kernel { fill: #8dc6f2; stroke: #3f88bd; } .collective { fill: #a8d8a0; stroke: #559a4b; }
    .copy { fill: #f6c177; stroke: #bd832d; } .memset { fill: #d9d9d9; stroke: #8c8c8c; }
    .host-function { fill: #e0a3c8; stroke: #a85b89; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .page { fill: #0d1117; stroke: #30363d; } .note { fill: #9198a1; } .in { fill: #1b1f24; }
      .lane { fill: #161b22; } .grid { stroke: #30363d; } .end { stroke: #9198a1; }
    }
"""


class TraceError(Exception):
    """The file is not a timeline."""


@dataclass
class Bar:
    name: str
    kind: str
    begin: float  # microseconds
    end: float
    details: str


@dataclass
class Lane:
    name: str
    order: int
    bars: List[Bar] = field(default_factory=list)


@dataclass
class Gpu:
    number: int
    section: str
    lanes: Dict[int, Lane] = field(default_factory=dict)


@dataclass
class Panel:
    title: str
    source: str  # "modelled (machine small)" or the hardware
    gpus: List[Gpu]

    def end(self) -> float:
        return max(bar.end for gpu in self.gpus for lane in gpu.lanes.values() for bar in lane.bars)


def source_of(stamp: Dict) -> str:
    """Says whether times are modelled or measured, and for which machine."""
    hardware = stamp["hardware"]
    if stamp["modelled"]:
        return f"modelled (machine {hardware['machine']})"
    return f"measured on {hardware['gpu']}, CUDA {hardware['toolkit']}"


def details_of(event: Dict) -> str:
    """The text that a viewer shows when the mouse rests on a bar."""
    arguments = event["args"]
    parts = [event["name"]]
    parts += [arguments[key] for key in ("scope", "what", "kernel") if arguments.get(key, event["name"]) not in parts]
    if arguments.get("bytes", 0) >= 1024:
        parts.append(f"{arguments['bytes']} bytes")
    parts.append(f"stream {arguments['stream']}")
    parts.append(f"{event['ts']:g} to {event['ts'] + event['dur']:g} µs: {event['dur']:g} µs")
    return "\n".join(parts)


def read(path: pathlib.Path) -> List[Panel]:
    """The sections of a trace, in its order."""
    trace = json.loads(path.read_text(encoding="utf-8"))
    gpus: Dict[int, Gpu] = {}
    for event in trace["traceEvents"]:
        pid, tid, arguments = event["pid"], event["tid"], event["args"]
        if event["name"] == "process_labels":
            gpus[pid] = Gpu(arguments["gpu"], arguments["labels"])
        elif event["name"] == "thread_name" and event["ph"] == "M":
            gpus[pid].lanes[tid] = Lane(arguments["name"], tid)
        elif event["ph"] == "X":
            bar = Bar(event["name"], event["cat"], event["ts"], event["ts"] + event["dur"], details_of(event))
            gpus[pid].lanes[tid].bars.append(bar)
    sections: Dict[str, List[Gpu]] = {}
    for _, gpu in sorted(gpus.items()):
        sections.setdefault(gpu.section, []).append(gpu)
        for lane in gpu.lanes.values():
            lane.bars.sort(key=lambda bar: bar.begin)
            if any(later.begin < earlier.end - 1e-6 for earlier, later in zip(lane.bars, lane.bars[1:])):
                raise TraceError(f"bars overlap in {gpu.section or 'GPU'} {gpu.number}, {lane.name}")
    stamp = trace["otherData"]
    return [Panel(section or stamp["chapter"], source_of(stamp), members) for section, members in sections.items()]


def nice_step(span: float) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that divides `span` into at most 9 parts."""
    step = 1e-3
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= 9:
                return step * factor
        step *= 10


def number(value: float) -> str:
    """A coordinate with at most two decimals, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, words: str, style: str, anchor: str, size: int = FONT) -> str:
    """A text element of plots and bar charts."""
    return (f'<text class="{style}" x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}">'
            f"{escape(words)}</text>")


def lane_names(gpu: Gpu) -> Dict[int, str]:
    """A GPU's only stream needs no number."""
    streams = [lane for lane in gpu.lanes.values() if re.fullmatch(r"stream \d+", lane.name)]
    return {lane.order: "stream" if streams == [lane] else lane.name for lane in gpu.lanes.values()}


def words_that_fit(name: str, width: float) -> str:
    """The name, or the part behind its colon ("multiply shard 5" of "step 3: multiply shard 5"), whichever fits in the bar;
    else nothing."""
    for words in (name, name.rpartition(": ")[2]):
        if len(words) * LETTER * FONT + 6 <= width:
            return words
    return ""


class Drawing:
    """Grows from the top to the bottom."""

    def __init__(self, panels: List[Panel]) -> None:
        self.panels = panels
        self.parts: List[str] = []
        self.y = 12.0
        self.longest = max(panel.end() for panel in panels)
        self.one_source = len({panel.source for panel in panels}) == 1

    def text(self, x: float, y: float, words: str, style: str = "", size: int = FONT, anchor: str = "start") -> None:
        anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text class="{style}" x="{number(x)}" y="{number(y)}" font-size="{size}"{anchored}>'
                          f"{escape(words)}</text>")

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self.parts.append(f'<line class="{style}" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"/>')

    def scale(self) -> float:
        """Pixels a microsecond."""
        return (WIDTH - LEFT - RIGHT) / self.longest

    def bar(self, bar: Bar, top: float, scale: float) -> None:
        x, width = LEFT + bar.begin * scale, (bar.end - bar.begin) * scale
        self.parts.append(f"<g><title>{escape(bar.details)}</title>"
                          f'<rect class="bar {bar.kind.replace(" ", "-")}" x="{number(x)}" y="{number(top)}" '
                          f'width="{number(width)}" height="{BAR}"/>')
        words = words_that_fit(bar.name, width)
        if words:
            self.text(x + width / 2, top + BAR - 5, words, "in")
        self.parts.append("</g>")

    def panel(self, panel: Panel) -> None:
        scale = self.scale()
        self.y += 20
        took = f"{panel.end():.0f} µs" if panel.end() < 10000 else f"{panel.end() / 1000:.1f} ms"
        source = "" if self.one_source else f", {panel.source}"
        self.parts.append(f'<text x="16" y="{number(self.y)}" font-size="14"><tspan class="strong">{escape(panel.title)}'
                          f'</tspan><tspan class="note" dx="8" font-size="{FONT}">{escape(took + source)}</tspan></text>')
        self.y += 8
        top, height = self.y, ROW * sum(len(gpu.lanes) for gpu in panel.gpus) + 6 * (len(panel.gpus) - 1)
        row = top
        for gpu in panel.gpus:
            self.parts.append(f'<rect class="lane" x="{LEFT}" y="{number(row)}" width="{WIDTH - LEFT - RIGHT}" '
                              f'height="{ROW * len(gpu.lanes)}"/>')
            row += ROW * len(gpu.lanes) + 6
        step = nice_step(self.longest)
        for tick in range(int(self.longest / step + 1e-9) + 1):
            self.line(LEFT + tick * step * scale, top, LEFT + tick * step * scale, top + height, "grid")
        self.line(LEFT + panel.end() * scale, top, LEFT + panel.end() * scale, top + height, "end")
        for gpu in panel.gpus:
            self.text(16, self.y + ROW - 8, f"GPU {gpu.number}", "strong")
            names = lane_names(gpu)
            for _, lane in sorted(gpu.lanes.items()):
                self.text(LEFT - 10, self.y + ROW - 8, names[lane.order], "note", SMALL, "end")
                for bar in lane.bars:
                    self.bar(bar, self.y + (ROW - BAR) / 2, scale)
                self.y += ROW
            self.y += 6
        self.y -= 6

    def axis(self) -> None:
        """The axis with its numbers, below all panels."""
        scale, step = self.scale(), nice_step(self.longest)
        milliseconds = self.longest >= 10000
        for tick in range(int(self.longest / step + 1e-9) + 1):
            value = tick * step / (1000 if milliseconds else 1)
            self.text(LEFT + tick * step * scale, self.y + 16, f"{value:.6g}", "note", SMALL, "middle")
        self.y += 16
        unit = "ms" if milliseconds else "µs"
        source = f", {self.panels[0].source}" if self.one_source else ""
        self.text(LEFT, self.y + 18, f"time in {unit}{source}", "note")

    def legend(self) -> None:
        """The legend below the axis, on the right, with the kinds of operations that occur."""
        used = {bar.kind for panel in self.panels for gpu in panel.gpus for lane in gpu.lanes.values() for bar in lane.bars}
        x = WIDTH - RIGHT
        for kind in reversed([kind for kind in KINDS if kind in used]):
            x -= len(KINDS[kind]) * LETTER * FONT + 4
            self.text(x, self.y + 18, KINDS[kind], "note")
            x -= 20
            self.parts.append(f'<rect class="bar {kind.replace(" ", "-")}" x="{number(x)}" y="{number(self.y + 7)}" '
                              f'width="14" height="12"/>')
            x -= 14

    def svg(self) -> str:
        for panel in self.panels:
            self.panel(panel)
            self.y += 8
        self.y -= 8
        self.axis()
        self.legend()
        panels = ", ".join(f"{panel.title} ({panel.end():.0f} µs)" for panel in self.panels)
        return svg(self.parts, self.y + 32, f"timeline of {panels}")


def svg(parts: Sequence[str], height: float, label: str) -> str:
    """A whole picture of these parts."""
    body = "\n  ".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}" width="{WIDTH}" role="img" '
            f"aria-label={quoteattr(label)}>\n  <style>{STYLE}  </style>\n"
            f'  <rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{number(height - 1)}" rx="6"/>\n  {body}\n</svg>\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("traces", nargs="+", type=pathlib.Path, metavar="TRACE.json", help="files of --timeline")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="FILE.svg")
    options = parser.parse_args()
    panels: List[Panel] = []
    for path in options.traces:
        try:
            panels += read(path)
        except (OSError, TraceError) as error:
            parser.error(f"{path}: {error}")
        except (ValueError, KeyError, TypeError, AttributeError):
            parser.error(f"{path}: this is no file of --timeline")
    if not panels:
        parser.error("there is nothing to draw")
    options.output.write_text(Drawing(panels).svg(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
