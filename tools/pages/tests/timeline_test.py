#!/usr/bin/env python3
"""Tests of --timeline, with the program of chapter 01, and of tools/pages/draw_timeline.py."""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml
from typing import Dict, List, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs import program_test_case  # noqa: E402
from tests.programs.program_test_case import REPOSITORY, ProgramTestCase  # noqa: E402

SMALL = ("--m", "33", "--n", "37", "--k", "19")
SVG = "{http://www.w3.org/2000/svg}"


def bars(trace: Dict) -> List[Dict]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def named(trace: Dict, what: str) -> Dict[int, str]:
    """Names of processes or threads, by number."""
    key = "pid" if what == "process_name" else "tid"
    return {event[key]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == what}


def end(bar: Dict) -> float:
    return bar["ts"] + bar["dur"]


class RecordTest(ProgramTestCase):
    def record(self, *arguments: str, size: Tuple[str, ...] = SMALL) -> Dict:
        self.call_right("--timeline", "trace.json", *size, *arguments)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["trace.json"])
        return json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))

    def test_the_last_run_of_each_variant(self) -> None:
        trace = self.record("--gpus", "2", "--iterations", "3", "--warmup", "2")
        processes = named(trace, "process_name")
        self.assertEqual(list(processes.values()), ["1 GPU: GPU 0", "2 GPUs: GPU 0", "2 GPUs: GPU 1"])
        for pid, process in processes.items():
            mine = sorted((bar for bar in bars(trace) if bar["pid"] == pid), key=lambda bar: bar["ts"])
            with self.subTest(process):
                self.assertEqual([bar["name"] for bar in mine], ["copy A and B in"] * 2 + ["multiply", "copy C out"])
                self.assertEqual([bar["cat"] for bar in mine], ["copy", "copy", "kernel", "copy"])
                columns = {"1 GPU: GPU 0": 37, "2 GPUs: GPU 0": 19, "2 GPUs: GPU 1": 18}[process]
                self.assertEqual([bar["args"].get("bytes") for bar in mine],
                                 [4 * 33 * 19, 4 * 19 * columns, None, 4 * 33 * columns])
                for earlier, later in zip(mine, mine[1:]):
                    self.assertGreater(earlier["dur"], 0)
                    self.assertLessEqual(end(earlier), later["ts"] + 1e-6)
        for section in ("1 GPU", "2 GPUs"):
            first = min(bar["ts"] for bar in bars(trace) if processes[bar["pid"]].startswith(section))
            self.assertEqual(first, 0)

    def test_both_gpus_work_at_the_same_time(self) -> None:
        if self.backend != "virtual":
            self.skipTest("so small a product may be over before the next GPU begins")
        trace = self.record("--gpus", "2", "--only", "all_gpus", size=("--m", "64", "--n", "64", "--k", "200"))
        first, second = (bar for bar in bars(trace) if bar["cat"] == "kernel")
        self.assertNotEqual(first["pid"], second["pid"])
        self.assertLess(max(first["ts"], second["ts"]), min(end(first), end(second)))

    def test_stamp(self) -> None:
        stamp = self.record("--gpus", "1")["otherData"]
        self.assertEqual((stamp["chapter"], stamp["backend"]), ("01_column_split", self.backend))
        self.assertIs(stamp["modelled"], self.backend == "virtual")
        self.assertTrue(stamp["hardware"]["gpu"])
        self.assertTrue(stamp["commit"])
        self.assertRegex(stamp["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_recording_changes_nothing(self) -> None:
        if self.backend != "virtual":
            self.skipTest("on real GPUs it costs time")
        # A part of chapter 04 that runs the same work with and without a timeline; a bench would run each variant once more.
        self.program = self.program.with_name("04_copy_engine")
        part = ("--only", "first_push", "--gpus", "2")
        for schedule in ((), ("--schedule", "7"), ("--schedule", "8")):
            plain = self.call_right(*part, *schedule).stdout
            recorded = self.call_right(*part, *schedule, "--timeline", "trace.json").stdout
            self.assertEqual(plain, recorded, schedule)

    def test_only_right_results_have_a_timeline(self) -> None:
        (self.folder / "old.json").write_text("old")
        for name in ("new.json", "old.json"):
            self.assert_fails(1, ("--corrupt", *SMALL, "--timeline", name), "wrong result")
        self.assertEqual((self.folder / "old.json").read_text(), "old")
        if self.backend == "virtual":
            self.assert_fails(77, ("--machine", self.machine(gpus=2), "--gpus", "3", "--timeline", "new.json"), "skipped")

    def test_the_report_says_that_it_was_recorded(self) -> None:
        self.call_right(*SMALL, "--json", "report.json")
        self.assertNotIn("timeline", json.loads((self.folder / "report.json").read_text())["options"])
        self.call_right(*SMALL, "--json", "report.json", "--timeline", "trace.json")
        self.assertIs(json.loads((self.folder / "report.json").read_text())["options"]["timeline"], True)


Bar = Tuple[str, str, float, float]  # lane, name, begin and duration in microseconds


def trace_of(gpus: Dict[Tuple[str, int], List[Bar]], modelled: bool = True) -> Dict:
    """A trace as the programs write it; `gpus` by section and number."""
    events = []
    for place, ((section, gpu), of_gpu) in enumerate(gpus.items()):
        pid = 100 + place
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0,
                       "args": {"labels": section, "gpu": gpu}})
        lanes = sorted({lane for lane, *_ in of_gpu}, reverse=True)
        for lane in lanes:
            events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": 1000 * pid + lanes.index(lane),
                           "args": {"name": lane}})
        for lane, name, begin, duration in of_gpu:
            events.append({"ph": "X", "name": name, "cat": "copy" if lane.startswith("copies") else "kernel",
                           "pid": pid, "tid": 1000 * pid + lanes.index(lane), "ts": begin, "dur": duration,
                           "args": {"what": "what it does", "stream": 1}})
    hardware = {"gpu": "NVIDIA H200", "machine": "small", "toolkit": "13.0"}
    return {"traceEvents": events, "otherData": {"chapter": "99_test", "modelled": modelled, "hardware": hardware}}


