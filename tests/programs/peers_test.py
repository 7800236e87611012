#!/usr/bin/env python3
"""Tests of what the scripts of tests/peers share, with fake workers, and of the scripts where the measured framework is
missing."""
import importlib.util
import math
import os
import subprocess
import sys
import time
import unittest
from typing import Any, Dict, List, Sequence
from unittest import mock

from support import REPOSITORY, FolderTest
PEERS = REPOSITORY / "tests" / "peers"
sys.path.insert(0, str(PEERS))
import jax_peer  # noqa: E402
import peer  # noqa: E402
import pytorch_peer  # noqa: E402

CASE = peer.Case("all_gather_matmul", 2, 2048, 8192, 4096, 20, 1, 20.0)


def work(rank: int, case: peer.Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """A worker that behaves as the variants' names say."""
    del case, port
    progress.version("1.0")
    for variant in variants:
        if variant == "early" and rank == 0:
            time.sleep(1000)  # rank 1 fails before rank 0 has reported the variant's start
        progress.starts(variant)
        if variant == "early":
            raise ValueError("no luck")
        if variant == "hangs" and rank == 1:
            time.sleep(1000)
        if variant == "throws" and rank == 1:
            raise ValueError("no\nluck")
        if variant == "dies" and rank == 1:
            os._exit(9)
        if variant in ("hangs", "throws", "dies"):
            time.sleep(1000)  # like a rank whose partner has died
        progress.measured(variant, peer.Times([7.0, 1.0, 2.0], [0.5, 4.0, 1.0], [4.0, 9.0, 3.0], {"note": os.getpid()}))


def absent(rank: int, case: peer.Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """A worker whose framework is missing."""
    raise peer.NotRun("there is no such thing")


def broken(rank: int, case: peer.Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """A worker that fails before its first variant."""
    raise OSError("no library")


class MeasureTest(unittest.TestCase):
    def measure(self, *variants: str, limit_s: float = 20.0, worker: peer.Work = work) -> Dict[str, Dict[str, Any]]:
        case = peer.Case(*[getattr(CASE, field) for field in ("operation", "gpus", "m", "n", "k", "iterations", "warmup")],
                         limit_s)
        version, results = peer.measure(case, variants, 2, worker)
        self.assertIn(version, ("1.0", ""))
        self.assertEqual(len(results), len(variants))
        return {result["variant"]: result for result in results}

    def test_results(self) -> None:
        results = self.measure("a", "b")
        for result in results.values():
            self.assertEqual({name: result[name] for name in ("device_ms", "device_p99_ms", "gemm_only_ms", "host_ms",
                                                              "ratio_to_gemm_only", "role", "gpus")},
                             {"device_ms": 2.0, "device_p99_ms": 7.0, "gemm_only_ms": 1.0, "host_ms": 4.0,
                              "ratio_to_gemm_only": 2.0, "role": "algorithm", "gpus": 2})
            self.assertAlmostEqual(result["tflops"], 2 * 2048 * 8192 * 4096 / 2 / 2e-3 / 1e12)
        self.assertEqual(results["a"]["note"], results["b"]["note"])  # one process measured both

    def test_the_others_are_measured(self) -> None:
        for variant, reason in (("throws", "ValueError: no luck"), ("early", "ValueError: no luck"),
                                 ("dies", "a process ended with status 9")):
            results = self.measure("a", variant, "b")
            self.assertEqual(results[variant], {"variant": variant, "status": "failed", "reason": reason})
            self.assertEqual([results[name]["device_ms"] for name in "ab"], [2.0, 2.0])

    def test_a_variant_that_hangs_is_ended(self) -> None:
        started = time.monotonic()
        results = self.measure("a", "hangs", "b", limit_s=8.0)
        self.assertEqual(results["hangs"]["reason"], "not finished after 8 s")
        self.assertIn("device_ms", results["b"])
        self.assertLess(time.monotonic() - started, 60)

    def test_a_start_that_fails_fails_all(self) -> None:
        results = self.measure("a", "b", worker=broken)
        self.assertEqual([result["reason"] for result in results.values()], ["OSError: no library"] * 2)

    def test_not_run(self) -> None:
        with self.assertRaisesRegex(peer.NotRun, "no such thing"):
            self.measure("a", worker=absent)


class ReportTest(unittest.TestCase):
    RESULTS: List[Dict[str, Any]] = [{"variant": "a", "device_ms": 0.2, "device_p99_ms": 0.3, "tflops": 500.0,
                                      "ratio_to_gemm_only": 2.0, "gemm_only_ms": 0.1},
                                     {"variant": "b", "status": "failed", "reason": "it hangs"}]

    def test_gemm_only_is_what_was_measured_beside_the_variants(self) -> None:
        first = peer.gemm_only_result(self.RESULTS, CASE)[0]
        self.assertEqual((first["role"], first["device_ms"], first["ratio_to_gemm_only"]), ("gemm_only", 0.1, 1.0))
        self.assertEqual(peer.gemm_only_result(self.RESULTS[1:], CASE), [])

    def test_report(self) -> None:
        with mock.patch.dict(os.environ, {"NCCL_ALGO": "Ring", "HOME_OF": "nobody"}):
            report = peer.report("PyTorch", "events", "2.11", {"gpu": "x", "gpus": "2"}, CASE.options(), self.RESULTS)
        self.assertEqual(report["options"], {"operation": "all_gather_matmul", "gpus": 2, "m": 2048, "n": 8192, "k": 4096,
                                             "type": "f16", "iterations": 20, "warmup": 1})
        self.assertEqual((report["status"], report["modelled"], report["environment"]["NCCL_ALGO"]), ("ok", False, "Ring"))
        self.assertNotIn("HOME_OF", report["environment"])
        self.assertEqual(peer.report("x", "", "", {}, CASE.options(), self.RESULTS[1:])["status"], "failed")

    def test_table(self) -> None:
        lines = peer.table(self.RESULTS).splitlines()
        self.assertRegex(lines[1], r"^a +200\.0 +300\.0 +500 +2\.000 x$")
        self.assertRegex(lines[2], r"^b +failed: it hangs$")

    def test_percentile(self) -> None:
        self.assertEqual([peer.percentile([3, 1, 2], percent) for percent in (0, 50, 99)], [1, 2, 3])
        self.assertEqual(peer.percentile(range(1, 201), 99), 198)

    def test_a_result_has_the_99th_percentile_not_the_largest(self) -> None:
        times = peer.Times([float(i) for i in range(1, 201)], [1.0], [], {})
        self.assertEqual(times.result("a", CASE)["device_p99_ms"], 198)

    def test_flops_of_a_rank(self) -> None:
        for operation, products in (("all_gather_matmul", 1), ("matmul_reduce_scatter", 1), ("mlp_block", 2)):
            self.assertEqual(peer.Case(operation, 4, 8, 16, 32, 20, 1, 1.0).flops(), products * 2 * 8 * 16 * 32 / 4)

    def test_shares(self) -> None:
        CASE.require_even_shares()
        with self.assertRaisesRegex(peer.NotRun, "--n 7 is not a multiple of 2 GPUs"):
            peer.Case("mlp_block", 2, 4, 7, 4, 20, 1, 1.0).require_even_shares()

    def test_kernels_over_gpus(self) -> None:
        kernels = [("gather", 1.0), ("product", 5.0), ("gather", 3.0), ("product", 4.0)]
        self.assertEqual(jax_peer.over_gpus(kernels, 2), (8.0, 5.0))
        with self.assertRaisesRegex(RuntimeError, "1 launches of gather on 2 GPUs"):
            jax_peer.over_gpus([("gather", 1.0)], 2)

    def test_jax_names_the_parts_that_are_wrong(self) -> None:
        right = [[[0.0001, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]]  # by GPU: errors and reference, each by shard
        self.assertEqual(jax_peer.wrong_parts(right), "")
        for square, part, whole in ((0.09, "0.3", "0.15"), (float("nan"), "inf", "inf")):
            right[1][0][0] = square
            self.assertEqual(jax_peer.wrong_parts(right), f"wrong result, relative error {whole}; columns of a GPU by rows of a "
                                                          f"shard of A: GPU 1 shard 0 {part}")

    def test_jax_leaves_out_tilings_whose_result_is_wrong(self) -> None:
        class Problem:
            def gemm_only(self) -> Any:
                return lambda: ("right", [])

            def pallas(self, tiling: Any) -> Any:
                wrong = tiling[1] == 8  # the wrong one is the faster one
                return lambda: ("wrong" if wrong else "right", [("kernel", 1.0 if wrong else 2.0)] * 2)

            def require_right(self, result: str, expected: str) -> None:
                if result != expected:
                    raise jax_peer.WrongResult("wrong result, here")
        case = peer.Case("all_gather_matmul", 2, 256, 256, 64, 20, 5, 10)
        self.assertEqual(jax_peer.best_tiling(Problem(), case)[1], 16)
        with mock.patch.object(jax_peer, "TILINGS", [("M", 8, "M")]):
            with self.assertRaisesRegex(RuntimeError, "no tiling is right: WrongResult: wrong result, here"):
                jax_peer.best_tiling(Problem(), case)


class Number:
    """The operations on a one-element tensor that the script uses."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __truediv__(self, other: "Number") -> "Number":
        return Number(self.value / other.value)

    def item(self) -> float:
        return self.value


class Matrix:
    """A tensor of two elements."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def float(self) -> "Matrix":
        return self

    def fill_(self, value: float) -> None:
        self.values = [value] * len(self.values)

    def __sub__(self, other: "Matrix") -> "Matrix":
        return Matrix(*(one - two for one, two in zip(self.values, other.values)))

    def norm(self) -> Number:
        return Number(math.hypot(*self.values))


class FakeTorch:
    """Records what is enqueued. `others`: another rank's values in the next all-reduce."""

    def __init__(self, others: Any = None) -> None:
        self.log: List[str] = []
        self.others = others
        self.distributed, self.cuda = self, self
        self.ReduceOp = mock.Mock(MAX="max")
        self.float64 = "float64"

    def Event(self, enable_timing: bool) -> Any:
        name = f"event {sum(line.startswith('new') for line in self.log)}"
        self.log.append(f"new {name}")
        return mock.Mock(record=lambda: self.log.append(name), elapsed_time=lambda end: 1.5)

    def zeros(self, *_: Any, **__: Any) -> Any:
        return "token"

    def tensor(self, rows: Any, **_: Any) -> Any:
        held = mock.Mock(rows=rows)
        held.tolist = lambda: held.rows
        return held

    def _sleep(self, _: int) -> None:
        self.log.append("sleep")

    def synchronize(self) -> None:
        self.log.append("synchronise")

    def barrier(self) -> None:
        self.log.append("barrier")

    def all_reduce(self, values: Any, op: str = "sum") -> None:
        self.log.append(f"all_reduce {op}")
        if op == "max" and isinstance(values, Number):
            values.value = values.value if math.isnan(values.value) else max(values.value, self.others)
        elif op == "max":
            values.rows = [[max(pair) for pair in zip(*two)] for two in zip(values.rows, self.others)]


class PyTorchTest(unittest.TestCase):
    """pytorch_peer.py with a fake PyTorch that records its calls."""

    def test_the_device_time_is_that_of_the_call_behind_the_gate(self) -> None:
        torch = FakeTorch()
        clock = pytorch_peer.Clock(torch)
        torch.log.clear()
        self.assertEqual(clock.device_ms(lambda: torch.log.append("call"), 1.0), 1.5)
        self.assertEqual(torch.log, ["sleep", "all_reduce sum", "event 0", "call", "event 1", "synchronise"])
        torch.log.clear()
        clock.host_ms(lambda: torch.log.append("call"))
        self.assertEqual(torch.log, ["barrier", "synchronise", "call", "synchronise"])

    def test_samples_are_the_slowest_ranks_without_the_warm_up(self) -> None:
        others = [[100.0, 0.0], [0.0, 0.0], [0.0, 300.0]]  # of GEMM only, of the variant, with the host
        numbers = iter(range(1, 100))
        clock = mock.Mock(enqueue_ms=lambda _: 1.0, device_ms=lambda call, _: 10.0 * next(numbers) + call(),
                          host_ms=lambda call: 10.0 * next(numbers) + call())
        case = peer.Case("all_gather_matmul", 2, 8, 8, 8, 2, 1, 1.0)
        with mock.patch.object(pytorch_peer, "Clock", lambda _: clock):
            times = pytorch_peer.times_of(FakeTorch(others), case, lambda: 1, lambda: 2)
        # The first three samples warm up: 11, 22, 32. Then 41, 52, 62 and 71, 82, 92.
        self.assertEqual((times.gemm_only_ms, times.device_ms, times.host_ms), ([100.0, 71.0], [52.0, 82.0], [62.0, 300.0]))

    def test_a_result_is_right_on_all_ranks_or_refused(self) -> None:
        expected = Matrix(3.0, 4.0)

        def call(*values: float) -> Any:
            """A call that writes these values; without values it writes nothing."""
            result = Matrix(3.0, 4.0)

            def once() -> Matrix:
                result.values = list(values) or result.values
                return result
            return once
        pytorch_peer.require_right(FakeTorch(0.0), "a", call(3.0, 4.0), expected)
        pytorch_peer.require_right(FakeTorch(0.0), "a", call(3.0, 4.05), expected)
        for others, values in ((0.0, (3.0, 4.5)), (0.0, (math.nan, 4.0)), (0.5, (3.0, 4.0)), (0.0, ())):
            with self.subTest((others, values)), self.assertRaisesRegex(RuntimeError, "a: wrong result"):
                pytorch_peer.require_right(FakeTorch(others), "a", call(*values), expected)


class ScriptTest(FolderTest):
    """The scripts themselves, on a PATH without a GPU."""

    def setUp(self) -> None:
        super().setUp()
        self.script("nvidia-smi", "exit 9")

    def call(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Runs Python; `more`: environment variables."""
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                              env={**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin", **more}, check=False)

    def test_not_run(self) -> None:
        sizes = ["--m", "64", "--n", "64", "--k", "64"]
        for script, module, name, arguments in (("pytorch_peer.py", "torch", "PyTorch", sizes), ("jax_peer.py", "jax", "JAX", sizes),
                                                ("pytorch_sparse_peer.py", "torch", "PyTorch", [])):
            done = self.call(str(PEERS / script), *arguments)
            reason = "no GPU answers (nvidia-smi)" if importlib.util.find_spec(module) else f"{name} is not installed"
            self.assertEqual((done.returncode, done.stdout, done.stderr), (77, f"not run: {reason}\n", ""))

    def test_too_few_gpus_and_uneven_shares(self) -> None:
        program = ("import sys; import peer;"
                   "sys.exit(peer.run_peer('X', '', '', {'mlp_block': ['a']}, lambda: None, lambda case: 1, None))")
        self.script("nvidia-smi", "echo NVIDIA H200, 580.1\necho NVIDIA H200, 580.1")
        for gpus, m, visible, sentence in (("4", "8", "", "4 GPUs asked for, 2 here"),
                                           ("2", "8", "0", "2 GPUs asked for, 1 here"),
                                           ("2", "7", "", "--m 7 is not a multiple of 2 GPUs")):
            done = self.call("-c", program, "--gpus", gpus, "--m", m, "--n", "8", "--k", "8",
                             PYTHONPATH=str(PEERS), CUDA_VISIBLE_DEVICES=visible)
            self.assertEqual((done.returncode, done.stdout), (77, f"not run: {sentence}\n"), done.stderr)

    def test_unusable_options(self) -> None:
        for arguments in (["--m", "0", "--n", "1", "--k", "1"], ["--m", "1"], ["--operation", "sort"]):
            self.assertEqual(self.call(str(PEERS / "pytorch_peer.py"), *arguments).returncode, 2)
        for more in (["--entries", "9", "--rows", "8"], ["--only", "v7"], ["--gpus", "0"]):
            self.assertEqual(self.call(str(PEERS / "pytorch_sparse_peer.py"), *more).returncode, 2)

    def test_no_switch_of_multicast_is_set_to_on(self) -> None:
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(PEERS.glob("*.py")))
        self.assertNotIn("NVLS", text)
        self.assertEqual(text.count("MULTICAST"), 1)
        self.assertIn('os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")', text)


if __name__ == "__main__":
    unittest.main()
