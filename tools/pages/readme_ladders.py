"""The README's ladders: the result of each chapter, in one unit for each ladder, and the peers below it."""
import math
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tools.results import sparse_results
from tools.chapters import Chapter
from tools.results.ladder import fastest_note, table
from tools.results.results import (Column, algorithms, column_of, gemm_only_of, is_dense, newest, peers_in, peers_of, ratio_of,
                                   runs_of, several_gpus)


class Ladder(NamedTuple):
    """One ladder."""

    parts: Tuple[int, ...]  # the parts of the course whose chapters it shows
    unit: str


LADDERS = {"dense": Ladder((1, 2), "x GEMM only"), "sparse": Ladder((3,), "times as fast as dense"),
           "kernels": Ladder((4,), "x GEMM only"), "latency": Ladder((5,), "x GEMM only")}
FASTEST = "ratio of its fastest GPU"
SHORT = "short"  # the dense ladder of one machine
COMPUTES = {"all_gather_matmul": "all-gather, GEMM", "matmul_reduce_scatter": "GEMM, reduce-scatter", "mlp_block": "MLP block",
            "matmul_all_reduce": "GEMM, all-reduce"}


def measures_the_chapter(run: Dict) -> bool:
    """False for a run that measures only a part, a search or a transport, or treats the GPUs of one process as nodes: these
    have no network between them."""
    if sparse_results.is_sparse(run):
        return bool(sparse_results.whole_sums(run))
    return "gpus_per_node" not in run["options"] or "processes" in run["options"]


def machines_note(runs: List[Dict], columns: List[Column]) -> str:
    """A sentence for each number of GPUs that was measured on several machines."""
    parts = []
    for gpu, gpus in columns:
        machines = sorted({int(run["hardware"]["gpus"]) for run in runs if column_of(run) == (gpu, gpus)})
        if len(machines) > 1:
            parts.append(f"{gpus} x {gpu} on machines with {', '.join(map(str, machines))} GPUs")
    return f"\nMeasured on several machines, of each command line the newest run counts: {'; '.join(parts)}.\n" if parts else ""


def measured_by(run: Dict, runs: Sequence[Dict]) -> Dict[str, Dict]:
    """The results of a run that may be a ladder's row, by variant."""
    found = {result["variant"]: result for result in algorithms(run, runs)}
    if sparse_results.is_sparse(run):
        whole = {result["variant"] for result in sparse_results.whole_sums(run)} - {sparse_results.DENSE}
        return {variant: result for variant, result in found.items() if variant in whole}
    return found if is_dense(run) else {}


def variant_of(results: Sequence[Mapping[str, Dict]]) -> str:
    """The variant of a row, the same in all columns, because ratios of different variants cannot be compared: of the variants
    with the most columns the fastest, by the geometric mean of its ratios or times."""
    def rank(variant: str) -> Tuple[int, float]:
        held = [each[variant] for each in results if variant in each]
        return -len(held), sum(math.log(result.get("ratio_to_gemm_only") or result["host_ms"]) for result in held)
    return min(dict.fromkeys(variant for each in results for variant in each), key=rank, default="")


def cell(run: Dict, result: Optional[Dict], runs: Sequence[Dict]) -> str:
    """A variant's result in the unit of its ladder, and in brackets the result of 20 calls enqueued at once. Speed-ups are
    below the table."""
    if not result:
        return "-" if is_dense(run) or sparse_results.is_sparse(run) else "see below"
    if sparse_results.is_sparse(run):
        times = sparse_results.times_dense(run, result, runs)
        return f"{times:.2f}" if times else ""
    at_once = ratio_of(result, gemm_only_of(run), "back_to_back_ms")
    return f"{result['ratio_to_gemm_only']:.3f}" + (f" ({at_once})" if at_once else "")


def cells_of(held: Mapping[Column, Tuple[Dict, Dict]], variant: str, columns: Sequence[Column]) -> List[str]:
    """The result of one variant in each column. A column has its run and the run's results by variant."""
    return [cell(held[column][0], held[column][1].get(variant), []) if column in held else "-" for column in columns]


def nccl_rows(chosen: Mapping[str, List[Dict]], chapters: Mapping[str, Chapter], columns: Sequence[Column]) -> List[List[str]]:
    """The rows of NCCL and cuBLAS one after the other: for each operation the best variant of that name."""
    found: Dict[str, Dict[Column, Tuple[Dict, Dict]]] = {}  # by operation: each column's first run with such variants
    for name, runs in chosen.items():
        for run in runs:
            nccl = {result["variant"]: result for result in algorithms(run) if result["variant"].startswith("nccl")}
            if nccl:
                found.setdefault(chapters[name].operation, {}).setdefault(column_of(run), (run, nccl))
    rows = []
    for operation, held in found.items():
        variant = variant_of([nccl for _, nccl in held.values()])
        cells = cells_of(held, variant, columns)
        rows.append(["*NCCL and cuBLAS*", "one after the other", COMPUTES[operation], f"`{variant}`", *cells])
    return rows


