"""What is special about the program 19_reduce_add, an experiment."""
from typing import Any, Dict, Sequence

import dense_program
from program_test_case import ONCE

IN_SLOTS = ("fused", "fused_f32")
ADDED_UP = ("added_up", "added_up_f32")


class Program(dense_program.DenseProgram):
    """Each rank's share of k is a multiple of 8."""

    variants = (*IN_SLOTS, *ADDED_UP)
    help_says = ("in the order of arrival",)
    no_variant = "nccl"
    types: Sequence[str] = ("f16", "bf16")
    sizes = ("--m", "33", "--n", "72", "--k", "96", *ONCE)  # on up to 4 ranks each rank's share of k is a multiple of 8
    tiny_sizes = ("--m", "1", "--n", "8", "--k", "192", *ONCE)  # on 8 ranks, too
    ranks, tiny_ranks = "4", "8"  # the chapter's own tests run other numbers of ranks

    def bits(self, *arguments: str) -> Dict[str, Dict[str, Any]]:
        """The results of the section, by variant."""
        results = self.report("--gpus", "4", *self.small, *arguments)["results"]
        return {result["variant"]: result for result in results if result.get("section") == "bits"}

    def test_errors_and_memory(self) -> None:
        found = self.bits()
        self.assertEqual(tuple(found), self.variants)
        for name, result in found.items():
            with self.subTest(name):
                self.assertLess(0, result["rms_error"])
                self.assertLess(result["rms_error"], result["largest_error"])
                self.assertLess(result["largest_error"], result["bound"])
        for slots, sums in zip(IN_SLOTS, ADDED_UP):
            self.assertLess(found[sums]["memory"], found[slots]["memory"])
        self.assertLess(found["fused"]["bound"], found["added_up"]["bound"])

    def test_only_slots_give_the_same_bits_in_each_call(self) -> None:
        if self.backend != "virtual":
            self.skipTest("needs an order of arrival that is known to change")
        found = self.bits("--schedule", "1")
        for name in IN_SLOTS:
            self.assertEqual(found[name]["different"], 1)
        self.assertGreater(found["added_up"]["different"], 1)

    def test_other_variants_need_not_run(self) -> None:
        self.assertEqual(list(self.bits("--only", "added_up")), ["added_up"])
