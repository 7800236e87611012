#!/usr/bin/env python3
"""Tests of the tables of measured results (tools/results/results.py, tools/results/ladder.py), with hand-made reports."""
import pathlib
import sys
import types
import unittest
from typing import Any, Dict, List

from made_reports import column_split, file, gradient, peer, result, rows, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY  # noqa: E402
from tools.results import ladder  # noqa: E402
from tools.pages import readme_ladders  # noqa: E402
from tools.results import results  # noqa: E402
from tools.results import sparse_results  # noqa: E402
from tools.pages import update_pages  # noqa: E402


def step(part: int, idea: str, operation: str = "") -> Any:
    """The attributes of a chapter that a ladder reads."""
    return types.SimpleNamespace(part=part, idea=idea, operation=operation)


def whole(chapter: str, *files: Dict[str, Any]) -> str:
    """The table of all sizes, which is in a fold."""
    return ladder.results_table(chapter, list(files)).partition("</summary>\n\n")[2]


class SparseTableTest(unittest.TestCase):
    def test_one_line_for_each_variant_with_its_phases(self) -> None:
        runs = [gradient("14_sparse_v6_tiled", v5=40.0, v6=16.0), gradient("14_sparse_v6_tiled", gpus=2, pattern="zipf", v6=4.0)]
        text = ladder.results_table("14_sparse_v6_tiled", [file(*runs)])
        self.assertIn("| ms | map | fill | all reduce | skew |", text)
        where = ["5000000 x 2048, 50000 uniform", "8", "400000", "386178"]
        self.assertNotIn("<details>", text)  # one problem for each number of GPUs
        self.assertEqual([rows(part) for part in text.split("On 2 x H200:")], [
            [[*where, "`v5`", "40", "10", "0.5", "20", "0.25"],
             [*where, "`v6`", "16", "4", "0.5", "8", "0.25"]],
            [["5000000 x 2048, 50000 zipf", "2", *where[2:], "`v6`", "4", "1", "0.5", "2", "0.25"]]])
        self.assertEqual(rows(ladder.results_table("14_sparse_v6_tiled sweep", [file(runs[0])])), [["8", "1"]])

    def test_further_problems_are_behind_a_fold(self) -> None:
        runs = [gradient("14_sparse_v6_tiled", pattern=pattern, v6=16.0) for pattern in ("uniform", "zipf", "identical")]
        first, _, rest = ladder.results_table("14_sparse_v6_tiled", [file(*runs)]).partition("\n<details><summary>Other gradients</summary>\n\n")
        rest, _, note = rest.partition("\n</details>\n")
        self.assertEqual([[row[0].split()[-1] for row in rows(part)] for part in (first, rest)], [["uniform"], ["zipf", "identical"]])
        self.assertTrue(note.startswith("\nMedian over the calls"), note)

    def test_further_sections_and_numbers_of_gpus_are_behind_a_fold(self) -> None:
        runs = [gradient("14_sparse_v6_tiled", pattern=pattern, v6=16.0) for pattern in ("uniform", "zipf")]
        for argument, reports, shown in [("14_sparse_v6_tiled sweep folded", runs, [["1"], ["1"]]),
                                         ("14_sparse_v6_tiled sweep", runs, [["1"] * 2, []]),
                                         ("01_column_split", [column_split(4, 4.0), column_split(2, 8.0)], [["1", "2"], ["1", "4", "1", "2"]])]:
            parts = ladder.results_table(argument, [file(*reports)]).partition("<details>")[::2]
            self.assertEqual([[row[1] for row in rows(part) if row[1].isdigit()] for part in parts], shown)

    def test_runs_are_in_the_order_of_their_gpus(self) -> None:
        _, lines = sparse_results.table_of([gradient("14_sparse_v6_tiled", gpus=gpus, v6=1.0) for gpus in (16, 8, 2)])
        self.assertEqual([line[1] for line in lines], ["2", "8", "16"])

    def test_times_keep_three_digits(self) -> None:
        self.assertEqual([sparse_results.milliseconds(value) for value in (0.01234, 1.5, 17.53, 223.64, 22800.4)],
                         ["0.0123", "1.5", "17.5", "223.6", "22800"])

    def test_ladder_compares_with_the_dense_one_of_the_same_problem_and_machine(self) -> None:
        other, another = (gradient("08_sparse_baselines", dense_nccl=100.0) for _ in range(2))
        other["hardware"]["gpus"] = "16"
        another["hardware"]["gpu"] = "NVIDIA H100"
        reports = [file(gradient("08_sparse_baselines", dense_nccl=224.0, host=22800.0), gradient("14_sparse_v6_tiled", v5=40.0, v6=16.0)),
                   file(gradient("08_sparse_baselines", pattern="zipf", dense_nccl=1.0), other, another)]
        steps = {name: step(3, "") for name in ("08_sparse_baselines", "14_sparse_v6_tiled")}
        text = readme_ladders.ladder_table("sparse", steps, reports)
        self.assertIn("| chapter | idea | variant | times as fast as dense, 8 x H100 | times as fast as dense, 8 x H200 |\n", text)
        self.assertEqual([row[2:] for row in rows(text)[1:]], [  # "-": not measured on the H100
            ["`v6`", "-", "14.00"], ["`dense_nccl`", "1.00", "1.00"]])
        self.assertEqual(rows(text)[-1][:2], ["*NCCL*", "the all-reduce of the whole table"])
        alone = [file(gradient("14_sparse_v6_tiled", v6=16.0))]
        text = readme_ladders.ladder_table("sparse", {"14_sparse_v6_tiled": step(3, "")}, alone)
        self.assertEqual([row[2:] for row in rows(text)], [["`v6`", ""]])  # nothing to compare with

    def test_the_unit_of_the_ladder_is_no_chapters_variant(self) -> None:
        reports = [file(gradient("08_sparse_baselines", dense_nccl=100.0, host=125.0))]
        text = readme_ladders.ladder_table("sparse", {"08_sparse_baselines": step(3, "")}, reports)
        self.assertEqual([row[2:] for row in rows(text)], [["`host`", "0.80"], ["`dense_nccl`", "1.00"]])

    def test_what_gives_another_result_is_not_the_best(self) -> None:
        """A reduce-scatter leaves the sums with their owners, a fetch transfers only some of them, and 16 bits on the wire
        round them."""
        fastest = gradient("15_sparse_beyond", dense_nccl=100.0, contributor_owners=4.0, owners_bf16=2.0, scatter_fetch=1.5,
                           reduce_scatter=1.0)
        steps = {"15_sparse_beyond": step(3, "")}
        self.assertEqual(rows(readme_ladders.ladder_table("sparse", steps, [file(fastest)]))[0][2:], ["`contributor_owners`", "25.00"])


