"""The final output of ./lab bench: all measurements, a table for each problem."""
from typing import Any, Dict, List, Sequence, Tuple

from tools.results import sparse_results
from tools.chapters import operation_of
from tools.results.ladder import aligned
from tools.results.results import (COLUMNS, Row, Run, best_algorithm, chapter_of, is_dense, peer_rows, peers_of, problem_of, run_rows,
                     size_text)


def ladder_rows(runs: Sequence[Run], peers: Sequence[Run]) -> List[List[str]]:
    """GEMM only, then the algorithms of each chapter with the fastest one marked, then the peers."""
    rows: List[List[str]] = []

    def add(row: Row, name: str) -> None:
        rows.append([name, *row.cells()[1:]])
    for run in runs:
        best = best_algorithm(run, runs)
        for row in run_rows(run):
            if row.role == "gemm_only" and not rows:
                add(row, "GEMM only")
            elif row.role == "algorithm":
                add(row, f"{run['chapter'][:2]} {row.name}{' *' if best and best['variant'] == row.name else ''}")
    for peer in peers_of(runs[0], peers):
        for row in peer_rows(peer):
            add(row, row.name)
    return rows


def where(run: Run) -> str:
    return f"{run['options']['gpus']} x {run['hardware']['gpu']}"


def ladder(measured: Sequence[Run], peers: Sequence[Run]) -> str:
    """All measurements: a table for each problem."""
    parts = []
    groups: Dict[Tuple[Any, ...], List[Run]] = {}
    gradients: Dict[Tuple[Any, ...], List[Run]] = {}
    for run in measured:
        if chapter_of(run) != run["chapter"]:  # results of an experiment: its page has the table
            continue
        if sparse_results.is_sparse(run):
            gradients.setdefault(problem_of(run), []).append(run)
        elif is_dense(run):
            groups.setdefault((operation_of(run["chapter"]) or run["chapter"], *problem_of(run)), []).append(run)
        elif "kernel_ms" in run["results"][-1]:
            base, last = run["results"][0], run["results"][-1]
            parts.append(f"{run['chapter']}, {size_text(run)} on {where(run)}: {last['kernel_ms']:.2f} ms, "
                         f"{base['kernel_ms'] / last['kernel_ms']:.2f} x one GPU")
    for (operation, *_), runs in groups.items():
        modelled = " (modelled)" if runs[0]["modelled"] else ""
        header = [f"{COLUMNS[0]} (* best of the chapter)", COLUMNS[1] + modelled, *COLUMNS[2:]]
        if modelled:
            header[-1] = header[-1].replace("20", "5")
        parts.append(f"\n{operation} {size_text(runs[0])} on {where(runs[0])}\n"
                     + aligned(header, ladder_rows(runs, peers)))
    for runs in gradients.values():
        modelled = " (modelled)" if runs[0]["modelled"] else ""
        results = [(run["chapter"][:2], result) for run in runs for result in sparse_results.algorithms(run)]
        phases = sparse_results.phases_of([result for _, result in results])
        parts.append(f"\nsparse all-reduce {size_text(runs[0])} on {where(runs[0])}\n" + aligned(
            ["variant", "ms, host-timed" + modelled, *(name[:-3] for name in phases)],
            [[f"{number} {result['variant']}", *(sparse_results.milliseconds(result[name]) if name in result else ""
                                                for name in ("host_ms", *phases))] for number, result in results]))
    if any(run["modelled"] for run in measured):
        parts.append("\nTimes on virtual GPUs are modelled: they show what is faster than what. Nothing was written.")
    return "\n".join(parts)
