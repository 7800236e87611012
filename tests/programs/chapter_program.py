"""Tests that every chapter's program passes, whatever its kind."""
import json
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import counted
from program_test_case import MOST_RANKS, ONCE, REPOSITORY, ProgramTestCase, up_to_most

sys.path.insert(0, str(REPOSITORY))
from tools import mutants  # noqa: E402
from tools.chapters import Chapter, Experiment, all_chapters  # noqa: E402

NO_NCCL = "skipped: NCCL wants a GPU for each rank, and all ranks share one here"
LEFT_OUT = "is left out: NCCL wants a GPU for each rank"


class ExperimentProgram(ProgramTestCase):
    """The program of an experiment: it runs, and reports itself. The chapter tests what it measures."""

    def setUp(self) -> None:
        super().setUp()
        chapter, = (each for each in all_chapters().values()
                    if self.program.name in (experiment.program for experiment in each.experiments))
        sizes = "--rows 97 --features 5 --entries 23 --duplicates 4" if chapter.kind == "sparse" else "--m 33 --n 37 --k 19"
        self.small = (*sizes.split(), *ONCE)

    def test_help_and_list(self) -> None:
        for option in ("--help", "--list"):
            result = self.call(option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout)

    def test_bad_options(self) -> None:
        self.assert_refused({("--gpus", "17"): "--gpus: 17 is not between 1 and 16", ("--only", "nothing"): "--only: 'nothing'"})

    def test_json(self) -> None:
        for gpus in ("2", "3"):
            self.assertTrue(self.report("--gpus", gpus, *self.small)["results"])