class DenseTableTest(unittest.TestCase):
    def test_one_line_for_each_variant(self) -> None:
        table = rows(ladder.results_table("05_two_streams", [file(run())]))
        size = ["8192 x 32768 x 4096", "8"]
        self.assertEqual(table, [
            [*size, "`gemm_only`", "360.0", "764 (77 %)", "1.000", "", "1.000", "1.000"],
            [*size, "`all_gather`", "200.0", "343 GB/s", "", "", "", ""],
            [*size, "`copy`", "20.0", "", "", "", "", ""],
            [*size, "`pull`", "440.0", "625", "1.222", "80.0", "1.200", "0.818"],
            [*size, "`ring`", "390.0", "705", "1.083", "30.0", "1.075", "0.923"]])

    def test_first_the_times_and_both_ratios_at_the_first_size(self) -> None:
        other = {**run(), "options": {**run()["options"], "m": 64}}
        runs = [{**each, "chapter": "02_gather_then_multiply"} for each in (run(gpus=1), run(gpus=2), run(), other)]
        text = ladder.results_table("02_gather_then_multiply", [file(*runs, peers=[peer()])])
        first, _, whole = text.partition("<details><summary>All sizes, with rates and exposed times</summary>\n\n")
        self.assertTrue(first.startswith("| variant | 2 x H200: 8192 x 32768 x 4096 | 8 x H200: 8192 x 32768 x 4096 |\n"), first)
        self.assertEqual(rows(first), [
            ["`gemm_only`", "360.0 us", "360.0 us"], ["`all_gather`", "200.0 us", "200.0 us"], ["`copy`", "20.0 us", "20.0 us"],
            ["`pull`", "440.0 us, 1.222 (0.818)", "440.0 us, 1.222 (0.818)"],
            ["`ring`", "390.0 us, 1.083 (0.923)", "390.0 us, 1.083 (0.923)"],
            ["*PyTorch: fused*", "-", "425.0 us, 1.149"], ["*PyTorch: broken*", "-", "failed"]])
        self.assertEqual((whole.count("| `ring` |"), whole.count("PyTorch: fused")), (4, 1))
        self.assertTrue(whole.endswith("\n</details>\n"), whole)
        self.assertIn("Rows in italics are other systems", first)
        self.assertNotIn("italics", ladder.results_table("02_gather_then_multiply", [file(*runs)]))

    def test_of_one_number_of_gpus_all_sizes_come_first(self) -> None:
        other = {**run(), "options": {**run()["options"], "m": 64}}
        self.assertIn("| variant | 8 x H200: 8192 x 32768 x 4096 | 8 x H200: 64 x 32768 x 4096 |\n",
                      ladder.results_table("05_two_streams", [file(run(), other)]))
        self.assertNotIn("<details>", ladder.results_table("05_two_streams", [file(run())]))
        experiment = [{**each, "chapter": "05_two_streams/sizes"} for each in (run(), other)]
        self.assertNotIn("<details>", ladder.results_table("05_two_streams/sizes", [file(*experiment)]))

    def test_stamp_and_peers_versions(self) -> None:
        text = ladder.results_table("02_gather_then_multiply", [file(run("02_gather_then_multiply"), peers=[peer()])])
        self.assertIn("8 x NVIDIA H200, driver 580.1, CUDA 13.0, 2026-11-21, commit abc.", text)
        self.assertIn("other systems on the same machine: PyTorch 2.11 (events; 2026-11-21)", text)
        runs = [run("02_gather_then_multiply", gpus=gpus) for gpus in (2, 4, 8)]
        peers = [peer(gpus=2, date="2026-11-23T11:00:00Z"), peer(gpus=4), peer()]
        self.assertIn("PyTorch 2.11 (events; 2026-11-21, 2026-11-23).", ladder.results_table("02_gather_then_multiply", [file(*runs, peers=peers)]))

    def test_peers_of_the_same_problem_only(self) -> None:
        for chapter, operation, expected in (("02_gather_then_multiply", "all_gather_matmul", True),
                                             ("02_gather_then_multiply", "matmul_reduce_scatter", False),
                                             ("06_reduce_scatter", "matmul_reduce_scatter", True),
                                             ("07_mlp_block", "mlp_block", True), ("07_mlp_block", "all_gather_matmul", False)):
            table = rows(ladder.results_table(chapter, [file(run(chapter), peers=[peer(operation=operation)])]))
            self.assertEqual(len(table), 7 if expected else 5, (chapter, operation))
        first = "02_gather_then_multiply"
        table = rows(ladder.results_table(first, [file(run(first), peers=[peer(), peer(gpus=4)])]))
        self.assertEqual(table[5:], [
            ["8192 x 32768 x 4096", "8", "*PyTorch: fused*", "425.0", "647", "1.149", "55.0", "", ""],
            ["8192 x 32768 x 4096", "8", "*PyTorch: broken*", "failed", "", "", "", "", ""]])
        other = peer()
        other["hardware"]["gpu"] = "NVIDIA H100"
        self.assertEqual(len(rows(ladder.results_table(first, [file(run(first), peers=[other])]))), 5)

    def test_peers_stand_once(self) -> None:
        """The first chapter of an operation shows them; the other chapters' pages link there."""
        text = ladder.results_table("05_two_streams", [file(run(), peers=[peer()])])
        self.assertEqual(len(rows(text)), 5)
        self.assertTrue(text.endswith("same sizes: [chapter 02](../02_gather_then_multiply/README.md#measured).\n"), text)
        self.assertNotIn("Other systems", ladder.results_table("16_tensor_core_gemm", [file(run("16_tensor_core_gemm"))]))

    def test_a_peer_that_reports_its_fastest_gpu_has_the_slowest_one_too(self) -> None:
        other = peer("JAX")
        other["results"][1]["device_max_ms"] = 0.5
        first = run("02_gather_then_multiply")
        text = ladder.results_table("02_gather_then_multiply", [file(first, peers=[other, peer()])])
        self.assertEqual([row[3] for row in rows(text) if "fused" in row[2]], ["425.0 to 500.0", "425.0"])
        self.assertTrue(text.endswith("\nJAX: time of the fastest to the slowest GPU; ratio and TFLOP/s of the fastest GPU.\n"), text)
        self.assertNotIn("fastest GPU", ladder.results_table("02_gather_then_multiply", [file(first, peers=[peer()])]))

    def test_a_table_for_each_number_of_gpus(self) -> None:
        runs = [run("02_gather_then_multiply", gpus=gpus) for gpus in (2, 8)]
        text = whole("02_gather_then_multiply", file(*runs, peers=[peer(gpus=2)]))
        most, _, fewer = text.partition("On 2 x H200:\n\n")
        self.assertTrue(most.startswith("On 8 x H200:\n\n| M x N x K |"), text)
        self.assertEqual([row[1] for row in rows(most)], ["8"] * 5)
        self.assertEqual([row[1] for row in rows(fewer)], ["2"] * 7)
        self.assertEqual(text.count("Median over the iterations"), 1)
        self.assertNotIn("On 8 x H200:", ladder.results_table("05_two_streams", [file(run(gpus=8))]))

    def test_a_control_on_one_gpu_and_a_search_for_more_ranks_go_with_the_largest(self) -> None:
        control, search = run(gpus=1), run(gpus=16)
        text = whole("05_two_streams", file(control, run(gpus=2), run(gpus=8), search))
        self.assertEqual([[row[1] for row in rows(part)][::5] for part in text.split("On 2 x H200:")], [["1", "8", "16"], ["2"]])

    def test_a_table_for_each_kind_of_gpu(self) -> None:
        """Two kinds of GPU with equal counts are two machines; results of one kind on a single GPU stay with it."""
        other, control = run(gpus=2), run(gpus=1)
        for each in (other, control):
            each["hardware"] = {**each["hardware"], "gpu": "NVIDIA H100 80GB HBM3"}
        text = whole("05_two_streams", file(other, control), file(run(gpus=2)))
        first, _, second = text.partition("On 2 x H100 80GB HBM3:\n\n")
        self.assertTrue(first.startswith("On 2 x H200:\n\n| M x N x K |"), text)
        self.assertEqual([[row[1] for row in rows(part)][::5] for part in (first, second)], [["2"], ["2", "1"]])
        self.assertIn("8192 x 32768 x 4096 on 2 x H100 80GB HBM3:", ladder.results_table("05_two_streams sweep", [file(other)]))

    def test_of_two_files_the_newest_run(self) -> None:
        old, new = run(ring_ms=0.5), run(ring_ms=0.4, date="2026-11-22T10:00:00Z")
        for files in ([file(old), file(new)], [file(new), file(old)]):
            table = rows(ladder.results_table("05_two_streams", files))
            self.assertEqual([row[3] for row in table if row[2] == "`ring`"], ["400.0"])

    def test_the_command_line_tells_measurements_apart(self) -> None:
        def on(arguments: str, *variants: str) -> Dict[str, Any]:
            one = run(bench={"program": "05_two_streams", "arguments": arguments})
            one["options"]["variants"] = list(variants)
            return one
        both = [on("--gpus 8", "pull"), on("--gpus 8 --only ring", "pull", "ring")]
        self.assertEqual(results.newest(both), both)
        self.assertEqual(len(results.newest([both[0], on("--gpus 8", "pull", "new")])), 1)
        del both[0]["bench"]  # not from ./lab bench: a report with a common variant is the same
        self.assertEqual(len(results.newest(both)), 1)
        both[1]["options"]["variants"] = ["ring"]
        self.assertEqual(len(results.newest(both)), 2)

    def test_other_types_are_named(self) -> None:
        other = run()
        other["options"]["type"] = "bf16"
        self.assertEqual(rows(ladder.results_table("05_two_streams", [file(other)]))[0][0], "8192 x 32768 x 4096, bf16")

    def test_not_run(self) -> None:
        modelled = run()
        modelled["modelled"] = True
        for files in ([], [file()], [file(modelled)], [file(run("04_copy_engine"))]):
            self.assertEqual(ladder.results_table("05_two_streams", files), "Not run on real GPUs yet.\n")


