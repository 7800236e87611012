#!/usr/bin/env python3
"""Measures the sparse all-reduces of "Sparse All-Reduce in PyTorch" (https://blog.speechmatics.com/Sparse-All-Reduce-Part-1) in
PyTorch: Gloo, dense with NCCL, and versions 1 to 4. (Versions 5 and 6 are CUDA kernels: chapters 13 and 14.)

One process for each GPU. The time of a call is the host's, from a barrier to the end of the synchronisation, maximum over ranks,
median, as in chapters 08 to 15. Rows of a rank are drawn without repetition, so that coalesce() has nothing to add up.

The article's text lacks some lines. Filled in here: the all-reduces themselves (their sum, in place), `torch.unique` in
build_global_indices and the number of rows, `torch.stack` around the list of version 1, the copy of the found rows in version 3,
the calls before its capture, and what is compared and reduced in version 4.

Exit status 0, 2 (nothing could be measured) or 77, with one line "not run: reason".
"""
import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Sequence

import peer
from pytorch_peer import require_gpus, require_pytorch, versions

VARIANTS = ("gloo", "v1_nonzero", "v2_where", "v3_graph", "v4_broadcast_eq", "dense_nccl")  # the last one may lack memory
PROTOCOL = "host time from a barrier to the end of the synchronisation, maximum over ranks, median"
Call = Callable[[Any], Any]  # a coalesced sparse tensor of this rank -> the sum of all ranks


@dataclasses.dataclass(frozen=True)
class Case:
    """The table, the rows of each rank, and the options of the measurement."""
    gpus: int
    rows: int
    features: int
    entries: int
    iterations: int
    limit_s: float


@dataclasses.dataclass(frozen=True)
class Times:
    """Samples of a variant in milliseconds, each the slowest rank's."""
    host_ms: List[float]

    def result(self, variant: str, case: Case) -> Dict[str, Any]:
        """The variant's entry in the report."""
        return {"variant": variant, "role": "algorithm", "gpus": case.gpus, "host_ms": statistics.median(self.host_ms),
                "host_p99_ms": peer.percentile(self.host_ms, 99), "calls": len(self.host_ms)}


def all_reduce_gloo(torch: Any, group: Any) -> Call:
    """On the host, where PyTorch can add up sparse tensors."""
    def call(x: Any) -> Any:
        on_host = x.cpu()
        torch.distributed.all_reduce(on_host, group=group)
        return on_host.cuda()
    return call


def all_reduce_dense(torch: Any) -> Call:
    """The whole table."""
    def call(x: Any) -> Any:
        dense = x.to_dense()
        torch.distributed.all_reduce(dense)
        indices = dense.abs().max(dim=1)[0].nonzero().squeeze(1)
        return torch.sparse_coo_tensor(indices.unsqueeze(0), dense[indices], size=dense.shape, is_coalesced=True)
    return call


def local_indices_of(torch: Any, x: Any) -> Any:
    """The rank's rows, with as many entries on all ranks: -1 behind the last one."""
    dist, indices = torch.distributed, x.indices()[0]
    counts = torch.zeros(dist.get_world_size(), device="cuda")
    counts[dist.get_rank()] = indices.shape[0]
    dist.all_reduce(counts)
    most = counts.max().int().item()
    return torch.nn.functional.pad(indices, (0, most - indices.shape[0]), value=-1)


def global_indices_of(torch: Any, local: Any) -> Any:
    """The rows of all ranks, in ascending order: rank 0 collects them."""
    dist = torch.distributed
    first = dist.get_rank() == 0
    gathered = [torch.empty_like(local) for _ in range(dist.get_world_size())] if first else None
    dist.gather(local, gather_list=gathered)
    count = torch.tensor(0, device="cuda")
    if gathered:
        indices = torch.unique(torch.cat(gathered))
        indices = indices[indices != -1]
        count = torch.tensor(indices.shape[0], device="cuda")
    dist.broadcast(count, 0)
    if not first:
        indices = torch.empty(count.item(), device="cuda", dtype=torch.int64)
    dist.broadcast(indices, 0)
    return indices


def places_by_nonzero(torch: Any, local: Any, whole: Any) -> Any:
    """Version 1: one search after the other, and the host waits for each."""
    return torch.stack([torch.nonzero(whole == index)[0] for index in local]).squeeze(1)