class ChapterProgram(ProgramTestCase):
    """A chapter sets only what differs from others; for unset attributes the program's own --list counts."""

    variants: Sequence[str] = ()  # the output of --list, in order, of a program without a table of variants
    right: Sequence[str] = ()  # the variants that the sentence on right results names, in order; unset: as in the table
    needs_nccl: Sequence[str] = ()  # those that cannot run if ranks share a GPU
    corrupted: Mapping[str, str] = {}  # variant -> regular expression of the name of the wrong result; unset: each of `right`
    help_says: Sequence[str] = ()  # words that --help must print
    no_variant = "nothing"  # a name that --only refuses: another chapter's
    refused: Mapping[Sequence[str], str] = {}  # command line -> error message
    usual_sizes: str = ""  # the default of the chapter's kind
    kernels: Mapping[str, str] = {}  # variant -> expected Call.signature() of its own phases; unset: kernels are not compared
    frame: Mapping[str, str] = {}  # phases that variants share: left out of `kernels` if they have these kernels
    launch_phases: Sequence[str] = ()  # phases whose launches a cost card counts; unset: all
    counted_call = ""  # sizes and ranks of the counted call; unset: the small sizes on three GPUs
    told_apart_by: Sequence[str] = ()  # template parameters that are part of a kernel's name in `kernels`
    sections: Mapping[str, str] = {}  # variant -> its section of the timeline, if named differently

    @property
    def max_gpus(self) -> int:
        """The largest value of --gpus."""
        return 16

    @property
    def chapter(self) -> Chapter:
        """The manifest of the chapter, or of the experiment's chapter."""
        chapter = all_chapters().get(self.program.name)
        return chapter or next(each for each in all_chapters().values() if self.experiment_of(each))

    def experiment_of(self, chapter: Chapter) -> Optional[Experiment]:
        """The chapter's experiment that this program is; None for the chapter's own."""
        return next((each for each in chapter.experiments if each.program == self.program.name), None)

    def setUp(self) -> None:
        super().setUp()
        sizes = self.chapter.tests.get("program", {}).get("sizes", self.usual_sizes)
        self.small = (*sizes.split(), *ONCE)

    def all_variants(self) -> List[str]:
        """The expected output of --list."""
        return list(self.variants) or self.call("--list").stdout.split()

    def table(self) -> List[Dict[str, Any]]:
        """The program's table of variants: the rows of --cost for the variants of --list; empty for a program without a
        table."""
        result = self.call("--cost")
        if result.returncode == 2:
            return []
        return [variant for variant in json.loads(result.stdout)["variants"] if variant.get("runs_here", True)]

    def all_right(self) -> List[str]:
        """The variants whose results are verified."""
        results = [variant["variant"] for variant in self.table() if variant["role"] in ("algorithm", "product")]
        return list(self.right) or results or self.all_variants()

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        """Command lines that every program of the kind refuses, and the messages."""
        return {("--gpus", str(self.max_gpus + 1)): f"--gpus: {self.max_gpus + 1} is not between 1 and {self.max_gpus}",
                ("--only", self.no_variant): f"--only: '{self.no_variant}'"}

    def test_help_and_list(self) -> None:
        listed, told = self.call("--list"), self.call("--help")
        for result in (listed, told):
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(listed.stdout.split())
        self.assertEqual(listed.stdout.split(), self.all_variants())
        self.assertIn([variant["variant"] for variant in self.table()], (listed.stdout.split(), []))
        for words in self.help_says:
            self.assertIn(words, told.stdout)

    def test_bad_options(self) -> None:
        self.assert_refused({**self.refused_by_all(), **self.refused})

    def test_cost_cards_need_no_gpu(self) -> None:
        """--cost also needs no readable machine file and no sizes that fit in memory."""
        if self.chapter.name != self.program.name:
            self.skipTest("an experiment's algorithms are its chapter's")
        sizes = ("--rows", "1000000") if self.chapter.kind == "sparse" else ("--m", "800000", "--n", "800000", "--k", "800000")
        result = self.call("--cost", "--machine", "nowhere", "--gpus", "1000", *sizes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        cards = json.loads(result.stdout)
        self.assertEqual((cards["chapter"], cards["gpus"]), (self.program.name, 1000))
        for variant in cards["variants"]:
            with self.subTest(variant["variant"]):
                self.assertFalse("steps" in variant and variant.get("max_ranks", 1000) < 1000)
                self.assertLessEqual(0, min(variant.get("cost", {"none": 0}).values()))
        self.assertTrue(any("cost" in variant for variant in cards["variants"]))

    def least_sizes(self) -> Dict[str, str]:
        """The size options, each with its smallest value, which may be refused because it is no multiple."""
        return {"--rows": "1", "--features": "1", "--entries": "0", "--duplicates": "0"} if self.chapter.kind == "sparse" else \
            {"--m": "1", "--n": "1", "--k": "1"}

    def test_defaults_go_together(self) -> None:
        """The default sizes are valid on any number of GPUs, and beside the smallest value of each option given alone."""
        if self.backend != "virtual" or self.chapter.name != self.program.name:
            self.skipTest("virtual GPUs are as many as are asked for; an experiment's options are its chapter's")
        table = self.table()
        of_libraries = [card["variant"] for card in table if card.get("cost", {}).get("products") and not card["cost"]["launches"]]
        cheap = ("--only", (of_libraries or [card["variant"] for card in reversed(table)] or self.all_variants())[0], *ONCE)
        tiny = self.machine(memory_mib=1, gpus=9)  # refuses what the options allowed, and computes nothing
        # A gradient's sizes do not depend on the number of GPUs; others stop growing with it at eight.
        for gpus in str(MOST_RANKS) if self.chapter.kind == "sparse" else [*up_to_most("12345678"), "9"]:
            with self.subTest(gpus=gpus):
                result = self.call("--gpus", gpus, "--machine", tiny, *cheap)
                if "has not enough free memory" not in result.stderr:
                    self.assertIn(result.returncode, (0, 77), result.stderr)
        for option, value in self.least_sizes().items():
            with self.subTest(option):
                result = self.call(option, value, "--gpus", "2", *cheap)
                multiple = re.search(rf"{option} must be a multiple of (\d+)", result.stderr)
                if multiple:
                    result = self.call(option, multiple.group(1), "--gpus", "2", *cheap)
                self.assertIn(result.returncode, (0, 77), result.stderr)
        result = self.call(*self.small, "--seed", "0", "--timeout", "0", "--gpus", "1")
        self.assertIn(result.returncode, (0, 77), result.stderr)

    def cards(self, _report: Dict[str, Any], *sizes: str) -> Dict[str, Dict[str, Any]]:
        """The rows of --cost for the reported call."""
        result = self.call("--cost", *sizes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {card["variant"]: card for card in json.loads(result.stdout)["variants"]}

    def test_no_report_tells_of_another_variant(self) -> None:
        """Each variant's bytes, launches and GEMMs equal its cost card, its kernels are its own, its times are at least those
        of its operations; and no two variants do the same work in the same time."""
        if self.backend != "virtual" or self.chapter.name != self.program.name:
            self.skipTest("virtual GPUs count; an experiment's algorithms are its chapter's")
        if not self.kernels:
            self.skipTest("the chapter names no kernels")
        sizes = self.counted_call.split() or (*self.small[:-len(ONCE)], "--gpus", "3")
        report = self.report(*sizes, *ONCE, "--timeline", "trace.json")
        calls, cards = counted.calls_of(self.folder / "trace.json"), self.cards(report, *sizes)
        results = [result for result in report["results"] if "section" not in result and "status" not in result]
        self.assertLessEqual({name for name, card in cards.items() if "cost" in card and card.get("runs_here", True)},
                             {result.get("variant") for result in report["results"]})
        seen: Dict[Any, str] = {}
        spans: Dict[Any, float] = {}
        for result in results:
            name = result["variant"]
            call = calls[self.sections.get(name, name)]
            with self.subTest(name):
                if name in cards:
                    self.assert_counts_are_those_of(cards[name], call)
                if name in cards:
                    self.assertEqual(call.signature(self.frame, self.told_apart_by), self.kernels.get(name))
                self.assert_times_are_those_of(result, call)
                times = tuple(round(result[key], 6) for key in ("device_ms", "host_ms", "end_to_end_ms") if key in result)  # to 1 ns
                self.assertAlmostEqual(spans.setdefault(times, call.ms()) / call.ms(), 1, delta=0.005, msg="another variant's times")
                self.assertEqual(seen.setdefault((call.signature({}), times), name), name, "does the same in the same time")

    def assert_counts_are_those_of(self, card: Dict[str, Any], call: counted.Call) -> None:
        """Compares the card of rank 0 with the counts of its GPU."""
        cost, moved = card.get("cost"), call.moved()
        if cost is None:
            return
        planned = sum(step.get("message_bytes", 0) for step in card.get("steps", ())) * 2  # two messages on three ranks
        for name in ("bytes_out", "bytes_in") + (("bytes_to_host", "bytes_from_host") if cost["bytes_to_host"] else ()):
            if card.get("uncounted") == "loads and stores of kernels":
                self.assertEqual(moved[name], planned, name)
                self.assertGreater(cost[name], planned, name)
            elif card.get("uncounted") == "rows as they are drawn":
                self.assertAlmostEqual(moved[name] / cost[name], 1, delta=0.1, msg=name)
            else:
                self.assertAlmostEqual(moved[name], cost[name], delta=4, msg=name)  # NCCL's chunks differ by an element
        graph = sum(step.get("nodes", 0) for step in card.get("steps", ()))  # one launch
        self.assertEqual(call.launches(*self.launch_phases), graph or cost["launches"], "launches")
        self.assertEqual(call.products(), cost["products"], "products")

    def assert_times_are_those_of(self, result: Dict[str, Any], call: counted.Call) -> None:
        """The time with the host is the operations' plus a little for launches, barrier and wait; that of the GPUs is about the
        operations'. All phases together take no longer than the call, and each one at least its
        operations' time on the slowest GPU; the all-reduce, on the fastest, because others wait before it."""
        ms = result["end_to_end_ms" if "end_to_end_ms" in result else "host_ms"]
        self.assertGreater(ms, 0.99 * call.ms())
        self.assertLess(ms, 1.1 * call.ms() + 0.005)
        if "device_ms" in result:
            self.assertGreater(result["device_ms"], 0.5 * call.ms())
            self.assertLess(result["device_ms"], 2 * call.ms())
        phases = [phase for phase in {counted.phase_of(bar) for bar in call.kernels()} if f"{phase}_ms" in result]
        self.assertLess(sum(result[f"{phase}_ms"] for phase in phases), 1.05 * ms)
        for phase in phases:
            longest = min(call.ms_of(phase)) if phase == "all_reduce" else max(call.ms_of(phase))
            self.assertGreaterEqual(result[f"{phase}_ms"], 0.95 * longest, phase)

    def assert_shared_out(self, one: str, eight: str, phases: Sequence[str] = ()) -> None:
        """With sizes for eight blocks, each own kernel of the phases (unset: of all) takes about as long as with those for one: the
        modelled GPU has eight SMs."""
        def longest_us(sizes: str) -> Dict[Tuple[str, str], float]:
            self.call_right("--gpus", "2", *sizes.split(), *ONCE, "--no-check", "--timeline", "trace.json")
            calls = counted.calls_of(self.folder / "trace.json")
            return {(variant, name): us for variant, call in calls.items() for name, us in call.longest_us(*phases).items()}
        of_one, of_eight = longest_us(one), longest_us(eight)
        self.assertTrue(of_eight)
        for kernel, us in of_eight.items():
            self.assertLess(us, 3 * of_one[kernel], kernel)

    def test_mutants_and_manifest_name_variants_that_there_are(self) -> None:
        """All variants named in the command lines of bench, pictures, tests and mutants exist."""
        def named(value: Any) -> Set[str]:
            if isinstance(value, str):
                return {name for only in re.findall(r"--only (\S+)", value) for name in only.split(",")}
            values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            return {name for each in values for name in named(each)}
        experiment = self.experiment_of(self.chapter)
        program, tests = (experiment, experiment.tests) if experiment else (self.chapter, self.chapter.tests)
        measure = [program.measure.usual, program.measure.large, *(lines for _, lines in program.measure.also)]
        planted = [mutants.read_mutant(path) for path in REPOSITORY.glob(f"chapters/{self.chapter.name}/mutants/*.mutant")]
        arguments = [" ".join(mutant.arguments) for mutant in planted
                     if not mutant.test and (mutant.program or self.chapter.name) == self.program.name]
        self.assertLessEqual(named([*map(list, measure), program.pictures, tests, arguments]),
                             set(self.call("--list").stdout.split()))

    def report_of(self, *arguments: str) -> Dict[str, Any]:
        """The report of a small problem on two GPUs."""
        report = self.report(*self.small, "--gpus", "2", *arguments)
        self.assertEqual(report["options"]["gpus"], 2)
        return report

    def trace(self, *arguments: str) -> Dict[str, Any]:
        """The timeline of a small problem on two GPUs."""
        self.call_right(*self.small, "--gpus", "2", *arguments, "--timeline", "trace.json")
        found: Dict[str, Any] = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))
        return found
