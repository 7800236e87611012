"""Tests that the programs of all dense chapters pass."""
from typing import Any, Dict, List, Sequence

from chapter_program import LEFT_OUT, NO_NCCL, ChapterProgram
from program_test_case import MOST_RANKS


class DenseProgram(ChapterProgram):
    """Sizes are --m, --n and --k."""

    usual_sizes = "--m 33 --n 37 --k 19"  # no multiples
    one_block_and_eight: Sequence[str] = ()  # sizes on two GPUs: work for one block of each own kernel, and for at least eight
    timed: Sequence[str] = ()  # variants in the table after gemm_only; unset: all

    def refused_by_all(self) -> Dict[Sequence[str], str]:
        return {**super().refused_by_all(),
                ("--type", "int32"): f"--type: 'int32' is not a type of this chapter .known: {', '.join(self.types)}.",
                ("--n", "0"): "--n: 0 is not between", ("--k", "0"): "--k: 0 is not between"}

    def are_right(self, *names: str) -> str:
        """The sentence that these results are right, and no others."""
        return f"elements are right: {', '.join(names or self.all_right())}\n"

    def test_sizes_and_types(self) -> None:
        self.assert_right_on_all_sizes_and_types(self.are_right())

    def test_sizes_on_sixteen_ranks(self) -> None:
        """Twice as many ranks as in the other tests."""
        if MOST_RANKS < 8 or self.chapter.name != self.program.name:
            self.skipTest("not in the quick tests; an experiment's algorithms are its chapter's")
        self.need_gpus(16)
        sizes = ("--m", "16", "--n", "128", "--k", "128", *self.small[-4:])
        self.assertIn(self.are_right(), self.call_right("--gpus", "16", *sizes).stdout)

    def test_wrong_result(self) -> None:
        self.assert_corruption_is_found(self.corrupted or {name: name for name in self.all_right()})

    def test_more_ranks_than_gpus(self) -> None:
        left = [name for name in self.all_right() if name not in self.needs_nccl]
        for gpus in (2, 1):
            shared = ("--machine", self.machine(gpus=gpus), "--gpus", "5", *self.small)
            if self.needs_nccl:
                result = self.assert_fails(77, (*shared, "--only", ",".join(self.needs_nccl)), NO_NCCL)
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertNotRegex(result.stdout, "elements are right|TFLOP")
            if left:
                text = self.call_right(*shared).stdout
                for name in self.needs_nccl:
                    self.assertRegex(text, rf"(?m)^{name} {LEFT_OUT}")
                self.assertIn(self.are_right(*left), text)
                self.assertIn("all on one GPU", text)

    def assert_timed(self, report: Dict[str, Any]) -> List[Dict[str, Any]]:
        """Returns the results outside sections: gemm_only, then the timed variants, in order. On real GPUs a mode of NCCL may
        be skipped."""
        skipped = [result["variant"] for result in report["results"] if result.get("status") == "skipped"]
        if self.backend == "virtual":
            self.assertEqual(skipped, [])
        results = [result for result in report["results"] if "section" not in result and "status" not in result]
        self.assertEqual([result["variant"] for result in results],
                         ["gemm_only", *(name for name in self.timed or self.all_variants() if name not in skipped)])
        for result in results:
            self.assertGreater(result["device_ms"], 0)
        return results

    def test_json(self) -> None:
        if self.needs_nccl:
            self.need_gpus(2)
        for result in self.assert_timed(self.report_of()):
            if result["role"] == "algorithm" and self.backend == "virtual":  # modelled times are deterministic
                self.assertGreater(result["ratio_to_gemm_only"], 1)

    def test_elements_are_shared_out_among_blocks(self) -> None:
        """Eight blocks' work takes about as long as one block's, because the modelled GPU has eight SMs."""
        if self.backend != "virtual" or not self.one_block_and_eight:
            self.skipTest("in the model, of kernels that take elements or rows")
        self.assert_shared_out(*self.one_block_and_eight)

    def test_schedules(self) -> None:
        self.assert_same_seed_same_schedule("5")