class DrawTest(ProgramTestCase):
    def draw(self, *traces: Dict, options: Tuple[str, ...] = (), status: int = 0) -> str:
        """The SVG, or the text on standard error."""
        paths = [self.write(f"{number}.json", json.dumps(trace)) for number, trace in enumerate(traces)]
        target = self.folder / "out.svg"
        target.unlink(missing_ok=True)
        result = subprocess.run([sys.executable, REPOSITORY / "tools" / "pages" / "draw_timeline.py", *paths, "-o", target, *options],
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(target.exists(), status == 0)
        return target.read_text(encoding="utf-8") if status == 0 else result.stderr

    @staticmethod
    def rectangles(svg: str) -> Dict[str, Tuple[float, float, float]]:
        """x, y and width of the bars, by the first line of their tooltips."""
        return {group.find(f"{SVG}title").text.split("\n")[0]:
                tuple(float(group.find(f"{SVG}rect").get(name)) for name in ("x", "y", "width"))
                for group in xml.fromstring(svg).iter(f"{SVG}g")}

    @staticmethod
    def texts(svg: str) -> List[str]:
        return ["".join(text.itertext()) for text in xml.fromstring(svg).iter(f"{SVG}text")]

    def test_widths_and_places_are_proportional_to_times(self) -> None:
        svg = self.draw(trace_of({("", 0): [("stream 1", "a", 0, 10), ("stream 1", "b", 15, 40), ("copies in", "c", 5, 20)],
                                  ("", 1): [("stream 1", "d", 50, 50)]}))
        found = self.rectangles(svg)
        self.assertEqual(sorted(found), ["a", "b", "c", "d"])
        scale, zero = found["d"][2] / 50, found["a"][0]
        for name, begin, duration in (("a", 0, 10), ("b", 15, 40), ("c", 5, 20), ("d", 50, 50)):
            self.assertAlmostEqual(found[name][0], zero + begin * scale, delta=0.02)
            self.assertAlmostEqual(found[name][2], duration * scale, delta=0.02)
        self.assertLessEqual(found["d"][0] + found["d"][2], 900)
        self.assertGreater(100 * scale, 600, "the width is used")
        self.assertEqual(found["a"][1], found["b"][1], "one lane")
        self.assertEqual(len({y for _, y, _ in found.values()}), 3, "three lanes")
        self.assertLess(found["a"][1], found["d"][1], "GPU 0 first")

    def test_two_traces_on_one_axis(self) -> None:
        traces = [trace_of({("one", 0): [("stream 1", "long", 0, 100)]}),
                  trace_of({("two", 0): [("stream 1", "half", 0, 50)]})]
        found = self.rectangles(self.draw(*traces))
        self.assertAlmostEqual(found["long"][2], 2 * found["half"][2], delta=0.02)
        self.assertEqual(found["long"][0], found["half"][0])
        self.assertLess(found["long"][1], found["half"][1], "one below the other")

    def test_names_stand_where_they_fit(self) -> None:
        svg = self.draw(trace_of({("", 0): [("stream 1", "multiply shard 5", 0, 95), ("stream 1", "a long name", 95, 5)]}))
        self.assertIn("multiply shard 5", self.texts(svg))
        self.assertNotIn("a long name", self.texts(svg))
        self.assertIn("a long name", self.rectangles(svg), "the mouse shows it")
        texts = self.texts(self.draw(trace_of({("", 0): [("stream 1", "step 3: multiply", 0, 15), ("stream 1", "x", 15, 85)]})))
        self.assertIn("multiply", texts)
        self.assertNotIn("step 3: multiply", texts)

    def test_it_says_what_the_times_are(self) -> None:
        gpus = {("", 0): [("stream 1", "a", 0, 10)]}
        modelled, measured = trace_of(gpus), trace_of(gpus, modelled=False)
        self.assertIn("time in µs, modelled (machine small)", self.texts(self.draw(modelled)))
        self.assertIn("time in µs, measured on NVIDIA H200, CUDA 13.0", self.texts(self.draw(measured)))
        both = self.texts(self.draw(modelled, measured))
        self.assertIn("time in µs", both)
        self.assertEqual([("modelled" in text, "measured" in text) for text in both if text.startswith("99_test")],
                         [(True, False), (False, True)])

    def test_lanes_and_titles(self) -> None:
        gpu = [("stream 3", "a", 0, 10), ("copies in", "b", 0, 10)]
        texts = self.texts(self.draw(trace_of({("ring", 0): gpu, ("ring", 7): gpu + [("stream 4", "c", 3, 3)]})))
        for text in ("GPU 0", "GPU 7", "stream", "stream 3", "stream 4", "copies in", "kernel", "copy"):
            self.assertIn(text, texts)
        self.assertEqual(texts.count("copies in"), 2)
        self.assertTrue(any(text.startswith("ring") for text in texts))

    def test_long_times_are_in_milliseconds(self) -> None:
        texts = self.texts(self.draw(trace_of({("", 0): [("stream 1", "a", 0, 40000)]})))
        self.assertTrue(any(text.startswith("time in ms") for text in texts))
        self.assertIn("40", texts)

    def test_form(self) -> None:
        trace = trace_of({('<s> & "t"', 0): [("stream 1", '<a> & "b"', 0, 10)]})
        svg = self.draw(trace)
        self.assertEqual(svg, self.draw(trace), "the same every time")
        self.assertIn('<a> & "b"', self.rectangles(svg))
        root = xml.fromstring(svg)
        self.assertEqual(root.get("width"), "900")
        sizes = [float(node.get("font-size")) for node in root.iter() if node.get("font-size")]
        self.assertGreaterEqual(min(sizes), 11)
        self.assertIn("prefers-color-scheme: dark", svg)

    def test_refusals(self) -> None:
        overlap = trace_of({("", 0): [("stream 1", "a", 0, 10), ("stream 1", "b", 9, 10)]})
        self.assertIn("bars overlap in GPU 0, stream 1", self.draw(overlap, status=2))
        for trace in ({}, {"traceEvents": []}, [1, 2]):
            self.assertIn("this is no file of --timeline", self.draw(trace, status=2))
        self.assertIn("No such file", self.draw(options=("missing.json",), status=2))

    def test_a_program_and_its_picture(self) -> None:
        self.call_right("--timeline", "trace.json", *SMALL, "--gpus", "3")
        trace = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        svg = self.draw(trace)
        groups = list(xml.fromstring(svg).iter(f"{SVG}g"))
        self.assertEqual(len(groups), 4 * 4)  # one GPU and three: two copies in, a kernel and a copy out each
        rows: Dict[float, List[Tuple[float, float]]] = {}
        for group in groups:
            rectangle = group.find(f"{SVG}rect")
            x, y, width = (float(rectangle.get(name)) for name in ("x", "y", "width"))
            rows.setdefault(y, []).append((x, x + width))
        self.assertEqual(len(rows), 4 * 3)
        for row in rows.values():
            row.sort()
            for earlier, later in zip(row, row[1:]):
                self.assertLessEqual(earlier[1], later[0] + 0.02)
        widths = sorted(right - left for row in rows.values() for left, right in row)
        durations = sorted(bar["dur"] for bar in bars(trace))
        scale = widths[-1] / durations[-1]
        for width, duration in zip(widths, durations):
            self.assertAlmostEqual(width, duration * scale, delta=0.02)


class PictureTest(ProgramTestCase):
    def test_pictures_of_the_pages_are_timelines(self) -> None:
        pictures = sorted(REPOSITORY.glob("chapters/*/timeline.svg"))
        self.assertTrue(pictures)
        for picture in pictures:
            self.assertTrue(list(xml.parse(picture).getroot().iter(f"{SVG}g")), picture)


if __name__ == "__main__":
    program_test_case.main()
