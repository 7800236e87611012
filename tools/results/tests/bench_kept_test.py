#!/usr/bin/env python3
"""Tests of the reports that ./lab bench keeps, on a stand-in machine: after an early end, and next to earlier runs' results."""
import json
import shutil
import signal
import subprocess
import time
import unittest
from typing import List

from bench_sandbox import BenchTest


class EndedEarlyTest(BenchTest):
    def chapters_in(self, count: int) -> List[str]:
        return [run["chapter"] for run in self.result_file(count)["runs"]]

    def test_each_result_is_kept_at_once(self) -> None:
        self.add_gpus(2)
        self.program("06_reduce_scatter", 'cp "$(dirname "$0")/../../../docs/results/h200-x2.json" "$SANDBOX/seen"')
        self.lab("bench", "--peers=no")
        seen = json.loads((self.sandbox / "seen").read_text())
        self.assertEqual([run["chapter"] for run in seen["runs"]], ["01_column_split"] * 3 + ["02_gather_then_multiply"])

    def test_progress(self) -> None:
        self.add_gpus(2)
        said = self.lab("bench", "--peers=no").stderr
        self.assertRegex(said, r"bench: 5 programs\n")
        self.assertRegex(said, r"bench: 1 of 5 done, \d+ s so far; left: 01_column_split x 2, 02_gather_then_multiply, "
                               r"06_reduce_scatter\n")
        self.assertRegex(said, r"bench: 5 of 5 done, \d+ s so far\n")

    def test_a_signal_ends_the_program_and_what_is_there_is_published(self) -> None:
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            self.add_gpus(2)
            self.program("06_reduce_scatter", 'touch "$SANDBOX/started"; (sleep 3; touch "$SANDBOX/alive") & wait')
            self.tool("touch", f'exec {shutil.which("touch")} "$@"')
            self.tool("sleep", f'exec {shutil.which("sleep")} "$@"')
            with subprocess.Popen([str(self.root / "lab"), "bench"], cwd=self.root, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=self.variables()) as running:
                while not (self.sandbox / "started").exists():
                    time.sleep(0.05)
                running.send_signal(number)
                said = running.communicate(timeout=30)[0]
            self.assertEqual(running.returncode, status)
            self.assertEqual(self.chapters_in(2), ["01_column_split"] * 3 + ["02_gather_then_multiply"])
            self.assertIn("| all-gather, GEMM | `quick` | 1.250 |", (self.root / "README.md").read_text())
            self.assertIn("02 quick *", said)
            name = signal.Signals(number).name
            self.assertIn(f"not run: 06_reduce_scatter --gpus 2 --m 2048 --n 4096 --k 8192: ended by {name}\n", said)
            self.assertIn(f"not run: jax_peer --operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096: ended by {name}\n",
                          said)
            time.sleep(3)
            self.assertFalse((self.sandbox / "alive").exists())
            (self.sandbox / "started").unlink()

    def test_limit_ends_what_is_not_finished(self) -> None:
        self.add_gpus(2)
        self.tool("sleep", f'exec {shutil.which("sleep")} "$@"')
        self.program("02_gather_then_multiply", "sleep 50")
        result = self.succeed("bench", "--limit=3", "--peers=no")
        self.assertRegex(result.stdout, r"not run: 02_gather_then_multiply .*: not finished after \d s, then the time was over\n")
        self.assertIn("06_reduce_scatter --gpus 2 --m 2048 --n 4096 --k 8192: no time left\n", result.stdout)

    def test_a_wrong_result_is_one_also_with_a_limit(self) -> None:
        self.add_gpus(2)
        self.mark("trouble_02_gather_then_multiply", "1 wrong")
        self.assertEqual(self.lab("bench", "--limit=100", "--peers=no").returncode, 1)


class ReplacingTest(BenchTest):
    def test_only_the_same_command_line_is_replaced(self) -> None:
        self.add_gpus(8)
        self.lab("bench", "02", "--peers=no")
        held = self.result_file(8)
        for run in held["runs"]:
            run["commit"] = "old"
        (self.root / "docs" / "results" / "h200-x8.json").write_text(json.dumps(held))
        self.lab("bench", "02", "--peers=no", "--gpus=4,8")
        self.assertEqual([(run["options"]["gpus"], run["commit"]) for run in self.result_file(8)["runs"]],
                         [(2, "old"), *[(count, "abc-dirty") for count in (4, 8, 8, 8)]])

    def test_quick_measures_one_line_of_each_and_keeps_nothing(self) -> None:
        self.add_gpus(8)
        result = self.succeed("bench", "--quick")
        self.assertEqual(self.started("02_gather_then_multiply"),
                         ["--gpus 8 --m 8192 --n 32768 --k 4096 --iterations 10 --warmup 2"])
        self.assertEqual(self.started("jax_peer"), ["--operation all_gather_matmul --gpus 8 --m 8192 --n 32768 --k 4096"])
        self.assertEqual(len(self.started("pytorch_peer")), 2)
        self.assertIn("02 quick *", result.stdout)
        self.assertFalse((self.root / "docs").exists())
        self.assertEqual(self.lab("bench", "--quick", "--limit=0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
