"""The README's ladders: what each chapter reaches, in one unit for each ladder, and the peers below it."""
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tools.results import sparse_results
from tools.chapters import Chapter
from tools.results.ladder import table
from tools.results.results import Column, best_algorithm, column_of, is_dense, newest, peers_in, peers_of, plain_results, runs_of


class Ladder(NamedTuple):
    """One of the three."""

    parts: Tuple[int, ...]  # whose chapters it shows
    unit: str


LADDERS = {"dense": Ladder((1, 2), "x GEMM only"), "sparse": Ladder((3,), "times as fast as dense"),
           "kernels": Ladder((4,), "x GEMM only")}
COMPUTES = {"all_gather_matmul": "all-gather, GEMM", "matmul_reduce_scatter": "GEMM, reduce-scatter", "mlp_block": "MLP block"}


def measures_the_chapter(run: Dict) -> bool:
    """True unless it measures a part alone, a search or a transport, or takes the GPUs of one process for nodes: between
    these lies no network."""
    if sparse_results.is_sparse(run):
        return sparse_results.best_algorithm(run) is not None
    return "gpus_per_node" not in run["options"] or "processes" in run["options"]


def ladder_columns(runs: Iterable[Dict]) -> List[Column]:
    """Those that were measured. One GPU is a control, unless there is nothing else."""
    columns = sorted({column_of(run) for run in runs})
    return [column for column in columns if column[1] > 1] or columns


def machines_note(runs: List[Dict], columns: List[Column]) -> str:
    """A sentence for each number of GPUs that was measured on several machines."""
    parts = []
    for gpu, gpus in columns:
        machines = sorted({int(run["hardware"]["gpus"]) for run in runs if column_of(run) == (gpu, gpus)})
        if len(machines) > 1:
            parts.append(f"{gpus} x {gpu} on machines with {', '.join(map(str, machines))} GPUs")
    return f"\nMeasured on several machines, of each command line the newest run counts: {'; '.join(parts)}.\n" if parts else ""


def cell(run: Dict, reports: List[Dict]) -> str:
    """What the best algorithm of a run reaches, in the unit of its ladder. That of a speed-up stands below the table."""
    if sparse_results.is_sparse(run):
        times = sparse_results.times_dense(run, [each for report in reports for each in report["runs"]])
        return f"{times:.2f}" if times else ""
    fastest = best_algorithm(run, [each for report in reports for each in report["runs"]]) if is_dense(run) else None
    return f"{fastest['ratio_to_gemm_only']:.3f}" if fastest else "see below"


def nccl_rows(chosen: Mapping[str, List[Dict]], chapters: Mapping[str, Chapter], columns: Sequence[Column]) -> List[List[str]]:
    """NCCL and cuBLAS, one after the other: of each operation the best variant of that name."""
    best: Dict[str, Dict[Column, float]] = {}
    for name, runs in chosen.items():
        for run in {column_of(run): run for run in reversed(runs)}.values():  # the first of each column
            ratios = [float(result["ratio_to_gemm_only"]) for result in plain_results(run)
                      if result.get("role") == "algorithm" and result["variant"].startswith("nccl") and "ratio_to_gemm_only" in result]
            if ratios:
                held = best.setdefault(chapters[name].operation, {})
                held[column_of(run)] = min(held.get(column_of(run), min(ratios)), *ratios)
    return [["*NCCL and cuBLAS*", "one after the other", COMPUTES[operation],
             *(f"{held[column]:.3f}" if column in held else "-" for column in columns)] for operation, held in best.items()]