def bench_of(arguments: str) -> Dict[str, Any]:
    """The part of a report that ./lab bench adds."""
    return {"program": "x", "arguments": arguments, "seconds": 1.0}


class SectionTest(unittest.TestCase):
    def test_each_run_has_its_own_lines(self) -> None:
        other = run(gpus=2)
        other["results"][5]["rows"] = 256
        text = ladder.results_table("05_two_streams sweep", [file(run(), other)])
        self.assertEqual([[row[0] for row in rows(part)] for part in text.split("on 2 x H200:")], [["512", "1024"], ["256", "1024"]])

    def test_the_fields_are_the_columns(self) -> None:
        text = ladder.results_table("05_two_streams sweep", [file(run(), run(gpus=2))])
        self.assertEqual(text.count("| rows | device ms | note | extra |"), 2)
        self.assertEqual(rows(text)[:2], [["512", "0.1235", "a", ""], ["1024", "0.2", "", "7"]])
        self.assertIn("8192 x 32768 x 4096 on 2 x H200:", text)
        self.assertIn("commit abc.", text)

    def test_an_experiment_takes_the_place_of_the_chapter(self) -> None:
        """Its program has other variants and another command line, and reports only sections."""
        sweep = [{"section": "sweep", "rows": 64, "device_ms": 0.3}]
        new = run("05_two_streams/sweep", date="2026-11-22T10:00:00Z", results=sweep)
        new["options"] = {**new["options"], "variants": ["sweep"]}
        for order in ((run(), new), (new, run())):
            reports = [file(*({**each, "bench": bench_of(str(i))} for i, each in enumerate(order)))]
            self.assertEqual(rows(ladder.results_table("05_two_streams sweep", reports)), [["64", "0.3"]])
            self.assertEqual(rows(ladder.results_table("05_two_streams waves", reports)), [["256", "algorithm", "1"]])
            self.assertEqual(ladder.results_table("05_two_streams", reports), ladder.results_table("05_two_streams", [file(run())]))
        other = {**new, "options": {**new["options"], "m": 64}}
        self.assertEqual(ladder.results_table("05_two_streams sweep", [file(run(), other)]).count("on 8 x H200:"), 2)

    def test_times_that_are_all_short_are_microseconds(self) -> None:
        short = [{"section": "sweep", "rows": 64, "device_ms": 0.0125, "exposed ms": 0.09, "share": 0.01}]
        text = ladder.results_table("05_two_streams sweep", [file(run(results=short))])
        self.assertIn("| rows | device us | exposed us | share |", text)
        self.assertEqual(rows(text), [["64", "12.5", "90", "0.01"]])
        longer = run(gpus=2, results=[{"section": "sweep", "rows": 64, "device_ms": 0.1}])
        both = ladder.results_table("05_two_streams sweep", [file(run(results=short), longer)])
        self.assertIn("| rows | device ms | exposed ms | share |", both)
        self.assertEqual(rows(both)[0], ["64", "0.0125", "0.09", "0.01"])

    def test_sections_are_apart(self) -> None:
        self.assertEqual(rows(ladder.results_table("05_two_streams waves", [file(run())])), [["256", "algorithm", "1"]])
        self.assertEqual(ladder.results_table("05_two_streams other", [file(run())]), "Not run on real GPUs yet.\n")

    def test_a_variant_that_was_renamed_has_its_new_name_in_its_section_alone(self) -> None:
        saved = run(results=[{"section": section, "variant": "transport", "host_ms": 3.25} for section in ("transport", "sweep")])
        self.assertEqual(rows(ladder.results_table("05_two_streams transport", [file(saved)])), [["nccl", "3.25"]])
        self.assertEqual(rows(ladder.results_table("05_two_streams sweep", [file(saved)])), [["transport", "3.25"]])


