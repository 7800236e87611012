#!/usr/bin/env python3
"""Tests of ./lab bench on a stand-in machine: what is run at which sizes, what becomes of its reports, and what is said when
something fails. The chapters and the peers are small scripts."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Dict, List

from lab_sandbox import PACKAGES, REPOSITORY, Sandbox

sys.path.insert(0, str(REPOSITORY / "tools"))
import bench  # noqa: E402
from bench_plans import lines_of, plans  # noqa: E402
from chapters import Measure, all_chapters  # noqa: E402

# A chapter, or a peer: notes its command line and writes a report of what it was asked for. A file of the sandbox named
# after it makes it fail: the exit status, and what it says.
PROGRAM = '''
import json, os, pathlib, sys, time
sandbox, name, words = pathlib.Path(os.environ["SANDBOX"]), sys.argv[1], sys.argv[2:]
with (sandbox / "calls").open("a") as calls:
    print(name, *words[:words.index("--json")], file=calls)
options = dict(zip((word[2:] for word in words[::2]), words[1::2]))
trouble = sandbox / f"trouble_{name}"
if trouble.exists():
    status, _, text = trouble.read_text().partition(" ")
    print("something\\n" + text)
    sys.exit(int(status))
gpus = int(options.get("gpus", 4))
real = (sandbox / "libcuda").exists()
hardware = {"gpu": "NVIDIA H200" if real else "virtual", "gpus": str(sandbox.joinpath("gpus").read_text()) if real else "4",
            "driver": "580.1", "toolkit": "13.0"}
shape = {size: int(options.get(size, 64)) for size in "mnk"}
def result(variant, role, ms):
    return {"variant": variant, "role": role, "device_ms": ms, "host_ms": ms, "tflops": 700.0, "ratio_to_gemm_only": ms / 0.4,
            "gpus": gpus}
report = {"modelled": not real, "hardware": hardware, "status": "ok", "date": "2026-11-21T10:00:00Z", "commit": "abc-dirty",
          "options": {"gpus": gpus, **shape, "type": "f16"},
          "results": [result("gemm_only", "gemm_only", 0.4), result("slow", "algorithm", 0.6),
                      result("quick", "algorithm", 0.5)]}
if name.endswith("_peer"):
    report.update(peer=name[:-5], version="9", protocol="p", results=[result("fused", "algorithm", 0.55)])
    report["hardware"] = {key: hardware[key] for key in ("gpu", "gpus", "driver")}
    report["options"]["operation"] = options["operation"]
elif name.startswith("01"):
    report["options"]["type"] = "int32"
    report["results"] = [{"variant": "one_gpu", "gpus": 1, "kernel_ms": 16.0, "end_to_end_ms": 20.0},
                         {"variant": "all_gpus", "gpus": gpus, "kernel_ms": 8.0, "end_to_end_ms": 10.0}]
if not name.endswith("_peer"):
    report["chapter"] = name
pathlib.Path(options["json"]).write_text(json.dumps(report))
'''

LADDER = "<!-- ladder dense -->\nold\n<!-- /ladder -->\n"
PYTHON = sys.executable


class BenchTest(Sandbox):
    CHAPTERS = ("01_column_split", "02_gather_then_multiply", "06_reduce_scatter")

    def setUp(self) -> None:
        super().setUp()
        self.install(*PACKAGES)
        for tool in ("bench.py", "bench_ladder.py", "bench_plans.py", "results.py", "result_files.py", "sparse_results.py",
                     "ladder.py", "readme_ladders.py", "blank.py", "bugs.py", "call_index.py", "chapters.py", "update_pages.py",
                     "plot_results.py", "draw_timeline.py"):
            shutil.copy(REPOSITORY / "tools" / tool, self.root / "tools")
        (self.root / "tests" / "mutants").mkdir(parents=True)
        for tool in ("judge.py", "mutate.py"):
            shutil.copy(REPOSITORY / "tests" / "mutants" / tool, self.root / "tests" / "mutants")
        shutil.rmtree(self.root / "chapters")
        self.mark("program.py", PROGRAM)
        for name in self.CHAPTERS:
            (self.root / "chapters" / name).mkdir(parents=True)
            (self.root / "chapters" / name / "main.cu").touch()
            manifest = json.loads((REPOSITORY / "chapters" / name / "chapter.json").read_text())
            (self.root / "chapters" / name / "chapter.json").write_text(json.dumps({**manifest, "builds_on": [], "experiments": []}))
            (self.root / "chapters" / name / "README.md").write_text(f"<!-- results {name} -->\n<!-- /results -->\n")
            self.program(name, f'exec {PYTHON} -IS "$SANDBOX/program.py" {name} "$@"')
        for path, text in (("README.md", LADDER), ("common/virtual_gpu/README.md", "<!-- output 01 -->\n<!-- /output -->\n")):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        for name in ("pytorch_peer", "jax_peer"):
            script = self.root / "tests" / "peers" / f"{name}.py"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(f"import os, sys\nos.execv(sys.executable, [sys.executable, "
                              f"os.environ['SANDBOX'] + '/program.py', '{name}', *sys.argv[1:]])\n")

    def add_gpus(self, count: int) -> None:
        self.add_gpu()
        self.tool("nvidia-smi", "".join(f"echo 'GPU {i}: NVIDIA H200 (UUID: GPU-{i})'\n" for i in range(count)))
        self.mark("gpus", str(count))

    def started(self, name: str) -> List[str]:
        """The command lines of a program, without its name."""
        return [call.split(" ", 1)[1] if " " in call else "" for call in self.calls(name)]

    def result_file(self, count: int) -> Dict[str, Any]:
        return dict(json.loads((self.root / "docs" / "results" / f"h200-x{count}.json").read_text()))


class RealGpusTest(BenchTest):
    def test_sizes_and_peers(self) -> None:
        self.add_gpus(2)
        result = self.lab("bench")
        self.assertEqual(result.returncode, 0, result.stderr)
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
        self.assertIn("| all-gather, GEMM | 1.250 |", (self.root / "README.md").read_text())
        self.assertIn("*pytorch: fused*", (self.root / "chapters/02_gather_then_multiply/README.md").read_text())
        self.assertIn("| 2.00 x |", (self.root / "chapters/01_column_split/README.md").read_text())
        self.assertEqual((self.root / "common/virtual_gpu/README.md").read_text(), "<!-- output 01 -->\n<!-- /output -->\n")
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
        self.lab("bench", "02", "--peers=no")  # its report is still there, and must not pass for a new one
        self.program("02_gather_then_multiply", "true")
        self.assertIn(": no report\n", self.lab("bench", "02").stdout)

    def test_no_gpu_answers(self) -> None:
        self.add_gpus(2)
        self.tool("nvidia-smi", "exit 9")
        result = self.lab("bench", "--backend", "cuda")
        self.assertEqual((result.returncode, result.stdout), (77, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "lab: skipped: no GPU answers (nvidia-smi -L)")


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
        self.assertRegex(self.lab("bench", "--peers=no").stderr, r"bench: 5 programs; 5 of them took \d+ s last time\n")

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
            self.assertIn("| all-gather, GEMM | 1.250 |", (self.root / "README.md").read_text())
            self.assertIn("02 quick *", said)
            name = signal.Signals(number).name
            self.assertIn(f"not run: 06_reduce_scatter --gpus 2 --m 2048 --n 4096 --k 8192: ended by {name}\n", said)
            self.assertIn(f"not run: jax_peer --operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096: ended by {name}\n",
                          said)
            time.sleep(3)
            self.assertFalse((self.sandbox / "alive").exists())
            (self.sandbox / "started").unlink()

    def test_limit_leaves_out_what_took_too_long(self) -> None:
        self.add_gpus(2)
        self.lab("bench", "--peers=no")
        path = self.root / "docs" / "results" / "h200-x2.json"
        held = self.result_file(2)
        self.assertEqual({run["bench"]["seconds"] < 5 for run in held["runs"]}, {True})
        for run in held["runs"]:
            run["bench"]["seconds"] = 1000 if run["chapter"].startswith("02") else 1
        path.write_text(json.dumps(held))
        (self.sandbox / "calls").unlink()
        result = self.lab("bench", "--limit=500")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.started("02_gather_then_multiply"), [])
        self.assertEqual(len(self.started("06_reduce_scatter")), 1)
        self.assertIn("not run: 02_gather_then_multiply --gpus 2 --m 2048 --n 8192 --k 4096: no time left\n", result.stdout)
        self.assertIn("not run: jax_peer --operation all_gather_matmul --gpus 2 --m 2048 --n 8192 --k 4096: "
                      "no chapter has measured this\n", result.stdout)
        self.assertEqual(len(self.started("pytorch_peer")), 1)
        self.assertEqual(len(self.chapters_in(2)), 5)
        self.assertEqual(self.lab("bench", "--limit=0").returncode, 2)

    def test_limit_ends_what_is_not_finished(self) -> None:
        self.add_gpus(2)
        self.tool("sleep", f'exec {shutil.which("sleep")} "$@"')
        self.program("02_gather_then_multiply", "sleep 50")
        result = self.lab("bench", "--limit=3", "--peers=no")
        self.assertEqual(result.returncode, 0, result.stderr)
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

    def test_quick_results_are_marked_and_never_replace_full_ones(self) -> None:
        self.add_gpus(8)
        result = self.lab("bench", "--quick")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.started("02_gather_then_multiply"),
                         ["--gpus 8 --m 8192 --n 32768 --k 4096 --iterations 10 --warmup 2"])
        self.assertEqual(self.started("jax_peer"), ["--operation all_gather_matmul --gpus 8 --m 8192 --n 32768 --k 4096"])
        self.assertEqual(len(self.started("pytorch_peer")), 2)
        self.assertEqual([run["bench"]["quick"] for run in self.result_file(8)["runs"]], [True] * 3)
        self.assertEqual([peer["bench"]["quick"] for peer in self.result_file(8)["peers"]], [False] * 3)
        self.lab("bench", "02", "--gpus=8", "--peers=no")
        full = [run for run in self.result_file(8)["runs"] if run["chapter"].startswith("02")]
        self.assertEqual([run["bench"]["quick"] for run in full], [False] * 3)
        said = self.lab("bench", "02", "--quick", "--peers=no").stderr
        self.assertIn("docs/results holds a full run of this: it stays there\n", said)
        self.assertEqual([run for run in self.result_file(8)["runs"] if run["chapter"].startswith("02")], full)


class VirtualGpusTest(BenchTest):
    def test_own_sizes_and_nothing_written(self) -> None:
        result = self.lab("bench")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in self.CHAPTERS:
            self.assertEqual(self.started(name), [""])
        self.assertEqual(self.started("pytorch_peer"), [])
        self.assertIn("time, us (modelled)", result.stdout)
        self.assertIn("modelled: they show what is faster than what. Nothing was written.", result.stdout)
        self.assertFalse((self.root / "docs").exists())
        self.assertEqual((self.root / "README.md").read_text(), LADDER)

    def test_virtual_although_real_ones_are_here(self) -> None:
        self.add_gpus(2)
        self.lab("bench", "02", "--backend", "virtual")
        self.assertEqual(self.started("02_gather_then_multiply"), [""])


class NamesTest(unittest.TestCase):
    def test_result_files(self) -> None:
        for gpu, name in (("NVIDIA H200", "h200-x8"), ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3-x8")):
            self.assertEqual(bench.file_name({"gpu": gpu, "gpus": "8"}), name)

    def test_a_program_that_hangs_is_ended_with_its_children(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            alive = pathlib.Path(folder) / "alive"
            script = f"(sleep 3; touch {alive}) & wait"
            ended = bench.call(["sh", "-c", script], pathlib.Path(folder) / "log", 1)
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
