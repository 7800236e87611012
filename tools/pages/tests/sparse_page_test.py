#!/usr/bin/env python3
"""Tests of tools/pages/sparse_page.py, with hand-made reports and a stand-in for ./lab plan."""
import json
import pathlib
import re
import sys
import unittest
from typing import Any, Dict, List

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tools" / "results" / "tests")]
from made_reports import file, gradient, rows  # noqa: E402
from tests.programs.support import FolderTest  # noqa: E402
from tools.pages import sparse_page  # noqa: E402

H100 = "NVIDIA H100 80GB HBM3"
STAND_IN = """#!{python}
import json, sys
share = int(sys.argv[sys.argv.index("--entries") + 1]) / 5e6
variants = [dict(chapter=chapter, variant=variant, predicted_us=us, cost=dict(launches=launches, host_waits=4, comparisons=5e9, memory=9))
            for chapter, variant, us, launches in {known}]
winner = "08_sparse_baselines dense_nccl" if share > 0.2 else "15_sparse_beyond contributor_owners"
print(json.dumps(dict(operations=[dict(operation="sparse_all_reduce", winner=winner, variants=variants)])))
"""


def on(gpu: str, run: Dict[str, Any]) -> Dict[str, Any]:
    return {**run, "hardware": {**run["hardware"], "gpu": gpu}}


class SparsePageTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        known = [(step.chapter, step.variant, 8000.0 if "dense" in step.variant else 100.0 if "owners" in step.variant else 2000.0, 100001)
                 for step in sparse_page.STEPS if step.variant != "host_gloo"]
        self.program = self.write("plan", STAND_IN.format(python=sys.executable, known=known))
        self.program.chmod(0o755)
        self.reports: List[Dict[str, Any]] = [file(
            gradient("08_sparse_baselines", gpus=2, dense_nccl=100.0), gradient("09_sparse_v1_nonzero", gpus=2, v1_nonzero=2000.0),
            gradient("14_sparse_v6_tiled", gpus=2, pattern="zipf", v6_ordered=1.0), gradient("14_sparse_v6_tiled", gpus=2, v6_ordered=4.0),
            on(H100, gradient("15_sparse_beyond", gpus=2, dense_nccl=120.0, v6_binary=8.0)),
            gradient("15_sparse_beyond", gpus=2, dense_nccl=110.0, contributor_owners=2.0),
            gradient("13_sparse_v5_kernel", gpus=4, v5_kernel=9.0))]
        peer = gradient("09_sparse_v1_nonzero", gpus=2, v1_nonzero=3000.0, gloo=2500.0)
        del peer["chapter"]
        self.reports[0]["peers"] = [{**peer, "peer": "PyTorch"}]

    def test_one_line_for_each_step_measured_or_not(self) -> None:
        lines = rows(sparse_page.progression(self.program, self.reports))
        self.assertEqual(len(lines), len(sparse_page.STEPS))
        found = {re.sub(r"\[(\d\d)\]\(.*?\)", r"\1", line[0]): line[2:] for line in lines}
        self.assertEqual(found["08 `host_gloo`"], ["-", "-", "-", "-", "-", "-", "2500"])  # PyTorch's Gloo
        self.assertEqual(found["08 `dense_nccl`"], ["-", "4", "-", "9", "25", "100.0", "-"])
        self.assertEqual(found["09 `v1_nonzero`"], ["100,001", "4", "5e9", "9", "500.0", "2000", "3000"])
        self.assertEqual(found["13 `v5_kernel`"][-3:], ["-", "-", "-"])  # on 4 GPUs only
        self.assertEqual(found["14 `v6_ordered`"][-3:], ["1", "4", "-"])  # of the uniform problem
        self.assertEqual(found["15 `v6_binary`"][-3:], ["-", "-", "-"])  # on H100 only

    def test_who_wins_at_which_density(self) -> None:
        lines = rows(sparse_page.density(self.program))
        self.assertEqual([line[0] for line in lines], ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"])
        self.assertEqual(set(lines[2][1:]), {"`contributor_owners` 80 (4)"})
        self.assertEqual(set(lines[-1][1:]), {"`dense_nccl` 1 (4)"})

    def test_the_picture_has_what_was_measured(self) -> None:
        drawn = sparse_page.picture(self.reports)
        self.assertEqual(re.findall(r">(chapter \d\d, H\d00)<", drawn), ["chapter 09, H200", "chapter 14, H200", "chapter 15, H200"])
        self.assertEqual(re.findall(r"<title>dense: (\S+) ms", drawn), ["100.0", "100.0", "110.0"])  # of its run, or of chapter 08
        self.assertIn(">1500<", drawn)  # the rest of version 1
        self.assertEqual(sparse_page.pictures(self.reports), {sparse_page.PICTURE: drawn})
        self.assertEqual(sparse_page.pictures([file(gradient("08_sparse_baselines", gpus=2, dense_nccl=1.0))]), {})


if __name__ == "__main__":
    unittest.main()
