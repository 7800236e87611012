"""Tests that the programs of all sparse chapters pass. Their common options are tested with chapter 08."""
from typing import Any, Dict, List, Sequence, Tuple

from chapter_program import NO_NCCL, ChapterProgram
from program_test_case import MOST_RANKS, up_to_most

PATTERNS = ("zipf", "identical", "disjoint")
# A table of a single row, on 8 ranks; one of two rows; and empty gradients.
FEW = (("--gpus", "8", "--rows", "1", "--features", "1", "--entries", "1", "--duplicates", "0"),
       ("--gpus", "3", "--rows", "2", "--features", "1", "--entries", "1", "--duplicates", "0"),
       ("--gpus", "3", "--rows", "20", "--features", "3", "--entries", "0", "--duplicates", "0"))

MOVING = ("coalesce", "scatter", "gather", "sum", "all_reduce", "fetch")  # phases whose kernels loop over rows


class SparseProgram(ChapterProgram):
    """Sizes are --rows, --features and --entries."""

    usual_sizes = "--rows 97 --features 5 --entries 23 --duplicates 4"
    help_says = ("--rows", "--features", "--entries", "--duplicates", "--pattern", "--index")
    right_says = ""  # added to the usual sentence
    # Coalescing, and the exchange of row numbers: those of versions 1 to 6.
    frame = {"coalesce": "cub::DeviceRadixSort::SortPairs cub::DeviceRunLengthEncode::Encode cub::DeviceScan::ExclusiveSum "
                         "number_entries sum_entries",
             "local_indices": "ncclAllReduce",
             "global_indices": "cub::DeviceRadixSort::SortKeys cub::DeviceSelect::Unique group ncclBroadcast"}
    launch_phases = ("map", "all_reduce", "fetch")  # for steps 1 and 2 the cards count only waits and bytes
    phases: Sequence[str] = ("fill_ms", "map_ms", "all_reduce_ms", "skew_ms")  # of each version

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        return {**super().refused_by_all(),
                ("--type", "int32"): "--type: 'int32' is not a type of this chapter",
                ("--m", "5"): "--m: unknown option",
                ("--pattern", "random"): "--pattern: 'random' is not known",
                ("--index", "int32", "--rows", "2147483648"): "--index: int32 cannot number so many --rows"}

    def command_lines(self) -> List[Tuple[str, ...]]:
        """All numbers of ranks, types, patterns and index types."""
        own: List[Tuple[str, ...]] = [("--gpus", gpus) for gpus in up_to_most("12348")]
        own += [("--gpus", "3", "--type", kind) for kind in ("f16", "bf16")]
        own += [("--gpus", "3", "--type", kind, "--index", "int64") for kind in ("f16", "bf16", "f32")]
        own += [("--gpus", "4", "--pattern", pattern) for pattern in (*PATTERNS, "uneven")]
        own += [("--gpus", "3", "--pattern", pattern, "--index", "int64") for pattern in PATTERNS]
        return [*((*self.small, *arguments) for arguments in own), *((*few, *self.small[-4:]) for few in FEW if up_to_most(few[1]))]

    def test_sizes_types_and_patterns(self) -> None:
        for arguments in self.command_lines():
            with self.subTest(arguments):
                given, text = dict(zip(arguments[::2], arguments[1::2])), self.call_right(*arguments).stdout
                self.assertRegex(text, rf"(?m)^all \d+ rows of {given['--features']} elements are right: "
                                       rf"{', '.join(self.all_right())}$")
                self.assertIn(f", rows numbered in {given.get('--index', 'int32')}; ", text)
                self.assertIn(f" ({given.get('--pattern', 'uniform')}, {self.backend})", text)
                self.assertIn(self.right_says, text)

    def test_sizes_on_sixteen_ranks(self) -> None:
        """Twice as many ranks as in the other tests."""
        if MOST_RANKS < 8 or self.chapter.name != self.program.name:
            self.skipTest("not in the quick tests; an experiment's algorithms are its chapter's")
        self.need_gpus(16)
        self.assertIn(f"are right: {', '.join(self.all_right())}", self.call_right("--gpus", "16", *self.small).stdout)

    def test_wrong_result(self) -> None:
        for variant in self.corrupted or self.all_right():
            with self.subTest(variant):
                self.assert_fails(1, (*self.small, "--corrupt", "--gpus", "2", "--only", variant, "--json", "new.json"),
                                  rf"wrong result.*{variant}.*row.*column")

    def test_more_ranks_than_gpus(self) -> None:
        shared = ("--machine", self.machine(gpus=2), "--gpus", "3", *self.small)
        result = self.assert_fails(77, (*shared, "--only", ",".join(self.all_right())), NO_NCCL)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_rows_are_shared_out_among_blocks(self) -> None:
        """Eight rows take about as long as one, because the modelled GPU has eight SMs."""
        if self.backend != "virtual" or self.chapter.name != self.program.name:
            self.skipTest("in the model; an experiment's algorithms are its chapter's")
        if not self.kernels:
            self.skipTest("the chapter names no kernels")
        sizes = "--rows 64 --features 64 --duplicates 0 --pattern identical --entries"
        self.assert_shared_out(f"{sizes} 1", f"{sizes} 8", MOVING)

    def cards(self, report: Dict[str, Any], *sizes: str) -> Dict[str, Dict[str, Any]]:
        """Cost cards of the drawn rows, because --cost does not know the duplicates."""
        given, rows = list(sizes), next(result["global_rows"] for result in report["results"] if "global_rows" in result)
        at = given.index("--duplicates")
        return super().cards(report, *given[:at], *given[at + 2:], "--global", str(rows))

    def assert_calls(self, report: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
        """The results of whole calls, by variant."""
        self.assertEqual(report["options"]["entries"], int(self.small[self.small.index("--entries") + 1]))
        results = {result["variant"]: result for result in report["results"] if result.get("role") == "algorithm"}
        self.assertEqual(list(results), self.all_right())
        for name, result in results.items():
            self.assertGreater(result["host_ms"], 0)
            for phase in self.phases if name.startswith("v") else ():
                self.assertGreaterEqual(result[phase], 0)
        return results

    def test_json(self) -> None:
        self.assert_calls(self.report_of())
