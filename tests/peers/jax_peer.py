#!/usr/bin/env python3
"""Measures JAX: its collective matmul kernel (Pallas, Mosaic GPU), best of a few tilings, and NCCL all-gather + cuBLAS.

One process for all GPUs. Times are those of kernels, from CUPTI through JAX's own profiler: for each kernel the fastest GPU's,
summed without gaps between kernels, as JAX itself reports them. The GPUs do not start together, and a kernel that waits for
another GPU is longer by that GPU's delay: the slowest GPU's sum, device_max_ms in the report, includes the delay, and the time
on which all ranks agree lies between the two.

On more than 2 GPUs the kernel of JAX 0.11.2 can be wrong, so each call's result is verified. The kernel counts the signals of
all steps of its ring in one semaphore; a block without a tile signals step 1 before its GPU's other blocks have sent step 0,
and the receiver, whose count is then reached, multiplies rows that have not arrived. Seen on 4 x H200, driver 580.159.04, with
128 tiles for 132 multiprocessors: with one GPU delayed inside the kernel, GPU 2 had wrong rows of shard 0 in 8 of 8 calls. With
a semaphore for each step, and no other change, all calls were right.
"""
import functools
import importlib.util
import itertools
import math
import os
import statistics
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

import peer

OPERATIONS: Dict[str, Sequence[str]] = {
    "all_gather_matmul": ("nccl_all_gather_and_matmul", "pallas_collective_matmul"),
}
PROTOCOL = "sum of kernel times by CUPTI, minimum over GPUs as JAX reports it, median; interleaved with GEMM only"
TOLERANCE = 0.02   # relative, in the Frobenius norm
TUNING_RUNS = 3    # of each tiling; the fastest is then measured in full

# A part of the list in JAX's own example: the dimension whose tiles come next, the width of a group of tiles, and the dimension
# along which two warpgroups are placed. Tiles are 128 x 128 x 64 for each warpgroup, with 4 stages.
TILINGS = [(minor, width, warps) for warps in "MN" for minor in "MN" for width in (8, 16)]

Kernels = List[Tuple[str, float]]  # a kernel's name and its milliseconds, for each launch on each GPU


def require_jax() -> None:
    """Does not import JAX: the worker does, after it has chosen its GPUs."""
    if importlib.util.find_spec("jax") is None:
        raise peer.NotRun("JAX is not installed")


def over_gpus(kernels: Kernels, gpus: int) -> Tuple[float, float]:
    """The sums over kernels of the slowest and of the fastest GPU's time. The profiler does not name a launch's GPU, so the
    launches of a name are sorted by time: every GPU has equally many."""
    by_name: Dict[str, List[float]] = {}
    for name, milliseconds in kernels:
        by_name.setdefault(name, []).append(milliseconds)
    slowest = fastest = 0.0
    for name, times in by_name.items():
        if len(times) % gpus:
            raise RuntimeError(f"{len(times)} launches of {name} on {gpus} GPUs")
        each = len(times) // gpus
        times.sort()
        slowest += sum(times[-each:])
        fastest += sum(times[:each])
    return slowest, fastest


class Problem:
    """The matrices on all GPUs, and the measured functions."""

    def __init__(self, case: peer.Case) -> None:
        import jax
        import jax.numpy as jnp
        from jax.experimental.mosaic.gpu import profiler
        self._jax, self._jnp, self._profiler, self._case = jax, jnp, profiler, case
        spec = self._spec = jax.sharding.PartitionSpec
        jax.set_mesh(jax.make_mesh((case.gpus,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,)))
        a = jax.random.normal(jax.random.key(1), (case.m, case.k), jnp.float16)
        b = jax.random.normal(jax.random.key(2), (case.k, case.n), jnp.float16)
        self._whole_a = jax.sharding.reshard(a, spec(None, None))
        self._a = jax.sharding.reshard(a, spec("x", None))
        self._b = jax.sharding.reshard(b, spec(None, "x"))
        self._squares = self._squares_by_gpu()

    def _sharded(self, function: Callable[[Any, Any], Any]) -> Any:
        shard_map = self._jax.shard_map(function, out_specs=self._spec(None, "x"), check_vma=False)
        return self._jax.jit(shard_map)

    def gemm_only(self) -> Callable[[], Tuple[Any, Kernels]]:
        """The GEMM alone."""
        return self._measured(self._sharded(lambda a, b: a @ b), self._whole_a)

    def nccl(self) -> Callable[[], Tuple[Any, Kernels]]:
        """XLA's all-gather, which is NCCL's, and the GEMM."""
        lax = self._jax.lax
        return self._measured(self._sharded(lambda a, b: lax.all_gather(a, "x", axis=0, tiled=True) @ b), self._a)

    def pallas(self, tiling: Tuple[str, int, str]) -> Callable[[], Tuple[Any, Kernels]]:
        """The collective matmul kernel with this tiling."""
        from jax.experimental.pallas.ops.gpu import collective_matmul_mgpu as kernels
        minor, width, warps = tiling
        dimension = kernels.MatmulDimension
        config = kernels.TuningConfig(tile_m=128, tile_n=128, tile_k=64, max_concurrent_steps=4,
                                      grid_minor_dim=dimension[minor], grid_tile_width=width,
                                      wg_dimension=dimension[warps])
        function = functools.partial(kernels.all_gather_lhs_matmul, axis_name="x", config=config,
                                     dtype=self._jnp.float16)
        return self._measured(self._sharded(function), self._a)

    def _measured(self, function: Any, a: Any) -> Callable[[], Tuple[Any, Kernels]]:
        inputs = (a, -a)  # alternating signs, so that stale rows of the previous call have the wrong sign
        calls = itertools.count()

        def once() -> Tuple[Any, Kernels]:
            odd = next(calls) % 2
            result, kernels = self._profiler.measure(function, aggregate=False)(inputs[odd], self._b)
            if not kernels:
                raise RuntimeError("the profiler saw no kernel")
            return -result if odd else result, kernels
        return once

    def _squares_by_gpu(self) -> Any:
        """The sums of squares of a result's error and of the reference, on each GPU and for the rows of each shard of A."""
        jnp, gpus = self._jnp, self._case.gpus

        def squares(c: Any, reference: Any) -> Any:  # on one GPU
            c, reference = (x.astype(jnp.float32).reshape(gpus, -1) for x in (c, reference))
            return jnp.stack([jnp.sum((c - reference) ** 2, axis=1), jnp.sum(reference ** 2, axis=1)])[None]
        return self._jax.jit(self._jax.shard_map(squares, out_specs=self._spec("x"), check_vma=False))

    def require_right(self, result: Any, expected: Any) -> None:
        """Compares a result with GEMM only. Throws WrongResult."""
        text = wrong_parts(self._jax.device_get(self._squares(result, expected)).tolist())
        if text:
            raise WrongResult(text)