def places_by_where(torch: Any, local: Any, whole: Any) -> Any:
    """Version 2: no shape depends on what is found, so the host does not wait."""
    places = torch.empty_like(local)
    counter = torch.arange(whole.shape[0], device="cuda", dtype=torch.int64)
    for step, index in zip(counter, whole):
        torch.where(local == index, step, places, out=places)
    return places


def places_by_broadcast(torch: Any, local: Any, whole: Any) -> Any:
    """Version 4: all comparisons at once."""
    return torch.eq(local.unsqueeze(0), whole.unsqueeze(1)).max(dim=0)[1]


def all_reduce_nccl(torch: Any, places: Callable[[Any, Any, Any], Any]) -> Call:
    """Versions 1, 2 and 4: only rows that some rank has are sent."""
    def call(x: Any) -> Any:
        whole = global_indices_of(torch, local_indices_of(torch, x))
        values = torch.zeros(whole.shape[0], x.shape[1], device="cuda")
        values[places(torch, x.indices()[0], whole)] = x.values()
        torch.distributed.all_reduce(values)
        return torch.sparse_coo_tensor(whole.unsqueeze(0), values, size=x.shape, is_coalesced=True)
    return call


class GraphedSearch:
    """Version 3: the search of `most` rows, captured once in a graph, with buffers of fixed sizes."""

    def __init__(self, torch: Any, most: int, features: int) -> None:
        self._torch = torch
        self._local = torch.empty(most, device="cuda", dtype=torch.int64)
        in_all = torch.distributed.get_world_size() * most  # if no two ranks have a row in common
        self._whole = torch.empty(in_all, device="cuda", dtype=torch.int64)
        self._rows = torch.zeros(most + 1, features, device="cuda")  # the last row stays zero: of rows that this rank lacks
        self._values = torch.empty(in_all, features, device="cuda")
        self._counter = torch.arange(most, device="cuda", dtype=torch.int64)
        self._graph = torch.cuda.CUDAGraph()
        self._local.fill_(-1)
        self._whole.fill_(-2)
        self._search(2)  # loads the kernels, which a capture must not
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._search(most)

    def _search(self, rounds: int) -> None:
        torch = self._torch
        read = torch.full_like(self._whole, self._counter.shape[0])
        for step, index in zip(self._counter[:rounds], self._local[:rounds]):
            torch.where(self._whole == index, step, read, out=read)
        torch.index_select(self._rows, 0, read, out=self._values)

    def __call__(self, x: Any) -> Any:
        torch, indices = self._torch, x.indices()[0]
        whole = global_indices_of(torch, local_indices_of(torch, x))
        self._local.fill_(-1)  # padded otherwise than the rows of all ranks, so that padding matches nothing
        self._whole.fill_(-2)
        self._local[:indices.shape[0]] = indices
        self._whole[:whole.shape[0]] = whole
        self._rows[:indices.shape[0]] = x.values()
        self._graph.replay()
        values = self._values[:whole.shape[0]]
        torch.distributed.all_reduce(values)
        return torch.sparse_coo_tensor(whole.unsqueeze(0), values, size=x.shape, is_coalesced=True)


def call_of(torch: Any, variant: str, case: Case, gloo: Any) -> Call:
    """The variant's call."""
    if variant == "v3_graph":
        return GraphedSearch(torch, case.entries, case.features)
    return {"gloo": lambda: all_reduce_gloo(torch, gloo), "dense_nccl": lambda: all_reduce_dense(torch),
            "v1_nonzero": lambda: all_reduce_nccl(torch, places_by_nonzero),
            "v2_where": lambda: all_reduce_nccl(torch, places_by_where),
            "v4_broadcast_eq": lambda: all_reduce_nccl(torch, places_by_broadcast)}[variant]()


def gradient(torch: Any, case: Case, rank: int) -> Any:
    """This rank's gradient: different rows, in random order, with random normals."""
    generator = torch.Generator(device="cuda").manual_seed(1 + rank)
    rows = torch.randperm(case.rows, device="cuda", generator=generator)[:case.entries]
    values = torch.randn(case.entries, case.features, device="cuda", generator=generator)
    return torch.sparse_coo_tensor(rows.unsqueeze(0), values, size=(case.rows, case.features))