def peer_rows(chosen: Mapping[str, List[Dict]], columns: Sequence[Column], reports: List[Dict]) -> Tuple[List[List[str]], str]:
    """The best variant of each peer in each operation; and a sentence on the versions."""
    best: Dict[Tuple[str, str], Dict[Column, Dict]] = {}
    shown: List[Dict] = []
    for column in columns:
        for runs in chosen.values():
            first = next((run for run in runs if column_of(run) == column and is_dense(run)), None)
            for peer in peers_of(first, peers_in(reports)) if first else ():
                ratios = [result for result in plain_results(peer) if result.get("role") == "algorithm" and "ratio_to_gemm_only" in result]
                if ratios:  # each against GEMM only beside it
                    nearest = min(ratios, key=lambda result: float(result["ratio_to_gemm_only"]))
                    best.setdefault((peer["options"]["operation"], peer["peer"]), {})[column] = nearest
                    shown.append(peer)
    rows = []
    for (operation, peer), held in sorted(best.items(), key=lambda item: list(COMPUTES).index(item[0][0])):
        variants = ", ".join(f"`{name}`" for name in dict.fromkeys(result["variant"] for result in held.values()))
        rows.append([f"*{peer}*", variants, COMPUTES[operation],
                     *(f"{held[column]['ratio_to_gemm_only']:.3f}" if column in held else "-" for column in columns)])
    versions = sorted({f"{peer['peer']} {peer['version']}" for peer in newest(shown)})
    return rows, f"\nOther systems, in italics, on the same machine and sizes: {'; '.join(versions)}.\n" if rows else ""


def dense_rows(runs: Sequence[Dict], columns: Sequence[Column]) -> List[List[str]]:
    """NCCL's all-reduce of the whole table, with which the sparse ones are compared, where it was measured."""
    found = {column_of(run) for run in runs for result in sparse_results.algorithms(run) if result["variant"] == "dense_nccl"}
    return [["*NCCL*", "the all-reduce of the whole table", *("1.00" if column in found else "-" for column in columns)]] if found else []


def speed_up_note(runs: Sequence[Dict]) -> str:
    """Of a chapter that compares several GPUs with one: it has another unit."""
    firsts: Dict[Column, Dict] = {}
    for run in runs:
        if not sparse_results.is_sparse(run) and not is_dense(run) and column_of(run)[1] > 1:
            firsts.setdefault(column_of(run), run)
    ratios = [f"{run['results'][0]['kernel_ms'] / run['results'][-1]['kernel_ms']:.2f} times as fast on {gpus} x {gpu}"
              for (gpu, gpus), run in firsts.items()]
    return f"\nChapter {runs[0]['chapter'][:2]} compares several GPUs with one: {', '.join(ratios)}.\n" if ratios else ""


def ladder_table(which: str, chapters: Mapping[str, Chapter], reports: List[Dict]) -> str:
    """A ladder: its chapters, the best algorithm of each at the first size on each number of GPUs that was measured, then the
    peers. Where it was not run stands a dash."""
    ladder = LADDERS[which]
    shown = {name: chapter for name, chapter in sorted(chapters.items()) if chapter.part in ladder.parts}
    chosen = {name: [run for run in runs_of(name, reports) if measures_the_chapter(run)] for name in shown}
    columns = ladder_columns(run for runs in chosen.values() for run in runs)
    titles = [f"{ladder.unit}, {gpus} x {gpu}" for gpu, gpus in columns] or [ladder.unit]
    rows, notes = [], ""
    for name, chapter in shown.items():
        head = [chapter.idea, COMPUTES.get(chapter.operation, "GEMM")] if which == "dense" else [chapter.idea]
        firsts: List[Optional[Dict]] = [next((run for run in chosen[name] if column_of(run) == column), None) for column in columns]
        cells = [cell(first, reports) if first else "-" for first in firsts] if chosen[name] else ["not run", *("" for _ in titles[1:])]
        rows.append([f"[`{name}`](chapters/{name}/README.md)", *head, *cells])
        notes += speed_up_note(chosen[name])
    peers, versions = [], ""
    if which == "dense":
        peers, versions = peer_rows(chosen, columns, reports)
        peers = nccl_rows(chosen, shown, columns) + peers
    elif which == "sparse":
        peers = dense_rows([run for runs in chosen.values() for run in runs], columns)
    everything = [run for report in reports for run in report["runs"]
                  if not run["modelled"] and run["chapter"] in chosen and measures_the_chapter(run)]
    header = ["chapter", "idea", *(["computes"] if which == "dense" else []), *titles]
    return table(header, rows + peers) + notes + versions + machines_note(everything, columns)