class LadderTest(unittest.TestCase):
    STEPS = {"01_column_split": step(1, ""), "05_two_streams": step(2, "an idea", "all_gather_matmul"),
             "14_sparse": step(3, ""), "16_gemm": step(4, "a GEMM")}

    def ladder(self, *files: Dict[str, Any]) -> str:
        return readme_ladders.ladder_table("dense", self.STEPS, list(files))

    def row(self, name: str, *files: Dict[str, Any]) -> List[str]:
        return next(row[3:] for row in rows(self.ladder(*files)) if name in row[0])

    def test_best_algorithm_on_each_number_of_gpus(self) -> None:
        files = [file(run(gpus=2, ring_ms=0.37)), file(run(ring_ms=0.5), column_split(8, 2.0))]
        text = self.ladder(*files)
        self.assertIn("| chapter | idea | computes | variant | x GEMM only, 2 x H200 | x GEMM only, 8 x H200 |\n", text)
        self.assertEqual(self.row("05_two_streams", *files), ["`ring`", "1.028 (0.973)", "1.389 (0.720)"])
        self.assertEqual(self.row("01_column_split", *files), ["", "-", "see below"])
        self.assertIn("\nChapter 01 compares several GPUs with one: 8.00 times as fast on 8 x H200.\n", text)
        self.assertIn("| [`05_two_streams`](chapters/05_two_streams/README.md) | an idea | all-gather, GEMM |", text)
        self.assertEqual(len(rows(text)), 2)

    def test_a_row_shows_one_variant_of_those_that_most_columns_have(self) -> None:
        here, there = run(gpus=2, ring_ms=0.5), run(ring_ms=0.4)  # pull, 0.44, is the fastest one here alone
        self.assertEqual(self.row("05_two_streams", file(here, there)), ["`pull`", "1.222 (0.818)", "1.222 (0.818)"])
        there["results"] = [each for each in there["results"] if each.get("variant") != "pull"]
        here["results"] = [each for each in here["results"] if each.get("variant") != "ring"]
        self.assertEqual(self.row("05_two_streams", file(here, there, run(gpus=4)))[0], "`ring`")
        self.assertEqual(self.row("05_two_streams", file(here, there, run(gpus=4)))[1], "-")

    def test_what_an_earlier_chapter_has_is_not_the_best_of_this_one(self) -> None:
        later = run(chapter="06_reduce_scatter", ring_ms=0.4)
        own = result("own", "algorithm", 0.5, ratio_to_gemm_only=1.4)
        later["results"].append(own)
        best = results.best_algorithm
        self.assertEqual(best(later)["variant"], "ring")
        self.assertIs(best(later, [later, run(ring_ms=0.6)]), own)
        self.assertEqual(best(run(), [later, run()])["variant"], "ring")  # a later chapter removes nothing

    def test_only_its_chapters(self) -> None:
        text = readme_ladders.ladder_table("kernels", self.STEPS, [file(run())])
        self.assertEqual(rows(text), [["[`16_gemm`](chapters/16_gemm/README.md)", "a GEMM", "", "not run"]])
        self.assertTrue(text.startswith("| chapter | idea | variant | x GEMM only |\n"))

    def test_peers_come_last(self) -> None:
        nccl = run(gpus=2)
        nccl["results"] += [result("nccl", "algorithm", 0.6, ratio_to_gemm_only=1.6), result("nccl_other", "algorithm", 0.5, ratio_to_gemm_only=1.5),
                            result("nccl_part", "part", 0.1, ratio_to_gemm_only=0.1)]
        slower = peer(gpus=2)
        slower["results"].append(result("slow", "algorithm", 0.1, ratio_to_gemm_only=1.3))  # its GEMM was faster, too
        text = self.ladder(file(nccl, run(), peers=[slower, peer("JAX"), peer("Other", operation="mlp_block"), peer("Small", gpus=4)]))
        self.assertEqual([row[:1] + row[2:] for row in rows(text)[2:]], [
            ["*NCCL and cuBLAS*", "all-gather, GEMM", "`nccl_other`", "1.500 (0.720)", "-"],
            ["*PyTorch*", "all-gather, GEMM", "`fused`", "1.149", "-"], ["*JAX*", "all-gather, GEMM", "`fused`", "-", "1.149"]])
        self.assertIn("\nOther systems, in italics, on the same machine and sizes: JAX 2.11; PyTorch 2.11.\n", text)
        self.assertNotIn("italics", self.ladder(file(run())))

    def test_the_short_one(self) -> None:
        """One machine, both measures; rows of one result are together; NCCL's is omitted if a chapter has it."""
        second, third = run("02_gather_then_multiply", gpus=2), run("06_reduce_scatter", gpus=2)
        second["results"].append(result("nccl", "algorithm", 0.3, ratio_to_gemm_only=1.5))
        third["results"].append(result("nccl_scatter", "algorithm", 0.9, ratio_to_gemm_only=2.5))
        second["results"] = [each for each in second["results"] if each.get("variant") not in ("ring", "pull")]
        third["results"].append(result("owners", "algorithm", 0.2, ratio_to_gemm_only=1.125))
        steps = {**self.STEPS, "02_gather_then_multiply": step(1, "NCCL", "all_gather_matmul"),
                 "06_reduce_scatter": step(2, "owners", "matmul_reduce_scatter")}
        text = readme_ladders.ladder_table("short", steps, [file(second, third, run(gpus=2), run(gpus=8), peers=[peer(gpus=2)])])
        self.assertTrue(text.startswith("| computes | by | idea | x GEMM only, 2 x H200: one call | of 20 at once |\n"), text)
        self.assertEqual([[row[1].partition("]")[0], *row[3:]] for row in rows(text)], [
            ["[`02_gather_then_multiply`", "1.500", "1.200"], ["[`05_two_streams`", "1.083", "0.923"], ["*PyTorch*", "1.149", "-"],
            ["[`06_reduce_scatter`", "1.125", "1.800"], ["*NCCL and cuBLAS*", "2.500", "0.400"]])
        self.assertNotIn("fastest GPU", text)
        jax = peer("JAX", gpus=2)
        jax["results"][1]["device_max_ms"] = 0.5
        for gpus, noted in ((2, True), (8, False)):  # only the first machine is shown
            text = readme_ladders.ladder_table("short", steps, [file(run(gpus=gpus), run(gpus=8), peers=[jax])])
            self.assertEqual(text.endswith("\n\nJAX: ratio of its fastest GPU.\n"), noted, text)
        self.assertEqual(rows(readme_ladders.ladder_table("short", steps, [file()])), [])

    def test_the_first_size(self) -> None:
        small = run(date="2026-11-22T10:00:00Z", ring_ms=0.1)
        small["options"]["m"] = 1024
        self.assertEqual(self.row("05_two_streams", file(run(), small)), ["`ring`", "1.083 (0.923)"])

    def test_one_gpu_is_a_control(self) -> None:
        alone = column_split(1, 16.0)
        self.assertIn("one: 2.00 times as fast on 2 x H200.", self.ladder(file(column_split(2, 8.0), alone)))
        self.assertNotIn("times as fast", self.ladder(file(alone)))

    def test_of_two_machines_the_newest_run_and_a_note(self) -> None:
        there = run(gpus=2, ring_ms=0.4, date="2026-11-22T10:00:00Z")
        here = run(gpus=2)
        here["hardware"]["gpus"] = "2"
        for files in ([file(here), file(there)], [file(there), file(here)]):
            self.assertEqual(self.row("05_two_streams", *files), ["`ring`", "1.111 (0.900)"])
            self.assertTrue(self.ladder(*files).endswith("\n\nMeasured on several machines, of each command line the newest run "
                                                         "counts: 2 x H200 on machines with 2, 8 GPUs.\n"))
        self.assertNotIn("several machines", self.ladder(file(here)))

    def test_nodes_of_one_process_are_no_network(self) -> None:
        grouped = run(gpus=2)
        grouped["options"]["gpus_per_node"] = 1
        self.assertEqual(self.row("05_two_streams", file(grouped)), ["", "not run"])
        apart = {**grouped, "options": {**grouped["options"], "processes": 2}}
        self.assertEqual(self.row("05_two_streams", file(apart)), ["`ring`", "1.083 (0.923)"])

    def test_without_a_run(self) -> None:
        self.assertEqual(self.row("05_two_streams", file()), ["", "not run"])

    def test_no_such_ladder(self) -> None:
        for name in ("", "all"):
            with self.assertRaisesRegex(update_pages.PageError, "no ladder '.*'; the ladders are: dense, sparse, kernels, latency, short"):
                update_pages.generate("ladder", name)

    def test_committed_reports_still_give_the_committed_tables(self) -> None:
        committed = results.load(REPOSITORY / "docs" / "results")
        page = (REPOSITORY / "chapters" / "01_column_split" / "README.md").read_text(encoding="utf-8")
        self.assertIn(ladder.results_table("01_column_split", committed), page)
        self.assertIn(ladder.profile_table("01_column_split", committed), page)


if __name__ == "__main__":
    unittest.main()