def require_right(torch: Any, variant: str, found: Any, expected: Any) -> None:
    """Compares a sum with that of the gradients of all ranks, made on each rank."""
    found = found.coalesce()
    same = found.indices().equal(expected.indices()) and torch.allclose(found.values(), expected.values(), rtol=1e-5, atol=1e-5)
    wrong = torch.tensor(0.0 if same else 1.0, device="cuda")
    torch.distributed.all_reduce(wrong)
    if wrong.item():
        raise RuntimeError(f"{variant}: not the sum of the ranks' gradients")


def work(rank: int, case: Case, variants: Sequence[str], port: int, progress: peer.Progress) -> None:
    """The worker process of one rank."""
    import torch
    import torch.distributed as dist
    require_gpus(torch, case)  # type: ignore[arg-type]  # it reads the number of GPUs only
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=case.gpus)
    gloo = dist.new_group(backend="gloo")
    progress.version(versions(torch))
    x = gradient(torch, case, rank)
    expected = x
    for other in range(case.gpus):
        if other != rank:
            expected = expected + gradient(torch, case, other)
    expected = expected.coalesce()
    for variant in variants:
        progress.starts(variant)
        call = call_of(torch, variant, case, gloo)
        samples: List[float] = []
        for i in range(1 + case.iterations):
            dist.barrier()
            torch.cuda.synchronize()
            started = time.perf_counter()
            found = call(x.coalesce())
            torch.cuda.synchronize()
            if i:  # the first call loads kernels and allocates
                samples.append((time.perf_counter() - started) * 1e3)
            require_right(torch, variant, found, expected)
            del found
        slowest = torch.tensor(samples, device="cuda", dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        progress.measured(variant, Times(slowest.tolist()))  # type: ignore[arg-type]  # it is passed on
        del call
        torch.cuda.empty_cache()
    dist.barrier()
    dist.destroy_process_group()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2, help="processes, one for each GPU (default 2)")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table (default 5000000)")
    parser.add_argument("--features", type=int, default=2048, help="columns of the table (default 2048)")
    parser.add_argument("--entries", type=int, default=50_000, help="rows of each rank (default 50000)")
    parser.add_argument("--only", default=",".join(VARIANTS), metavar="LIST", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--iterations", type=int, default=4, help="timed calls of each variant (default 4)")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS", help="time limit of each variant (default 90)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    chosen = parser.parse_args()
    if not 0 < chosen.entries <= chosen.rows or min(chosen.gpus, chosen.features, chosen.iterations) < 1:
        parser.error("sizes must be at least 1, and --entries at most --rows")
    if not set(chosen.only.split(",")) <= set(VARIANTS):
        parser.error(f"--only: {', '.join(VARIANTS)}")
    return chosen


def main() -> int:
    chosen = parse()
    case = Case(chosen.gpus, chosen.rows, chosen.features, chosen.entries, chosen.iterations, chosen.limit)
    variants = [name for name in VARIANTS if name in chosen.only.split(",")]
    try:
        require_pytorch()
        machine = peer.hardware()
        if case.gpus > int(machine["gpus"]):
            raise peer.NotRun(f"{case.gpus} GPUs asked for, {machine['gpus']} here")
        version, results = peer.measure(case, variants, case.gpus, work)  # type: ignore[arg-type]  # it reads limit_s only
    except peer.NotRun as reason:
        print(f"not run: {reason}")
        return peer.NOT_RUN
    options = {"operation": "sparse_all_reduce", "gpus": case.gpus, "rows": case.rows, "features": case.features,
               "entries": case.entries, "duplicates": 0, "pattern": "uniform", "index": "int32", "type": "f32",
               "iterations": case.iterations, "warmup": 1}
    print(f"PyTorch {version}: sparse all-reduce of {case.entries} rows of {case.rows} x {case.features} on {case.gpus} x {machine['gpu']}")
    for result in results:
        print(f"{result['variant']:20} " + (f"{result['host_ms']:10.2f} ms" if "host_ms" in result else f"failed: {result['reason']}"))
    whole = peer.report("PyTorch", PROTOCOL, version, machine, options, results)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    return 0 if whole["status"] == "ok" else peer.FAILED


if __name__ == "__main__":
    sys.exit(main())