class WrongResult(RuntimeError):
    """A wrong result; the text says where."""


def wrong_parts(squares: Sequence[Sequence[Sequence[float]]]) -> str:
    """The wrong parts as a sentence; empty if the result is right. `squares`: by GPU, the sums of squares over each shard's
    rows, of the error and of the reference."""
    def relative(error: float, reference: float) -> float:
        return math.sqrt(error / reference) if reference > 0 and error == error else math.inf
    whole = relative(sum(map(sum, (error for error, _ in squares))), sum(map(sum, (reference for _, reference in squares))))
    parts = [(gpu, shard, relative(*pair)) for gpu, both in enumerate(squares) for shard, pair in enumerate(zip(*both))]
    wrong = [f"GPU {gpu} shard {shard} {error:.3g}" for gpu, shard, error in parts if not error <= TOLERANCE]
    if not wrong:
        return ""
    return f"wrong result, relative error {whole:.3g}; columns of a GPU by rows of a shard of A: {', '.join(wrong)}"


def best_tiling(problem: Problem, case: peer.Case) -> Tuple[str, int, str]:
    """The fastest of TILINGS, without those that do not fit (shape, shared memory) or give a wrong result."""
    expected = problem.gemm_only()()[0]
    times: Dict[Tuple[str, int, str], float] = {}
    reason = "no tiling was tried"
    for tiling in TILINGS:
        try:
            run = problem.pallas(tiling)
            slowest = []
            for _ in range(TUNING_RUNS):
                result, kernels = run()
                problem.require_right(result, expected)
                slowest.append(over_gpus(kernels, case.gpus)[0])
            times[tiling] = min(slowest)
        except (ValueError, NotImplementedError, WrongResult) as error:
            reason = peer.sentence(error)
    if not times:
        raise RuntimeError(f"no tiling is right: {reason}")
    return min(times, key=lambda tiling: times[tiling])


def times_of(problem: Problem, case: peer.Case, run: Callable[[], Tuple[Any, Kernels]]) -> peer.Times:
    """Times of the variant and GEMM only, interleaved."""
    gemm_only = problem.gemm_only()
    expected = gemm_only()[0]
    device, slowest, gemm = [], [], []
    for i in range(case.warmup + case.iterations):
        alone, (result, kernels) = over_gpus(gemm_only()[1], case.gpus), run()
        problem.require_right(result, expected)
        if i >= case.warmup:
            slow, fast = over_gpus(kernels, case.gpus)
            gemm.append(alone[0])
            device.append(fast)
            slowest.append(slow)
    return peer.Times(device, gemm, [], {"device_max_ms": statistics.median(slowest), "kernels": len(kernels)})


def choose_gpus(gpus: int) -> None:
    """Call it before JAX is imported: JAX must see only the GPUs that it uses, because the kernel works over all of them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = visible.split(",") if visible else [str(gpu) for gpu in range(gpus)]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(chosen[:gpus])


def work(rank: int, case: peer.Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """The single worker process."""
    del rank, port
    choose_gpus(case.gpus)
    import jax
    if jax.default_backend() != "gpu" or jax.device_count() != case.gpus:
        raise peer.NotRun(f"JAX sees {jax.device_count()} devices of kind {jax.default_backend()}")
    progress.version(jax.__version__)
    problem = Problem(case)
    for variant in variants:
        progress.starts(variant)
        more: Dict[str, Any] = {}
        run = problem.nccl
        if variant == "pallas_collective_matmul":
            tiling = best_tiling(problem, case)
            more["tiling"] = "minor {}, width {}, warp groups along {}".format(*tiling)
            run = functools.partial(problem.pallas, tiling)
        times = times_of(problem, case, run())
        times.more.update(more)
        progress.measured(variant, times)


if __name__ == "__main__":
    sys.exit(peer.run_peer("JAX", PROTOCOL, __doc__ or "", OPERATIONS, require_jax, lambda case: 1, work))
