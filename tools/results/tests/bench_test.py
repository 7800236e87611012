#!/usr/bin/env python3
"""Tests of ./lab bench on a stand-in machine: programs and sizes that run, what happens to their reports, and messages on
failures."""
import sys
import time
import unittest

from bench_sandbox import LADDER, BenchTest
from tools.lab.tests.lab_sandbox import REPOSITORY, FolderTest

sys.path.insert(0, str(REPOSITORY))
from tools.results import bench  # noqa: E402
from tools.results.bench_plans import lines_of, plans  # noqa: E402
from tools.chapters import Measure, all_chapters  # noqa: E402


class RealGpusTest(BenchTest):
    def test_sizes_and_peers(self) -> None:
        self.add_gpus(2)
        self.succeed("bench")
        self.assertEqual(self.started("01_column_split"), [
            "--gpus 2 --m 4096 --n 8192 --k 1024", "--gpus 2 --m 4096 --n 8191 --k 1024", "--gpus 1 --m 4096 --n 4096 --k 1024"])
        self.assertEqual(self.started("02_gather_then_multiply"), ["--gpus 2 --m 2048 --n 8192 --k 4096"])
        self.assertEqual(self.started("06_reduce_scatter"), ["--gpus 2 --m 2048 --n 4096 --k 8192"])
        self.assertEqual(self.started("pytorch_peer"), ["--operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096",
                                                        "--operation matmul_reduce_scatter --gpus 2 --m 2048 --n 4096 --k 8192"])
        self.assertEqual(self.started("jax_peer"), ["--operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096"])

    def test_eight_gpus(self) -> None:
        self.add_gpus(8)
        self.assertEqual(self.lab("bench", "02").returncode, 0)
        self.assertEqual(self.started("02_gather_then_multiply"), [
            "--gpus 2 --m 2048 --n 8192 --k 4096", "--gpus 4 --m 4096 --n 16384 --k 4096", "--gpus 8 --m 8192 --n 32768 --k 4096",
            "--gpus 8 --m 8192 --n 28672 --k 8192", "--gpus 8 --m 8192 --n 49152 --k 12288"])
        self.assertEqual(len(self.result_file(8)["runs"]), 5)
        self.assertEqual(len(self.result_file(8)["peers"]), 10)

    def test_options(self) -> None:
        self.add_gpus(8)
        self.assertEqual(self.lab("bench", "2", "--gpus=4", "--sizes=all", "--peers=no").returncode, 0)
        self.assertEqual(self.started("02_gather_then_multiply"), [
            "--gpus 4 --m 4096 --n 16384 --k 4096", "--gpus 4 --m 8192 --n 14336 --k 8192", "--gpus 4 --m 8192 --n 24576 --k 12288"])
        self.assertEqual(self.started("pytorch_peer"), [])
        self.assertEqual(self.lab("bench", "2", "--peers=perhaps").returncode, 2)
        self.assertEqual(self.lab("bench", "--gpus=8", "--peers=no").returncode, 0)
        self.assertEqual(self.started("06_reduce_scatter")[0], "--gpus 8 --m 8192 --n 4096 --k 32768")

    def test_only_the_gpus_that_are_visible(self) -> None:
        self.add_gpus(8)
        self.lab("bench", "02", "--peers=no", CUDA_VISIBLE_DEVICES="4,5,6")
        self.assertEqual([call.split()[1] for call in self.started("02_gather_then_multiply")], ["2", "3"])

    def test_reports_tables_and_ladder(self) -> None:
        self.add_gpus(2)
        result = self.lab("bench")
        self.assertEqual([run["chapter"] for run in self.result_file(2)["runs"]],
                         ["01_column_split"] * 3 + ["02_gather_then_multiply", "06_reduce_scatter"])
        self.assertIn("| all-gather, GEMM | `quick` | 1.250 |", (self.root / "README.md").read_text())
        self.assertIn("*pytorch: fused*", (self.root / "chapters/02_gather_then_multiply/README.md").read_text())
        self.assertIn("| 2.00 x |", (self.root / "chapters/01_column_split/README.md").read_text())
        self.assertEqual((self.root / "virtual_gpu/README.md").read_text(), "<!-- output 01 -->\n<!-- /output -->\n")
        self.assertIn("01_column_split, 4096 x 8192 x 1024 on 2 x NVIDIA H200: 8.00 ms, 2.00 x one GPU\n", result.stdout)
        block = result.stdout.split("all_gather_matmul 2048 x 8192 x 4096 on 2 x NVIDIA H200\n")[1].splitlines()[1:6]
        self.assertEqual([" ".join(line.split()) for line in block], [
            "GEMM only 400.0 700 1.000 1.000", "02 slow 600.0 700 1.500 1.500", "02 quick * 500.0 700 1.250 1.250",
            "pytorch: fused 550.0 700 1.375", "jax: fused 550.0 700 1.375"])
        self.assertIn("measured from sources that are not those of a commit: abc-dirty", result.stdout)

    def test_one_chapter_leaves_the_others_results(self) -> None:
        self.add_gpus(2)
        self.lab("bench")
        self.assertEqual(self.lab("bench", "06").returncode, 0)
        self.assertEqual(len(self.result_file(2)["runs"]), 5)

    def test_a_failure_is_named_and_the_rest_is_measured(self) -> None:
        self.add_gpus(2)
        self.mark("trouble_02_gather_then_multiply", "139 the reason")
        result = self.lab("bench", "--peers=no")
        self.assertEqual(result.returncode, 2)
        self.assertIn("failed: 02_gather_then_multiply --gpus 2 --m 2048 --n 8192 --k 4096: exit status 139: the reason\n",
                      result.stdout)
        self.assertIn("06 quick *", result.stdout)
        self.assertEqual(len(self.result_file(2)["runs"]), 4)

    def test_the_status_is_that_of_the_run(self) -> None:
        self.add_gpus(2)
        for status in (1, 2, 3):
            self.mark("trouble_02_gather_then_multiply", f"{status} the reason")
            self.assertEqual(self.lab("bench", "02").returncode, status)

    def test_a_wrong_result_counts_most(self) -> None:
        self.add_gpus(2)
        self.mark("trouble_02_gather_then_multiply", "3 a deadlock")
        self.mark("trouble_06_reduce_scatter", "1 wrong")
        self.assertEqual(self.lab("bench", "--peers=no").returncode, 1)

    def test_skipped(self) -> None:
        self.add_gpus(2)
        self.mark("trouble_06_reduce_scatter", "77 skipped: no peer access")
        result = self.lab("bench", "--peers=no")
        self.assertEqual(result.returncode, 0)
        self.assertIn("not run: 06_reduce_scatter --gpus 2 --m 2048 --n 4096 --k 8192: skipped: no peer access\n", result.stdout)
        self.assertEqual(self.lab("bench", "06").returncode, 77)

    def test_peers_that_are_not_here_or_fail(self) -> None:
        self.add_gpus(2)
        self.mark("trouble_pytorch_peer", "77 not run: PyTorch is not installed")
        self.mark("trouble_jax_peer", "2 no")
        result = self.lab("bench")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout.count("not run: pytorch_peer: not run: PyTorch is not installed\n"), 1)
        self.assertIn("not run: jax_peer --operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096: no\n", result.stdout)

    def test_a_chapter_that_does_not_build(self) -> None:
        self.add_gpus(2)
        self.mark("broken_02_gather_then_multiply", "no such type")
        result = self.lab("bench", "--peers=no")
        self.assertEqual(result.returncode, 2)
        self.assertIn("failed: 02_gather_then_multiply: does not build\n", result.stdout)
        self.assertEqual(self.started("02_gather_then_multiply"), [])
        self.assertIn("06 quick *", result.stdout)

    def test_no_report(self) -> None:
        self.add_gpus(2)
        self.lab("bench", "02", "--peers=no")  # its old report must not pass for a new one
        self.program("02_gather_then_multiply", "true")
        self.assertIn(": no report\n", self.lab("bench", "02").stdout)

    def test_a_gpu_that_another_program_uses(self) -> None:
        self.add_gpus(2)
        self.tool("nvidia-smi", "case $1 in -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-0)'; echo 'GPU 1: NVIDIA H200 (UUID: GPU-1)';;\n"
                                "*apps*) cat apps;;\n*) cat utilization; [ ! -e later ] || cat later >utilization;; esac")
        for apps, utilization, said in (("", "0, GPU-0, 3\n1, GPU-1, 98\n", "GPU 1 (98 % busy)"),
                                        ("GPU-1, 4711\n", "0, GPU-0, 0\n1, GPU-1, 0\n", "GPU 1 (process 4711)")):
            (self.root / "apps").write_text(apps)
            (self.root / "utilization").write_text(utilization)
            result = self.lab("bench", "02", "--peers=no")
            self.assertEqual((result.returncode, result.stdout, self.started("02_gather_then_multiply")), (2, "", []))
            self.assertIn(f"another program uses {said}, and times would be those of both: end it first\n", result.stderr)
        self.assertEqual(self.lab("bench", "02", "--peers=no", CUDA_VISIBLE_DEVICES="0").returncode, 0)
        (self.root / "apps").write_text("")
        (self.root / "utilization").write_text("0, GPU-0, 98\n1, GPU-1, 0\n")  # of a program that has just ended
        (self.root / "later").write_text("0, GPU-0, 0\n1, GPU-1, 0\n")
        result = self.succeed("bench", "02", "--peers=no")

    def test_no_gpu_answers(self) -> None:
        self.add_gpus(2)
        self.tool("nvidia-smi", "exit 9")
        result = self.lab("bench", "--backend", "cuda")
        self.assertEqual((result.returncode, result.stdout), (77, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "lab: skipped: no GPU answers (nvidia-smi -L)")


class VirtualGpusTest(BenchTest):
    def test_own_sizes_and_nothing_written(self) -> None:
        result = self.succeed("bench")
        for name in self.CHAPTERS:
            self.assertEqual(self.started(name), [""])
        self.assertEqual(self.started("pytorch_peer"), [])
        self.assertIn("time, us (modelled)", result.stdout)
        self.assertIn("x GEMM only, of 5 at once\n", result.stdout)
        self.assertIn("modelled: they show what is faster than what. Nothing was written.", result.stdout)
        self.assertFalse((self.root / "docs").exists())
        self.assertEqual((self.root / "README.md").read_text(), LADDER)

    def test_virtual_although_real_ones_are_here(self) -> None:
        self.add_gpus(2)
        self.lab("bench", "02", "--backend", "virtual")
        self.assertEqual(self.started("02_gather_then_multiply"), [""])


class NamesTest(FolderTest):
    def test_result_files(self) -> None:
        for gpu, name in (("NVIDIA H200", "h200-x8"), ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3-x8")):
            self.assertEqual(bench.file_name({"gpu": gpu, "gpus": "8"}), name)

    def test_a_program_that_hangs_is_ended_with_its_children(self) -> None:
        alive = self.folder / "alive"
        script = f"(sleep 3; touch {alive}) & wait"
        ended = bench.call(["sh", "-c", script], self.folder / "log", 1)
        self.assertEqual(ended, (None, "not finished after 1 s"))
        time.sleep(3)
        self.assertFalse(alive.exists())

    def test_other_chapters_run_at_their_own_sizes(self) -> None:
        self.assertEqual(lines_of(Measure(), [2, 8]), [["--gpus", "2"], ["--gpus", "8"]])

    def test_gradients_run_in_each_pattern(self) -> None:
        usual = [["--gpus", gpus, "--pattern", pattern] for gpus in "28" for pattern in ("uniform", "zipf", "identical")]
        self.assertEqual(plans("13_sparse_v5_kernel", [2, 8]), usual)
        last = plans("14_sparse_v6_tiled", [2, 8])
        self.assertEqual(last[:6], usual)
        self.assertEqual([plan[:4] for plan in last[6:]],
                         [["--gpus", "8", "--entries", entries] for entries in ("5000", "15000", "150000", "500000", "1500000")])
        baselines = plans("08_sparse_baselines", [1, 8])
        self.assertEqual(baselines[0], ["--gpus", "1", "--pattern", "uniform", "--only", "dense_nccl,host_gloo"])
        self.assertEqual(len(baselines), 6)
        self.assertEqual(len(plans("05_two_streams", [2, 4, 8])), 5)
        self.assertEqual(len(plans("05_two_streams", [2, 4, 8], all_sizes=True)), 9)
        self.assertEqual(len(plans("03_ring_all_gather", [2, 4, 8], all_sizes=True)), 3)
        self.assertEqual(plans("07_mlp_block", [2])[0][2:], ["--m", "8192", "--n", "28672", "--k", "8192"])

    def test_experiments_have_lines_of_their_own(self) -> None:
        self.assertEqual(plans("14_rows_per_block", [2, 8]), [["--gpus", "8", "--features", "1"]])
        transports = plans("08_transport", [1, 8])
        self.assertEqual([plan[:3] for plan in transports], [["--gpus", "8", "--rows"], ["NCCL_P2P_DISABLE=1", "--gpus", "8"]])
        self.assertEqual(plans("08_transport", [1, 8], quick=True), [])
        self.assertEqual(plans("05_sweep", [2]), plans("05_two_streams", [2]))

    def test_quick_is_the_first_line_of_each_chapter_on_all_gpus(self) -> None:
        self.assertGreater(len(all_chapters()), 10)
        for name in all_chapters():
            self.assertEqual(plans(name, [2, 4], quick=True), plans(name, [4])[:1], name)


if __name__ == "__main__":
    unittest.main()
