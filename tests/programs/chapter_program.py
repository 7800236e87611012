"""What is tested of the program of every chapter, of whatever kind."""
import json
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

import counted
from program_test_case import MOST_RANKS, ONCE, REPOSITORY, ProgramTestCase, up_to_most

sys.path.insert(0, str(REPOSITORY))
from tools import mutants  # noqa: E402
from tools.chapters import Chapter, Experiment, all_chapters  # noqa: E402

NO_NCCL = "skipped: NCCL wants a GPU for each rank, and all ranks share one here"
LEFT_OUT = "is left out: NCCL wants a GPU for each rank"


class ExperimentProgram(ProgramTestCase):
    """The program of an experiment: that it runs, and says what it is. What it measures is the chapter's own to test."""

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
    """A chapter says of its program what differs from the others; where it says nothing, the program's own --list counts."""

    variants: Sequence[str] = ()  # all that --list prints, in order, of a program without a table of its own
    right: Sequence[str] = ()  # those that the sentence on right results names, in order; without it: what the table says
    needs_nccl: Sequence[str] = ()  # those of them that cannot run where ranks share a GPU
    corrupted: Mapping[str, str] = {}  # variant -> a regular expression of what is called wrong; without it: each of `right`
    help_says: Sequence[str] = ()  # words of --help
    no_variant = "nothing"  # that --only refuses: a name of another chapter's
    refused: Mapping[Sequence[str], str] = {}  # command lines, and the sentences
    usual_sizes: str = ""  # of the kind
    kernels: Mapping[str, str] = {}  # variant -> what Call.signature() of its own phases must be; without it nothing is counted
    frame: Mapping[str, str] = {}  # phases that variants share: not in `kernels`, if they have these kernels
    launch_phases: Sequence[str] = ()  # whose launches a cost card counts; without it: all
    counted_call = ""  # sizes and ranks of the call that is counted; without it: the small sizes on three GPUs
    told_apart_by: Sequence[str] = ()  # template parameters that belong to a kernel's name in `kernels`
    sections: Mapping[str, str] = {}  # variant -> its section of the timeline, if that has another name

    @property
    def max_gpus(self) -> int:
        """What --gpus takes at most."""
        return 16

    @property
    def chapter(self) -> Chapter:
        """The manifest of the chapter, or of the one whose experiment this is."""
        chapter = all_chapters().get(self.program.name)
        return chapter or next(each for each in all_chapters().values() if self.experiment_of(each))

    def experiment_of(self, chapter: Chapter) -> Optional[Experiment]:
        """The chapter's experiment whose program this is, if it is one."""
        return next((each for each in chapter.experiments if each.program == self.program.name), None)

    def setUp(self) -> None:
        super().setUp()
        sizes = self.chapter.tests.get("program", {}).get("sizes", self.usual_sizes)
        self.small = (*sizes.split(), *ONCE)

    def all_variants(self) -> List[str]:
        """What --list must print."""
        return list(self.variants) or self.call("--list").stdout.split()

    def table(self) -> List[Dict[str, Any]]:
        """The program's table of variants: what --cost prints of those that --list names; nothing of a program without one."""
        result = self.call("--cost")
        if result.returncode == 2:
            return []
        return [variant for variant in json.loads(result.stdout)["variants"] if variant.get("runs_here", True)]

    def all_right(self) -> List[str]:
        """The variants whose results are compared."""
        results = [variant["variant"] for variant in self.table() if variant["role"] in ("algorithm", "product")]
        return list(self.right) or results or self.all_variants()

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        """What every program of the kind refuses."""
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
        """Nor a machine that could be read, nor sizes that fit into it."""
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
        """The size options, each with its smallest value, which may still be refused for being no multiple."""
        return {"--rows": "1", "--features": "1", "--entries": "0", "--duplicates": "0"} if self.chapter.kind == "sparse" else \
            {"--m": "1", "--n": "1", "--k": "1"}

    def test_defaults_go_together(self) -> None:
        """On any number of GPUs, and with the smallest value of each option that was given alone."""
        if self.backend != "virtual" or self.chapter.name != self.program.name:
            self.skipTest("virtual GPUs are as many as are asked for; an experiment's options are its chapter's")
        table = self.table()
        of_libraries = [card["variant"] for card in table if card.get("cost", {}).get("products") and not card["cost"]["launches"]]
        cheap = ("--only", (of_libraries or [card["variant"] for card in reversed(table)] or self.all_variants())[0], *ONCE)
        tiny = self.machine(memory_mib=1, gpus=8)  # refuses what the options allowed, and computes nothing
        # A gradient's sizes are those of one GPU.
        for gpus in str(MOST_RANKS) if self.chapter.kind == "sparse" else up_to_most("12345678"):
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
        """The rows of --cost for the call that the report is of."""
        result = self.call("--cost", *sizes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {card["variant"]: card for card in json.loads(result.stdout)["variants"]}

    def test_no_report_tells_of_another_variant(self) -> None:
        """Bytes, launches and products of each variant are those of its cost card, its kernels its own, its times not shorter than
        what ran; and no two variants do the same in the same time."""
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
        """What the card says of rank 0 is what its GPU did."""
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
        """The call with the host takes as long as its operations, and a little for launches, barrier and wait; a phase not less than
        its operations on the slowest GPU, the all-reduce on the fastest: before that it waits."""
        ms = result["end_to_end_ms" if "end_to_end_ms" in result else "host_ms"]
        self.assertGreater(ms, 0.99 * call.ms())
        self.assertLess(ms, 1.1 * call.ms() + 0.005)
        for phase in {counted.phase_of(bar) for bar in call.kernels()}:
            if f"{phase}_ms" in result:
                longest = min(call.ms_of(phase)) if phase == "all_reduce" else max(call.ms_of(phase))
                self.assertGreaterEqual(result[f"{phase}_ms"], 0.95 * longest, phase)

    def test_mutants_and_manifest_name_variants_that_there_are(self) -> None:
        """In the command lines of bench, pictures, tests and mutants."""
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
