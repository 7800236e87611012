#!/usr/bin/env python3
"""Measures PyTorch: NCCL + cuBLAS and its fused operations (async tensor parallelism), each called eagerly and from a CUDA
graph.

One process for each GPU. A call is timed by events of its stream after a gate: a kernel that runs until the host has enqueued
all work, then a small all-reduce that starts all GPUs together. So device times include no launch overhead if the host can run
ahead; the host's time is measured separately, from a barrier to the end of the synchronisation.
"""
import importlib.util
import os
import sys
import time
import warnings
from typing import Any, Callable, Dict, List, Sequence, Tuple

import peer

OPERATIONS: Dict[str, Sequence[str]] = {
    "all_gather_matmul": ("nccl_all_gather_and_matmul_eager", "nccl_all_gather_and_matmul_graph",
                          "fused_all_gather_matmul_eager", "fused_all_gather_matmul_graph"),
    "matmul_reduce_scatter": ("matmul_and_nccl_reduce_scatter_eager", "matmul_and_nccl_reduce_scatter_graph",
                              "fused_matmul_reduce_scatter_eager", "fused_matmul_reduce_scatter_graph"),
    "matmul_all_reduce": ("matmul_and_nccl_all_reduce_eager", "matmul_and_nccl_all_reduce_graph",
                          "matmul_and_one_shot_all_reduce_graph", "matmul_and_two_shot_all_reduce_graph"),
    "mlp_block": ("nccl_mlp_block_eager", "nccl_mlp_block_graph"),
}
PROTOCOL = "device time by events behind a gate, maximum over ranks, median; interleaved with GEMM only"
CLOCK_HZ = 2.0e9  # above the GPUs' clock, so that the gate stays closed a little longer than requested
TOLERANCE = 0.02  # relative, in the Frobenius norm: rounding in f16 stays below, a wrong shard gives about 1

Call = Callable[[], Any]  # enqueues one call and returns its result (a torch.Tensor)


def require_pytorch() -> None:
    """Does not import PyTorch: the workers do."""
    if importlib.util.find_spec("torch") is None:
        raise peer.NotRun("PyTorch is not installed")


def require_fused_operations(torch: Any) -> None:
    """Throws if this PyTorch lacks the fused operations."""
    import torch.distributed._symmetric_memory  # noqa: F401  (defines them)
    for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter"):
        if not hasattr(torch.ops.symm_mem, name):
            raise RuntimeError(f"torch.ops.symm_mem.{name} is not in this PyTorch")


def random_matrix(torch: Any, rows: int, columns: int, scale: float = 1.0) -> Any:
    """Random normals in f16."""
    return (torch.randn(rows, columns, device="cuda", dtype=torch.float32) * scale).half()