def peer_rows(chosen: Mapping[str, List[Dict]], columns: Sequence[Column], reports: List[Dict]) -> Tuple[List[List[str]], str]:
    """The best variant of each peer in each operation; and a sentence on the versions."""
    found: Dict[Tuple[str, str], Dict[Column, Tuple[Dict, Dict]]] = {}
    shown: List[Dict] = []
    for column in columns:
        for runs in chosen.values():
            first = next((run for run in runs if column_of(run) == column and is_dense(run)), None)
            for peer in peers_of(first, peers_in(reports)) if first else ():
                ratios = {result["variant"]: result for result in algorithms(peer)}
                if ratios:
                    found.setdefault((peer["options"]["operation"], peer["peer"]), {})[column] = (peer, ratios)
                    shown.append(peer)
    rows = []
    for (operation, name), held in sorted(found.items(), key=lambda item: list(COMPUTES).index(item[0][0])):
        variant = variant_of([ratios for _, ratios in held.values()])
        rows.append([f"*{name}*", "", COMPUTES[operation], f"`{variant}`", *cells_of(held, variant, columns)])
    versions = sorted({f"{peer['peer']} {peer['version']}" for peer in newest(shown)})
    note = f"\nOther systems, in italics, on the same machine and sizes: {'; '.join(versions)}.\n" + \
        fastest_note(shown, FASTEST)
    return rows, note if rows else ""


def dense_rows(runs: Sequence[Dict], columns: Sequence[Column]) -> List[List[str]]:
    """The rows of NCCL's all-reduce of the whole table, the reference of the sparse ladder, where it was measured."""
    name = sparse_results.DENSE
    found = {column_of(run) for run in runs for result in sparse_results.algorithms(run) if result["variant"] == name}
    cells = ["1.00" if column in found else "-" for column in columns]
    return [["*NCCL*", "the all-reduce of the whole table", f"`{name}`", *cells]] if found else []


def speed_up_note(runs: Sequence[Dict]) -> str:
    """A sentence on a chapter that compares several GPUs with one, because its unit is another one."""
    firsts: Dict[Column, Dict] = {}
    for run in runs:
        if not sparse_results.is_sparse(run) and not is_dense(run) and column_of(run)[1] > 1:
            firsts.setdefault(column_of(run), run)
    ratios = [f"{run['results'][0]['kernel_ms'] / run['results'][-1]['kernel_ms']:.2f} times as fast on {gpus} x {gpu}"
              for (gpu, gpus), run in firsts.items()]
    return f"\nChapter {runs[0]['chapter'][:2]} compares several GPUs with one: {', '.join(ratios)}.\n" if ratios else ""


def parts_of(which: str, chapters: Mapping[str, Chapter], reports: List[Dict]) -> Tuple[List[str], List[List[str]], str]:
    """A ladder's header, its lines, and the text below it."""
    ladder = LADDERS[which]
    shown = {name: chapter for name, chapter in sorted(chapters.items()) if chapter.part in ladder.parts}
    chosen = {name: [run for run in runs_of(name, reports) if measures_the_chapter(run)] for name in shown}
    columns = sorted(several_gpus(column_of(run) for runs in chosen.values() for run in runs))
    titles = [f"{ladder.unit}, {gpus} x {gpu}" for gpu, gpus in columns] or [ladder.unit]
    all_runs = [run for report in reports for run in report["runs"]]
    rows, notes = [], ""
    for name, chapter in shown.items():
        head = [chapter.idea, COMPUTES.get(chapter.operation, "GEMM")] if which == "dense" else [chapter.idea]
        firsts: List[Optional[Dict]] = [next((run for run in chosen[name] if column_of(run) == column), None) for column in columns]
        results = [measured_by(first, all_runs) if first else {} for first in firsts]
        variant = variant_of(results)
        cells = [cell(first, result.get(variant), all_runs) if first else "-" for first, result in zip(firsts, results)] \
            if chosen[name] else ["not run", *("" for _ in titles[1:])]
        rows.append([f"[`{name}`](chapters/{name}/README.md)", *head, f"`{variant}`" if variant else "", *cells])
        notes += speed_up_note(chosen[name])
    peers, versions = [], ""
    if which == "dense":
        peers, versions = peer_rows(chosen, columns, reports)
        peers = nccl_rows(chosen, shown, columns) + peers
    elif which == "sparse":
        peers = dense_rows([run for runs in chosen.values() for run in runs], columns)
    everything = [run for run in all_runs if not run["modelled"] and run["chapter"] in chosen and measures_the_chapter(run)]
    header = ["chapter", "idea", *(["computes"] if which == "dense" else []), "variant", *titles]
    return header, rows + peers, notes + versions + machines_note(everything, columns)


def short_table(chapters: Mapping[str, Chapter], reports: List[Dict]) -> str:
    """The dense ladder on the first of its machines: one call, and 20 at once. Rows of one operation are grouped, and a row of
    a chapter is not repeated as NCCL's."""
    header, rows, _ = parts_of("dense", chapters, reports)
    first = header.index("variant") + 1
    found: Dict[Tuple[str, ...], List[str]] = {}
    for name, idea, computes, variant, *cells in rows:
        one, _, many = cells[0].rstrip(")").partition(" (")
        if one[:1].isdigit():
            found.setdefault((computes, variant, "" if idea else name), [computes, name, idea or variant, one, many or "-"])
    order = list(COMPUTES.values())
    return table(["computes", "by", "idea", f"{header[first]}: one call", "of 20 at once"],
                 sorted(found.values(), key=lambda row: order.index(row[0]))) + \
        fastest_note([peer for peer in peers_in(reports) if f"*{peer['peer']}*" in (row[1] for row in found.values())], FASTEST)


def ladder_table(which: str, chapters: Mapping[str, Chapter], reports: List[Dict]) -> str:
    """A ladder: its chapters, the best algorithm that each adds, at the first size on each number of GPUs that was measured;
    then the peers. A dash means that the algorithm was not measured."""
    if which == SHORT:
        return short_table(chapters, reports)
    header, rows, below = parts_of(which, chapters, reports)
    return table(header, rows) + below
