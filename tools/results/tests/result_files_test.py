#!/usr/bin/env python3
"""Tests of keeping and comparing measurements (tools/results/results.py, tools/results/result_files.py), and of
tools/results/collect_results, with hand-made reports."""
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import unittest
from typing import Any, Dict
from unittest import mock

from made_reports import file, gradient, peer, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.results import result_files  # noqa: E402
from tools.results import results  # noqa: E402
from tools.results import sparse_results  # noqa: E402


class ProblemTest(unittest.TestCase):
    """The keys that distinguish measurements: runs that differ in them are both kept, and are not compared with each other."""

    def assert_apart(self, one: Dict[str, Any], part: str, name: str, value: Any) -> None:
        other = copy.deepcopy(one)
        other[part][name] = value
        with self.subTest(f"{one.get('chapter') or one['peer']}: {name}"):
            self.assertEqual(results.newest([one, copy.deepcopy(one)]), [one])
            self.assertEqual(results.newest([one, other]), [one, other])

    def test_dense(self) -> None:
        for name, value in {"m": 1, "n": 1, "k": 1, "type": "bf16", "gpus": 3}.items():
            self.assert_apart(run(), "options", name, value)
            self.assert_apart(peer(), "options", name, value)
        for report in (run(), peer()):
            self.assert_apart(report, "hardware", "gpu", "NVIDIA H100")
        self.assert_apart(peer(), "options", "operation", "mlp_block")

    def test_gradients(self) -> None:
        one = gradient("14_sparse_v6_tiled", dense_nccl=8.0)
        for name, value in {"rows": 1, "features": 1, "entries": 1, "duplicates": 1, "pattern": "zipf", "index": "int64",
                            "type": "f16", "gpus": 3}.items():
            self.assert_apart(one, "options", name, value)
            other = gradient("08_sparse_baselines", dense_nccl=2.0)
            other["options"][name] = value
            self.assertEqual(sparse_results.times_dense(one, one["results"][0], [one, other]), 1.0, name)
        self.assert_apart(one, "hardware", "gpu", "NVIDIA H100")

    def test_which_dense_run_counts(self) -> None:
        one = gradient("14_sparse_v6_tiled", v6_ordered=1.0)
        old, new = gradient("08_sparse_baselines", dense_nccl=2.0), gradient("12_sparse_v4_broadcast_eq", dense_nccl=3.0)
        old["date"], new["date"] = "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"
        for runs in ([one, old, new], [new, old, one]):
            self.assertEqual(sparse_results.times_dense(one, one["results"][0], runs), 3.0)
        new["hardware"]["gpus"] = "3"  # another machine
        self.assertEqual(sparse_results.times_dense(one, one["results"][0], [old, new]), 2.0)
        both = gradient("14_sparse_v6_tiled", v6_ordered=1.0, dense_nccl=4.0)
        both["date"] = "2026-11-20T00:00:00Z"
        self.assertEqual(sparse_results.times_dense(both, both["results"][0], [both, old]), 4.0)

    def test_settings_of_nccl(self) -> None:
        one = run()
        one["results"][0]["settings"] = "default"
        other = copy.deepcopy(one)
        other["results"][0]["settings"] = "NCCL_P2P_DISABLE=1"
        self.assertEqual(results.newest([one, other]), [one, other])

    def test_peers_are_those_of_the_same_type(self) -> None:
        other = peer()
        other["options"]["type"] = "bf16"
        self.assertEqual(results.peers_of(run(), [other, peer()]), [peer()])

    def test_a_file_holds_each_measurement_once(self) -> None:
        parts = file(run(commit="a"), run(commit="b"), run(gpus=2, commit="c"))
        result_files.merge(parts, file(run(commit="d")))
        self.assertEqual([each["commit"] for each in parts["runs"]], ["d", "c"])

    def test_profiles_of_each_size(self) -> None:
        def profile(chapter: str, size: str, value: float) -> Dict[str, Any]:
            return {"chapter": chapter, "size": size, "kernel": "k", "metrics": {"x": {"value": value, "unit": ""}}}
        parts = {"runs": [], "peers": [], "profiles": [profile("01", "n-8192", 1), profile("01", "n-8191", 1)]}
        result_files.merge(parts, {"profiles": [profile("01", "n-8191", 2), profile("02", "n-8192", 2)]})
        self.assertEqual([(each["chapter"], each["size"], each["metrics"]["x"]["value"]) for each in parts["profiles"]],
                         [("01", "n-8192", 1), ("01", "n-8191", 2), ("02", "n-8192", 2)])


class CollectTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "tools" / "results").mkdir(parents=True)
        for tool in ("chapters.py", "results/collect_results", "results/results.py", "results/result_files.py", "results/sparse_results.py"):
            shutil.copy(REPOSITORY / "tools" / tool, self.folder / "tools" / tool)

    def collect(self, *reports: Dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        paths = [self.write(f"{i}.json", json.dumps(report)) for i, report in enumerate(reports)]
        command = [sys.executable, str(self.folder / "tools" / "results" / "collect_results"), "h200-x8"]
        return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)

    def collected(self) -> Dict[str, Any]:
        return dict(json.loads((self.folder / "docs" / "results" / "h200-x8.json").read_text()))

    def test_unfinished_and_modelled_runs_are_refused(self) -> None:
        for report in ({**peer(), "status": "failed"}, {**run(), "modelled": True}):
            done = self.collect(run(), report)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "1.json: not a finished run on real GPUs")
            self.assertFalse((self.folder / "docs").exists())

    def test_what_measured_the_same_is_replaced_and_only_that(self) -> None:
        self.collect(run(), run("04_copy_engine"), peer(), peer(gpus=2), peer("JAX"))
        held = self.collected()
        held["profiles"] = [{"chapter": "01_column_split", "size": "n-8192"}]
        (self.folder / "docs" / "results" / "h200-x8.json").write_text(json.dumps(held))
        self.assertEqual(self.collect(run(commit="def"), run(gpus=4, commit="def"), peer(device_ms=0.4)).returncode, 0)
        after = self.collected()
        self.assertEqual([(each["chapter"], each["options"]["gpus"], each["commit"]) for each in after["runs"]],
                         [("04_copy_engine", 8, "abc"), ("05_two_streams", 8, "def"), ("05_two_streams", 4, "def")])
        self.assertEqual([(each["peer"], each["options"]["gpus"], each["results"][1]["device_ms"]) for each in after["peers"]],
                         [("PyTorch", 8, 0.4), ("PyTorch", 2, 0.425), ("JAX", 8, 0.425)])
        self.assertEqual(len(after["profiles"]), 1)

    def test_a_profile(self) -> None:
        self.collect(run())
        table = self.write("01_column_split-n-8192.csv",
                           '"Kernel Name","Metric Name","Metric Unit","Metric Value"\n"k(int)","x.sum","ns","1,024"\n')
        tool = [sys.executable, str(self.folder / "tools" / "results" / "collect_results"), "h200-x8", str(table)]
        for _ in range(2):
            subprocess.run(tool, check=True)
        self.assertEqual(self.collected()["profiles"], [{"chapter": "01_column_split", "size": "n-8192", "kernel": "k(int)",
                                                         "metrics": {"x.sum": {"value": 1024.0, "unit": "ns"}}}])
        self.assertEqual(len(self.collected()["runs"]), 1)

    def test_a_file_is_whole_or_as_before(self) -> None:
        self.collect(run())
        with mock.patch.object(pathlib.Path, "replace", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                result_files.save(self.folder / "docs" / "results" / "h200-x8.json", file())
        self.assertEqual(len(self.collected()["runs"]), 1)
        self.assertEqual(len(results.load(self.folder / "docs" / "results")), 1)  # a temporary file is no result


if __name__ == "__main__":
    unittest.main()
