#!/usr/bin/env python3
"""Tests of the tables of measured results (tools/results.py, tools/ladder.py) and of tools/collect_results, with reports
made by hand."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))
import ladder  # noqa: E402
import results  # noqa: E402
import sparse_results  # noqa: E402

HARDWARE = {"gpu": "NVIDIA H200", "gpus": "8", "driver": "580.1", "toolkit": "13.0", "sm_clock": "1980 MHz"}
SHAPE = {"m": 8192, "n": 32768, "k": 4096}


def result(variant: str, role: str, device_ms: float, **more: Any) -> Dict[str, Any]:
    """One variant's result as a chapter saves it."""
    return {"variant": variant, "role": role, "gpus": 8, "device_ms": device_ms, "host_ms": device_ms + 0.04, **more}


def run(chapter: str = "05_two_streams", gpus: int = 8, commit: str = "abc", date: str = "2026-11-21T10:00:00Z",
        ring_ms: float = 0.39, **more: Any) -> Dict[str, Any]:
    """A chapter's report."""
    return {"chapter": chapter, "modelled": False, "hardware": dict(HARDWARE), "commit": commit, "status": "ok", "date": date,
            "options": {"gpus": gpus, **SHAPE, "type": "f16", "variants": ["pull", "ring"]},
            "results": [
                result("gemm_only", "gemm_only", 0.36, tflops=763.5, percent_of_peak=77.2, ratio_to_gemm_only=1.0),
                result("all_gather", "communication", 0.2, bus_gb_per_s=343.2),
                result("copy", "part", 0.02),
                result("pull", "algorithm", 0.44, tflops=624.7, ratio_to_gemm_only=1.2222, exposed_ms=0.08),
                result("ring", "algorithm", ring_ms, tflops=704.8, ratio_to_gemm_only=ring_ms / 0.36, exposed_ms=ring_ms - 0.36),
                {"section": "sweep", "rows": 512, "device_ms": 0.12345678, "note": "a"},
                {"section": "sweep", "rows": 1024, "device_ms": 0.2, "extra": 7},
                {"section": "waves", "tiles": 256, "role": "algorithm", "device_ms": 0.001}], **more}


def peer(name: str = "PyTorch", operation: str = "all_gather_matmul", gpus: int = 8, date: str = "2026-11-21T11:00:00Z",
         device_ms: float = 0.425) -> Dict[str, Any]:
    """A peer's report."""
    return {"peer": name, "version": "2.11", "modelled": False, "protocol": "events", "status": "ok", "date": date,
            "hardware": {name: HARDWARE[name] for name in ("gpu", "gpus", "driver")},
            "options": {"operation": operation, "gpus": gpus, **SHAPE, "type": "f16"},
            "results": [result("gemm_only", "gemm_only", 0.37, ratio_to_gemm_only=1.0),
                        result("fused", "algorithm", device_ms, tflops=647.0, ratio_to_gemm_only=1.1486, gemm_only_ms=0.37),
                        {"variant": "broken", "status": "failed", "reason": "it hangs"}]}


def gradient(chapter: str, gpus: int = 8, pattern: str = "uniform", **ms: float) -> Dict[str, Any]:
    """A report on sparse gradients: the time of each variant."""
    results = [{"variant": variant, "role": "algorithm", "gpus": gpus, "host_ms": time, "host_p99_ms": time, "calls": 20,
                "rows_of_ranks": 400000, "global_rows": 386178, "map_ms": time / 4, "all_reduce_ms": time / 2, "fill_ms": 0.5,
                "skew_ms": 0.25} for variant, time in ms.items()]
    options = {"gpus": gpus, "rows": 5000000, "features": 2048, "entries": 50000, "duplicates": 0, "pattern": pattern,
               "index": "int32", "type": "f32", "variants": list(ms)}
    return {**run(chapter), "options": options, "results": [*results, {"section": "sweep", "rows_per_block": 8, "map_ms": 1.0}]}


