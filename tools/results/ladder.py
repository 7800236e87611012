"""The tables of measured results in the pages of chapters. (Those of the README: readme_ladders.py.)"""
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from tools.chapters import all_chapters, operation_of
from tools.results import sparse_results
from tools.results.results import (COLUMNS, Column, Row, are_microseconds, column_of, field_text, is_dense, newest, peer_rows, peers_in,
                                   peers_of, run_rows, runs_of, runs_with_section, section_fields, several_gpus, size_text)


def table(header: List[str], rows: Iterable[List[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines) + "\n"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal: names on the left, numbers on the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in (header, *rows))


def stamp(run: Dict) -> str:
    """Where and when a result was measured."""
    hardware = run["hardware"]
    return (f"{hardware['gpus']} x {hardware['gpu']}, driver {hardware['driver']}, CUDA {hardware['toolkit']}, {run['date'][:10]}, "
            f"commit {run['commit']}")


def column_split_rows(run: Dict) -> List[List[str]]:
    """One row for one GPU, one for all of them, each with its speed-up."""
    base = run["results"][0]
    size = " x ".join(str(run["options"][name]) for name in "mnk")
    return [[size, str(result["gpus"]), f"{result['kernel_ms']:.2f}", f"{base['kernel_ms'] / result['kernel_ms']:.2f} x",
             f"{result['end_to_end_ms']:.2f}", f"{base['end_to_end_ms'] / result['end_to_end_ms']:.2f} x"]
            for result in run["results"]]


# The names of a profile's metrics in a page, and a divisor for one of them.
METRICS = (("gpu__time_duration.sum", "kernel ms", 1e6), ("l1tex__t_sector_hit_rate.pct", "L1 hit rate, %", 1),
           ("lts__t_sector_hit_rate.pct", "L2 hit rate, %", 1), ("dram__bytes_read.sum", "read from memory, MB", 1e6),
           ("dram__bytes_write.sum", "written to memory, MB", 1e6), ("dram__bytes.sum", "memory, GB", 1e9),
           ("lts__t_bytes.sum", "through the L2 cache, GB", 1e9),
           ("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active", "tensor cores active, %", 1),
           ("smsp__issue_active.avg.pct_of_peak_sustained_active", "cycles with an instruction issued, %", 1))


def profile_table(chapter: str, reports: List[Dict]) -> str:
    """Nsight Compute's counters for the chapter's kernels."""
    profiles = [profile for report in reports for profile in report["profiles"] if profile["chapter"] == chapter]
    if not profiles:
        return "Not profiled on real GPUs yet.\n"
    counted = [metric for metric in METRICS if any(metric[0] in profile["metrics"] for profile in profiles)]
    rows = [[profile["size"].replace("-", " "),
             *(field_text(profile["metrics"][name]["value"] / unit) if name in profile["metrics"] else ""
               for name, _, unit in counted)] for profile in profiles]
    return table(["one GPU", *(title for _, title, _ in counted)], rows)


def column_split_table(runs: List[Dict]) -> str:
    """Chapter 01's table, the only one that compares one GPU with several. It shows the first size on the fewest GPUs, and the
    runs on one GPU; all others are in a fold."""
    def lines(group: List[Dict]) -> str:
        rows = [row for run in group for row in column_split_rows(run)]
        return table(["M x N x K", "GPUs", "kernel ms", "speed-up", "with copies ms", "speed-up"], rows)
    whole = tables_by_gpus(runs, lines) + "\nMedian over the iterations of the slowest GPU's time. " + stamps(runs) + ".\n"
    groups = by_gpus(runs)
    (gpu, gpus), group = groups[-1]
    first = [run for i, run in enumerate(group) if i == 0 or column_of(run)[1] == 1]
    if len(groups) == 1 and len(first) == len(group):
        return whole
    return f"On {gpus} x {gpu}:\n\n{lines(first)}\n" + fold("All sizes and GPUs", whole)


def by_gpus(runs: List[Dict]) -> List[Tuple[Column, List[Dict]]]:
    """The runs by kind and number of GPUs, the largest number first. A run on one GPU alone (a control, or a search for more
    ranks than there are GPUs) is listed with the largest number of its kind."""
    alone = [run for run in runs if column_of(run)[1] == 1 or column_of(run)[1] > int(run["hardware"]["gpus"])]
    most: Dict[str, int] = {}
    for gpu, gpus in (column_of(run) for run in runs if run not in alone):
        most[gpu] = max(most.get(gpu, 0), gpus)
    groups: Dict[Column, List[Dict]] = {}
    for run in runs:
        gpu, gpus = column_of(run)
        groups.setdefault((gpu, most.get(gpu, 1) if run in alone else gpus), []).append(run)
    return sorted(groups.items(), key=lambda item: item[0][::-1], reverse=True)


def tables_by_gpus(runs: List[Dict], lines: Callable[[List[Dict]], str]) -> str:
    """A table for each kind and number of GPUs, made by `lines`, with a name if there are several."""
    groups = by_gpus(runs)
    return "\n".join((f"On {gpus} x {gpu}:\n\n" if len(groups) > 1 else "") + lines(group) for (gpu, gpus), group in groups)


def stamps(runs: List[Dict]) -> str:
    """The machine and the dates of the runs."""
    return "; ".join(sorted({stamp(run) for run in runs}))


def fold(summary: str, text: str) -> str:
    """Text in a fold, which the reader can open."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n</details>\n"


def home_of_peers(chapter: str) -> str:
    """The chapter whose page shows the peers of an operation: the first one that computes it. Nothing without an operation."""
    operation = operation_of(chapter)
    return next((name for name, each in sorted(all_chapters().items()) if operation and each.operation == operation), "")


def link_to_peers(home: str) -> str:
    """A sentence for the pages of the other chapters."""
    return f"\nOther systems, where they ran the same sizes: [chapter {home[:2]}](../{home}/README.md#measured).\n"


def headline_cell(row: Row) -> str:
    """A time, the ratio to GEMM only, and in brackets the ratio of 20 calls at once."""
    at_once = f" ({row.at_once})" if row.at_once else ""
    ratio = f", {row.ratio}{at_once}" if row.ratio and row.role != "gemm_only" else ""
    return (f"{row.time} us" if row.time[:1].isdigit() else row.time) + ratio


def headline_table(runs: List[Dict], peers: List[Dict]) -> str:
    """The first table of a page: each variant's time and both ratios, at the first size on each number of GPUs; if only one
    number of GPUs was measured, at all sizes."""
    columns = sorted(several_gpus(column_of(run) for run in runs))
    chosen = [next(run for run in runs if column_of(run) == column) for column in columns]
    if len(columns) == 1:
        chosen = [run for run in runs if column_of(run) in columns]
    lines = [{**{f"`{row.name}`": headline_cell(row) for row in run_rows(run)},
              **{f"*{row.name}*": headline_cell(row) for peer in peers_of(run, peers) for row in peer_rows(peer)}} for run in chosen]
    names = list(dict.fromkeys(name for line in lines for name in line))
    titles = [f"{gpus} x {gpu}: {size_text(run)}" for run in chosen for gpu, gpus in (column_of(run),)]
    return table(["variant", *titles], [[name, *(line.get(name, "-") for line in lines)] for name in names]) + \
        "\nTime of one call, its ratio to GEMM only, and in brackets the ratio of 20 calls enqueued at once." + \
        (" Rows in italics are other systems, each against its own GEMM; \"A to B\" is the time of the fastest and of the slowest GPU."
         if any(name.startswith("*") for name in names) else "") + "\n\n"


def dense_table(runs: List[Dict], peers: List[Dict]) -> str:
    """The table of a chapter on dense GEMMs: a block for each run, with the peers of the same problem below its variants."""
    shown: List[Dict] = []

    def lines(group: List[Dict]) -> str:
        rows = []
        for run in group:
            where = [size_text(run), str(run["options"]["gpus"])]
            rows += [[*where, f"`{row.name}`", *row.cells()[1:]] for row in run_rows(run)]
            for peer in peers_of(run, peers):
                shown.append(peer)
                rows += [[*where, f"*{row.name}*", *row.cells()[1:]] for row in peer_rows(peer)]
        return table(["M x N x K", "GPUs", *COLUMNS], rows)
    text = tables_by_gpus(runs, lines) + \
        "\nMedian over the iterations of the slowest GPU's time; TFLOP/s of each GPU; ratios to GEMM only in the same run, the " \
        "last one of 20 calls enqueued at once. " + stamps(runs) + ".\n"
    dates: Dict[str, List[str]] = {}  # by system, version and protocol
    for peer in newest(shown):
        dates.setdefault(f"{peer['peer']} {peer['version']} ({peer['protocol']}; ", []).append(peer["date"][:10])
    versions = [f"{what}{', '.join(sorted(set(found)))})" for what, found in sorted(dates.items())]
    return text + (f"\nIn italics, other systems on the same machine: {'; '.join(versions)}.\n" if versions else "") + \
        fastest_note(shown, "time of the fastest to the slowest GPU; ratio and TFLOP/s of the fastest GPU")


def fastest_note(peers: List[Dict], what: str) -> str:
    """A sentence on peers that report the time of their fastest GPU."""
    names = sorted({peer["peer"] for peer in peers for result in peer["results"] if "device_max_ms" in result})
    return f"\n{', '.join(names)}: {what}.\n" if names else ""


def sparse_table(runs: List[Dict]) -> str:
    """The table of a chapter on sparse gradients: the first problem on each number of GPUs; the others in a fold."""
    def lines(group: List[Dict]) -> str:
        return table(*sparse_results.table_of(group))
    first = [next(run for run in group) for _, group in by_gpus(runs)]
    rest = [run for run in runs if not any(run is each for each in first)]
    return tables_by_gpus(first, lines) + ("\n" + fold("Other gradients", tables_by_gpus(rest, lines)) if rest else "") + \
        "\nMedian over the calls, with the host, until the slowest rank is done; each phase on its slowest rank, the all-reduce " \
        "on the rank that came to it last, skew: how much later that was than the first. " + stamps(runs) + ".\n"


def what_and_where(run: Dict) -> str:
    """The problem's sizes, and the GPUs that a section was measured on."""
    gpu, ranks = column_of(run)
    return f"{size_text(run)} on " + (f"one {gpu}, for {ranks} ranks" if ranks > int(run["hardware"]["gpus"]) else f"{ranks} x {gpu}")


def section_tables(section: str, runs: List[Dict], folds: bool) -> str:
    """The section of each run as a table: the first one for each number of GPUs; with `folds`, the others in a fold."""
    parts: List[str] = []
    rest: List[str] = []
    shown: List[Dict] = []
    numbers = set()
    for (_, gpus), run in ((column, run) for column, group in by_gpus(runs) for run in group):
        header, rows = section_fields(run, section, are_microseconds(runs, section))
        if rows:
            shown.append(run)
            (rest if folds and gpus in numbers else parts).append(f"{what_and_where(run)}:\n\n" + table(header, rows))
            numbers.add(gpus)
    if not shown:
        return "Not run on real GPUs yet.\n"
    return "\n".join([*parts, *([fold("Other sizes and GPUs", "\n".join(rest))] if rest else []), stamps(shown) + ".\n"])


def results_table(argument: str, reports: List[Dict]) -> str:
    """The measured table of a chapter's page: `CHAPTER`, or `CHAPTER SECTION` for the results of one section; `CHAPTER SECTION
    folded` puts all tables but the first ones in a fold."""
    chapter, _, section = argument.removesuffix(" folded").partition(" ")
    if section:
        return section_tables(section, runs_with_section(chapter, section, reports), argument.endswith(" folded"))
    runs = runs_of(chapter, reports)
    sparse = [run for run in runs if sparse_results.is_sparse(run)]
    if sparse:
        return sparse_table(sparse)
    dense = [run for run in runs if is_dense(run)]
    if dense:
        home = home_of_peers(chapter)
        peers = peers_in(reports) if chapter == home else []
        whole = dense_table(dense, peers)
        if len(dense) > 1 and "/" not in chapter:  # the page of experiments shows all runs
            whole = headline_table(dense, peers) + fold("All sizes, with rates and exposed times", whole)
        return whole + (link_to_peers(home) if home not in ("", chapter) else "")
    return column_split_table(runs) if runs else "Not run on real GPUs yet.\n"