def gather_calls(torch: Any, case: peer.Case, group: str) -> Tuple[Call, Dict[str, Call]]:
    """GEMM only, and the variants of all_gather_matmul."""
    dist = torch.distributed
    a_shard = random_matrix(torch, case.m // case.gpus, case.k)
    b = random_matrix(torch, case.k, case.n // case.gpus)
    gathered = a_shard.new_empty(case.m, case.k)
    dist.all_gather_into_tensor(gathered, a_shard)
    whole_a = gathered.clone()
    c, alone_c = (a_shard.new_empty(case.m, case.n // case.gpus) for _ in range(2))

    def gemm_only() -> Any:
        return torch.mm(whole_a, b, out=alone_c)

    def nccl() -> Any:
        dist.all_gather_into_tensor(gathered, a_shard)
        return torch.mm(gathered, b, out=c)

    def fused() -> Any:
        # It also returns the gathered A, as NCCL's all-gather does; otherwise it may use NVLink multicast.
        return torch.ops.symm_mem.fused_all_gather_matmul(a_shard, [b], 0, group)[1][0]
    return gemm_only, {"nccl_all_gather_and_matmul": nccl, "fused_all_gather_matmul": fused}


def scatter_calls(torch: Any, case: peer.Case, group: str) -> Tuple[Call, Dict[str, Call]]:
    """GEMM only (the rank's own partial sum), and the variants of matmul_reduce_scatter."""
    x = random_matrix(torch, case.m, case.k // case.gpus)
    w = random_matrix(torch, case.k // case.gpus, case.n)
    partial, alone = (x.new_empty(case.m, case.n) for _ in range(2))
    c = x.new_empty(case.m // case.gpus, case.n)

    def gemm_only() -> Any:
        return torch.mm(x, w, out=alone)

    def nccl() -> Any:
        torch.mm(x, w, out=partial)
        torch.distributed.reduce_scatter_tensor(c, partial)
        return c

    def fused() -> Any:
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, w, "sum", 0, group)
    return gemm_only, {"matmul_and_nccl_reduce_scatter": nccl, "fused_matmul_reduce_scatter": fused}


def sum_calls(torch: Any, case: peer.Case, group: str) -> Tuple[Call, Dict[str, Call]]:
    """GEMM only (the rank's own partial sum), and the variants of matmul_all_reduce."""
    import torch.distributed._symmetric_memory as symmetric_memory
    x = random_matrix(torch, case.m, case.k // case.gpus).bfloat16()
    w = random_matrix(torch, case.k // case.gpus, case.n).bfloat16()
    alone, c = (x.new_empty(case.m, case.n) for _ in range(2))
    partial = symmetric_memory.empty(case.m, case.n, dtype=x.dtype, device=x.device)
    symmetric_memory.rendezvous(partial, group)

    def gemm_only() -> Any:
        return torch.mm(x, w, out=alone)

    def nccl() -> Any:
        torch.mm(x, w, out=c)
        torch.distributed.all_reduce(c)
        return c

    def one_shot() -> Any:
        torch.mm(x, w, out=partial)
        return torch.ops.symm_mem.one_shot_all_reduce(partial, "sum", group)

    def two_shot() -> Any:
        torch.mm(x, w, out=partial)
        return torch.ops.symm_mem.two_shot_all_reduce_(partial, "sum", group)
    return gemm_only, {"matmul_and_nccl_all_reduce": nccl, "matmul_and_one_shot_all_reduce": one_shot,
                       "matmul_and_two_shot_all_reduce": two_shot}


def mlp_calls(torch: Any, case: peer.Case, group: str) -> Tuple[Call, Dict[str, Call]]:
    """GEMM only (both GEMMs and the GELU between them), and the block with NCCL."""
    del group
    dist, gelu = torch.distributed, torch.nn.functional.gelu
    share = case.n // case.gpus
    x_shard = random_matrix(torch, case.m // case.gpus, case.k)
    up = random_matrix(torch, case.k, share, case.k ** -0.5)  # so that no sum overflows f16
    down = random_matrix(torch, share, case.k, share ** -0.5)
    gathered = x_shard.new_empty(case.m, case.k)
    hidden = x_shard.new_empty(case.m, share)
    partial = x_shard.new_empty(case.m, case.k)
    result = x_shard.new_empty(case.m // case.gpus, case.k)
    dist.all_gather_into_tensor(gathered, x_shard)

    def products() -> Any:
        torch.mm(gathered, up, out=hidden)
        return torch.mm(gelu(hidden, approximate="tanh"), down, out=partial)

    def block() -> Any:
        dist.all_gather_into_tensor(gathered, x_shard)
        products()
        dist.reduce_scatter_tensor(result, partial)
        return result
    return products, {"nccl_mlp_block": block}


CALLS = {"all_gather_matmul": gather_calls, "matmul_reduce_scatter": scatter_calls, "matmul_all_reduce": sum_calls,
         "mlp_block": mlp_calls}


def in_graph(torch: Any, call: Call) -> Call:
    """The same call, captured in a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # communicators, workspaces and kernels must not be created during the capture
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL's watchdog thread may call CUDA during the capture
        result = call()

    def replay() -> Any:
        graph.replay()
        return result
    return replay


class Clock:
    """Times calls on this rank's GPU that start with all other ranks."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._token = torch.zeros(1, device="cuda")
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.distributed.all_reduce(self._token)

    def host_ms(self, call: Call) -> float:
        """From a barrier of all ranks until the host has synchronised with its GPU."""
        self._torch.distributed.barrier()
        self._torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        self._torch.cuda.synchronize()
        return (time.perf_counter() - started) * 1e3

    def device_ms(self, call: Call, closed_ms: float) -> float:
        """The GPU's time, after a gate that stays closed for about `closed_ms`."""
        self._torch.cuda._sleep(int(closed_ms * 1e-3 * CLOCK_HZ))
        self._torch.distributed.all_reduce(self._token)
        self._start.record()
        call()
        self._end.record()
        self._torch.cuda.synchronize()
        return float(self._start.elapsed_time(self._end))

    def enqueue_ms(self, call: Call) -> float:
        """The host's time to enqueue a call: the least of three."""
        def once() -> float:
            self._torch.cuda.synchronize()
            started = time.perf_counter()
            call()
            return (time.perf_counter() - started) * 1e3
        least = min(once() for _ in range(3))
        self._torch.cuda.synchronize()
        return least


def require_right(torch: Any, name: str, call: Call, expected: Any) -> None:
    """Compares a call's result with NCCL and cuBLAS, on all ranks."""
    call().fill_(float("nan"))  # so that no older result can pass
    error = (call().float() - expected.float()).norm() / expected.float().norm()
    torch.distributed.all_reduce(error, op=torch.distributed.ReduceOp.MAX)
    if not error.item() <= TOLERANCE:  # NaN is wrong, too
        raise RuntimeError(f"{name}: wrong result, relative error {error.item():.3g}")


def times_of(torch: Any, case: peer.Case, gemm_only: Call, call: Call) -> peer.Times:
    """Times of the variant and GEMM only, interleaved; every sample is the slowest rank's."""
    clock = Clock(torch)
    closed_ms = 0.5 + 2 * clock.enqueue_ms(call)
    device: List[float] = []
    gemm: List[float] = []
    host: List[float] = []
    for i in range(case.warmup + case.iterations):
        samples = clock.device_ms(gemm_only, closed_ms), clock.device_ms(call, closed_ms), clock.host_ms(call)
        if i >= case.warmup:
            for into, sample in zip((gemm, device, host), samples):
                into.append(sample)
    slowest = torch.tensor([gemm, device, host], device="cuda", dtype=torch.float64)
    torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
    gemm, device, host = slowest.tolist()
    return peer.Times(device, gemm, host, {})


def versions(torch: Any) -> str:
    """The versions of PyTorch and of its NCCL."""
    return f"{torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}"


def require_gpus(torch: Any, case: peer.Case) -> None:
    """Throws NotRun unless PyTorch sees the GPUs, and has NCCL."""
    seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if seen < case.gpus:
        raise peer.NotRun(f"PyTorch sees {seen} GPUs")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        raise peer.NotRun("this PyTorch has no NCCL")


def base_of(variant: str) -> str:
    """The variant's name without _eager or _graph."""
    return variant.rsplit("_", 1)[0]


def measured(torch: Any, case: peer.Case, variant: str, gemm_only: Call, call: Call, expected: Any, group: str) -> peer.Times:
    """A variant's times, its results compared before and after them. No graph outlives this function: NCCL does not end a
    communicator while a graph that captured its calls lives, so destroy_process_group would wait for ever
    (https://github.com/pytorch/pytorch/issues/115388)."""
    if variant.startswith("fused"):
        require_fused_operations(torch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions do not need it, and warn
            torch.distributed._symmetric_memory.enable_symm_mem_for_group(group)
    if variant.endswith("_graph"):
        call = in_graph(torch, call)
    require_right(torch, variant, call, expected)
    times = times_of(torch, case, gemm_only, call)
    require_right(torch, variant, call, expected)
    return times


def work(rank: int, case: peer.Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """The worker process of one rank."""
    # None of these operations needs NVLink multicast, whose setup can fail if it is disabled elsewhere.
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    import torch
    import torch.distributed as dist
    require_gpus(torch, case)
    torch.cuda.set_device(rank)
    torch.manual_seed(1 + rank)
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # f32 accumulation, as in the chapters
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=case.gpus)
    group = dist.group.WORLD.group_name
    progress.version(versions(torch))
    gemm_only, calls = CALLS[case.operation](torch, case, group)
    expected = calls[base_of(OPERATIONS[case.operation][0])]().clone()  # NCCL and cuBLAS, called eagerly
    for variant in variants:
        progress.starts(variant)
        progress.measured(variant, measured(torch, case, variant, gemm_only, calls[base_of(variant)], expected, group))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(peer.run_peer("PyTorch", PROTOCOL, __doc__ or "", OPERATIONS, require_pytorch, lambda case: case.gpus, work))