def column_split(gpus: int, kernel_ms: float) -> Dict[str, Any]:
    """A report of chapter 01."""
    both = [{"variant": "one_gpu", "gpus": 1, "kernel_ms": 16.0, "end_to_end_ms": 20.0},
            {"variant": "all_gpus", "gpus": gpus, "kernel_ms": kernel_ms, "end_to_end_ms": 10.0}]
    options = {"gpus": gpus, "m": 4096, "n": 8192, "k": 1024, "type": "int32", "variants": ["one_gpu", "all_gpus"]}
    return {**run("01_column_split"), "options": options, "results": both}


def file(*runs: Dict[str, Any], peers: List[Dict[str, Any]] = []) -> Dict[str, Any]:
    """A file of docs/results."""
    return {"runs": list(runs), "peers": list(peers), "profiles": []}


def rows(table: str) -> List[List[str]]:
    """The cells of a Markdown table's lines below its header."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


class SparseTableTest(unittest.TestCase):
    def test_one_line_for_each_variant_with_its_phases(self) -> None:
        runs = [gradient("14_sparse_v6_tiled", v5=40.0, v6=16.0), gradient("14_sparse_v6_tiled", gpus=2, pattern="zipf", v6=4.0)]
        text = ladder.results_table("14_sparse_v6_tiled", [file(*runs)])
        self.assertIn("| ms | map | fill | all reduce | skew |", text)
        where = ["5000000 x 2048, 50000 uniform", "8", "400000", "386178"]
        self.assertEqual(rows(text), [
            ["5000000 x 2048, 50000 zipf", "2", *where[2:], "`v6`", "4", "1", "0.5", "2", "0.25"],
            [*where, "`v5`", "40", "10", "0.5", "20", "0.25"],
            [*where, "`v6`", "16", "4", "0.5", "8", "0.25"]])
        self.assertEqual(rows(ladder.results_table("14_sparse_v6_tiled sweep", [file(runs[0])])), [["8", "1"]])

    def test_times_keep_three_digits(self) -> None:
        self.assertEqual([sparse_results.milliseconds(value) for value in (0.01234, 1.5, 17.53, 223.64, 22800.4)],
                         ["0.0123", "1.5", "17.5", "223.6", "22800"])

    def test_ladder_compares_with_the_dense_one_of_the_same_problem(self) -> None:
        reports = [file(gradient("08_sparse_baselines", dense_nccl=224.0, host=22800.0), gradient("14_sparse_v6_tiled", v5=40.0, v6=16.0)),
                   file(gradient("08_sparse_baselines", pattern="zipf", dense_nccl=1.0))]
        cells = {row[0].split("`")[1]: row[2:] for row in
                 rows(ladder.ladder_table({"08_sparse_baselines", "14_sparse_v6_tiled"}, reports)) if "`" in row[0]}
        self.assertEqual(cells["14_sparse_v6_tiled"], ["16 ms on 8 x NVIDIA H200", "14.00 x as fast as dense"])
        alone = [file(gradient("14_sparse_v6_tiled", v6=16.0))]
        cells = {row[0].split("`")[1]: row[2:] for row in rows(ladder.ladder_table({"14_sparse_v6_tiled"}, alone)) if "`" in row[0]}
        self.assertEqual(cells["14_sparse_v6_tiled"], ["16 ms on 8 x NVIDIA H200", ""])


class DenseTableTest(unittest.TestCase):
    def test_one_line_for_each_variant(self) -> None:
        table = rows(ladder.results_table("05_two_streams", [file(run())]))
        size = ["8192 x 32768 x 4096", "8"]
        self.assertEqual(table, [
            [*size, "`gemm_only`", "360.0", "764 (77 %)", "1.000", "", "1.000"],
            [*size, "`all_gather`", "200.0", "343 GB/s", "", "", ""],
            [*size, "`copy`", "20.0", "", "", "", ""],
            [*size, "`pull`", "440.0", "625", "1.222", "80.0", "1.200"],
            [*size, "`ring`", "390.0", "705", "1.083", "30.0", "1.075"]])

    def test_stamp_and_peers_versions(self) -> None:
        text = ladder.results_table("05_two_streams", [file(run(), peers=[peer()])])
        self.assertIn("8 x NVIDIA H200, driver 580.1, CUDA 13.0, 2026-11-21, commit abc.", text)
        self.assertIn("other systems on the same machine: PyTorch 2.11 (events; 2026-11-21)", text)

    def test_peers_of_the_same_problem_only(self) -> None:
        for chapter, operation, expected in (("05_two_streams", "all_gather_matmul", True),
                                             ("05_two_streams", "matmul_reduce_scatter", False),
                                             ("06_reduce_scatter", "matmul_reduce_scatter", True),
                                             ("07_mlp_block", "mlp_block", True), ("07_mlp_block", "all_gather_matmul", False)):
            table = rows(ladder.results_table(chapter, [file(run(chapter), peers=[peer(operation=operation)])]))
            self.assertEqual(len(table), 7 if expected else 5, (chapter, operation))
        table = rows(ladder.results_table("05_two_streams", [file(run(), peers=[peer(), peer(gpus=4)])]))
        self.assertEqual(table[5:], [
            ["8192 x 32768 x 4096", "8", "*PyTorch: fused*", "425.0", "647", "1.149", "55.0", ""],
            ["8192 x 32768 x 4096", "8", "*PyTorch: broken*", "failed", "", "", "", ""]])
        other = peer()
        other["hardware"]["gpu"] = "NVIDIA H100"
        self.assertEqual(len(rows(ladder.results_table("05_two_streams", [file(run(), peers=[other])]))), 5)

    def test_a_block_for_each_run(self) -> None:
        table = rows(ladder.results_table("05_two_streams", [file(run(gpus=8), run(gpus=2), peers=[peer(gpus=2)])]))
        self.assertEqual([row[1] for row in table], ["2"] * 7 + ["8"] * 5)

    def test_of_two_files_the_newest_run(self) -> None:
        old, new = run(ring_ms=0.5), run(ring_ms=0.4, date="2026-11-22T10:00:00Z")
        for files in ([file(old), file(new)], [file(new), file(old)]):
            table = rows(ladder.results_table("05_two_streams", files))
            self.assertEqual([row[3] for row in table if row[2] == "`ring`"], ["400.0"])

    def test_other_types_are_named(self) -> None:
        other = run()
        other["options"]["type"] = "bf16"
        self.assertEqual(rows(ladder.results_table("05_two_streams", [file(other)]))[0][0], "8192 x 32768 x 4096, bf16")

    def test_not_run(self) -> None:
        modelled = run()
        modelled["modelled"] = True
        for files in ([], [file()], [file(modelled)], [file(run("04_copy_engine"))]):
            self.assertEqual(ladder.results_table("05_two_streams", files), "Not run on real GPUs yet.\n")


class SectionTest(unittest.TestCase):
    def test_the_fields_are_the_columns(self) -> None:
        text = ladder.results_table("05_two_streams sweep", [file(run(), run(gpus=2))])
        self.assertEqual(text.count("| rows | device ms | note | extra |"), 2)
        self.assertEqual(rows(text)[:2], [["512", "0.1235", "a", ""], ["1024", "0.2", "", "7"]])
        self.assertIn("8192 x 32768 x 4096 on 2 GPUs:", text)
        self.assertIn("commit abc.", text)

    def test_sections_are_apart(self) -> None:
        self.assertEqual(rows(ladder.results_table("05_two_streams waves", [file(run())])), [["256", "algorithm", "0.001"]])
        self.assertEqual(ladder.results_table("05_two_streams other", [file(run())]), "Not run on real GPUs yet.\n")


class LadderTest(unittest.TestCase):
    def row(self, chapter: str, *files: Dict[str, Any]) -> List[str]:
        table = rows(ladder.ladder_table({"01_column_split", "05_two_streams"}, list(files)))
        return next(row[2:] for row in table if f"`{chapter}`" in row[0])

    def test_best_algorithm_on_most_gpus(self) -> None:
        self.assertEqual(self.row("05_two_streams", file(run(gpus=2, ring_ms=0.37)), file(run())),
                         ["390.0 us on 8 x NVIDIA H200", "1.083 x GEMM only"])
        self.assertEqual(self.row("05_two_streams", file(run(ring_ms=0.5)))[0], "440.0 us on 8 x NVIDIA H200")

    def test_chapter_01(self) -> None:
        self.assertEqual(self.row("01_column_split", file(column_split(2, 8.0)), file(column_split(8, 2.0))),
                         ["2.00 ms on 8 x NVIDIA H200", "8.00 x one GPU"])

    def test_without_a_run(self) -> None:
        self.assertEqual(self.row("05_two_streams", file()), ["not run", "not run"])
        self.assertEqual(self.row("06_reduce_scatter", file(run("06_reduce_scatter"))), ["to come", "to come"])

    def test_committed_reports_still_give_the_committed_tables(self) -> None:
        committed = results.load(REPOSITORY / "docs" / "results")
        page = (REPOSITORY / "chapters" / "01_column_split" / "README.md").read_text(encoding="utf-8")
        self.assertIn(ladder.results_table("01_column_split", committed), page)
        self.assertIn(ladder.profile_table("01_column_split", committed), page)


class CollectTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "tools").mkdir()
        for tool in ("collect_results", "results.py", "sparse_results.py"):
            shutil.copy(REPOSITORY / "tools" / tool, self.root / "tools")

    def collect(self, *reports: Dict[str, Any], keep: bool = False) -> "subprocess.CompletedProcess[str]":
        paths = []
        for i, report in enumerate(reports):
            paths.append(self.root / f"{i}.json")
            paths[-1].write_text(json.dumps(report))
        command = [sys.executable, str(self.root / "tools" / "collect_results"), *(["--keep"] if keep else []), "h200-x8"]
        return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)

    def collected(self) -> Dict[str, Any]:
        return dict(json.loads((self.root / "docs" / "results" / "h200-x8.json").read_text()))

    def test_runs_and_peers(self) -> None:
        done = self.collect(run(), peer(), run(gpus=2))
        self.assertEqual((done.returncode, done.stdout), (0, "docs/results/h200-x8.json: 2 runs, 1 of peers\n"), done.stderr)
        self.assertEqual([each["options"]["gpus"] for each in self.collected()["runs"]], [8, 2])
        self.assertEqual(self.collected()["peers"], [peer()])

    def test_refusals(self) -> None:
        other_machine, other_driver, unfinished = run(), peer(), peer()
        other_machine["hardware"]["toolkit"] = "12.4"
        other_driver["hardware"]["driver"] = "570"
        unfinished["status"] = "failed"
        for reports, sentence in (([run(), run(commit="def")], "differ in commit"), ([run(), other_machine], "differ in hardware"),
                                  ([run(), other_driver], "PyTorch has another driver"), ([unfinished], "not a finished run"),
                                  ([{**run(), "modelled": True}], "not a finished run on real GPUs")):
            done = self.collect(*reports)
            self.assertEqual(done.returncode, 1, sentence)
            self.assertRegex(done.stderr, sentence)
            self.assertFalse((self.root / "docs").exists())

    def test_the_clock_may_differ(self) -> None:
        faster = run()
        faster["hardware"]["sm_clock"] = "1 MHz"
        self.assertEqual(self.collect(run(), faster).returncode, 0)

    def test_keep(self) -> None:
        self.collect(run(), run("04_copy_engine"), peer(), peer(gpus=2), peer("JAX"))
        held = self.collected()
        held["profiles"] = [{"chapter": "01_column_split", "size": "n-8192"}]
        (self.root / "docs" / "results" / "h200-x8.json").write_text(json.dumps(held))
        self.assertEqual(self.collect(run(commit="def"), peer(device_ms=0.4), keep=True).returncode, 0)
        after = self.collected()
        self.assertEqual([(each["chapter"], each["commit"]) for each in after["runs"]],
                         [("04_copy_engine", "abc"), ("05_two_streams", "def")])
        self.assertEqual([(each["peer"], each["options"]["gpus"], each["results"][1]["device_ms"]) for each in after["peers"]],
                         [("PyTorch", 2, 0.425), ("JAX", 8, 0.425), ("PyTorch", 8, 0.4)])
        self.assertEqual(len(after["profiles"]), 1)
        self.assertEqual(self.collect(run()).returncode, 0)
        self.assertEqual([len(self.collected()[part]) for part in ("runs", "peers", "profiles")], [1, 0, 0])


if __name__ == "__main__":
    unittest.main()
