"""The tables and pictures of docs/planner.md: the planner's errors against docs/results, its constants with their sources, and
its predictions for 8 to 4,096 GPUs. The program of ./lab plan computes all of them from the output of the chapters' programs,
which must be built."""
import functools
import pathlib
import statistics
import subprocess
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from tools.pages import sparse_page
from tools.pages.excerpts import PageError
from tools.results import planner
from tools.results.ladder import table
from tools.results.plot_results import Points, drawing
from tools.results.results import Run

PROGRAM = pathlib.Path("tools", "results", "plan.py")  # in the repository
MACHINE = "h200-nvlink"
GPUS = [2**i for i in range(3, 13)]
SPARSE = "sparse_all_reduce"
# The pictures, and the lines of each: a line's label, and the variant that it shows.
DENSE_LINES = {"ring of NCCL, 03": "ring", "all-gather, 02": "nccl", "two levels, 20": "two_level"}
SPARSE_LINES = {"v2": "v2_where", "v4": "v4_broadcast_eq", "v6": "v6_ordered", "bitmap plan, 15": "bitmap_plan",
                "dense": "dense_nccl"}
PICTURES = {"docs/pictures/planner_dense.svg": ("all_gather_matmul", DENSE_LINES),
            "docs/pictures/planner_sparse.svg": (SPARSE, SPARSE_LINES)}

Reports = List[Dict[str, Any]]


def can_predict(repository: pathlib.Path) -> bool:
    """True if the programs of all chapters are built, which print the cost cards."""
    return all((repository / "build" / "virtual" / "bin" / path.parent.name).exists() for path in repository.glob("chapters/[0-9][0-9]_*/main.cu"))


def percent(part: float, sign: str = "") -> str:
    """A number in the tables' format."""
    return f"{100 * part:{sign}.1f} %"


@functools.lru_cache(maxsize=None)
def planned(program: pathlib.Path, gpus: int) -> Dict[str, Any]:
    """The predictions for this number of GPUs at the usual sizes, by operation."""
    dense, sparse = (planner.plan(program, "--machine", MACHINE, "--gpus", str(gpus), *more) for more in ((), ("--sparse",)))
    return {operation["operation"]: operation for operation in (*dense["operations"], *sparse["operations"])}


def catalogue(program: pathlib.Path) -> Set[str]:
    """The chapters that the planner knows."""
    return {variant["chapter"] for operation in planned(program, 2).values() for variant in operation["variants"]}


class Check:
    """All measured times with their predictions."""

    def __init__(self, program: pathlib.Path, reports: Reports) -> None:
        self.program = program
        self.runs: List[Run] = [run for report in reports for run in report["runs"]]
        self.rows = planner.rows_of(self.runs, program)
        if not self.rows:
            raise PageError("nothing that was measured is predicted")

    def errors(self) -> str:
        """A line for each chapter, then one each for the chapters from which constants were taken, for the others, and for
        all."""
        def line(name: str, rows: Sequence[planner.Row]) -> List[str]:
            worst = max(rows, key=lambda row: abs(row.error))
            return [name, str(len(rows)), percent(statistics.median(abs(row.error) for row in rows)),
                    f"{percent(worst.error, '+')}, `{worst.variant}` of {worst.problem[1]}"]
        by_chapter: Dict[str, List[planner.Row]] = {}
        for row in self.rows:
            by_chapter.setdefault(row.problem[0].partition("/")[0], []).append(row)
        lines = [line(f"[`{chapter}`](../chapters/{chapter}/README.md){' *' if rows[0].fitted else ''}", rows)
                 for chapter, rows in sorted(by_chapter.items())]
        groups = {"those with *": [row for row in self.rows if row.fitted], "the others": [row for row in self.rows if not row.fitted],
                  "**all**": self.rows}
        lines += [line(name, rows) for name, rows in groups.items() if rows]
        compared = {row.problem[0] for row in self.rows}
        stamps = dict.fromkeys(_machine_of(run) for run in planner.predictable(self.runs) if run["chapter"] in compared)
        return table(["chapter", "rows", "median error, without sign", "largest error"], lines) + f"\nMeasured: {'; '.join(stamps)}.\n"

    def rows_table(self) -> str:
        """Each row."""
        return table(["chapter", "problem", "GPUs", "variant", "measured, us", "predicted, us", "error"],
                     [[*row.problem, f"`{row.variant}`", f"{row.measured_us:.1f}", f"{row.predicted_us:.1f}", percent(row.error, "+")]
                      for row in self.rows])

    def winners(self) -> str:
        """How often the planner names the fastest variant, and each case in which it names another one."""
        found = planner.winners_of(self.rows)
        wrong = [winner for winner in found if not winner.right]
        said = f"The fastest variant is named in {len(found) - len(wrong)} of {len(found)} problems.\n"
        if not wrong:
            return said
        return said + "\n" + table(["chapter", "problem", "GPUs", "predicted winner", "measured winner", "slower by"],
                                   [[*winner.problem, f"`{winner.predicted}`", f"`{winner.measured}`", percent(winner.cost)] for winner in wrong])

    def left_out(self) -> str:
        """The algorithms that were measured but are not predicted, and those that are predicted but were not measured."""
        known = catalogue(self.program)
        missing = planner.left_out(self.runs, self.rows, known)
        unexplained = [f"{chapter} {variant}" for chapter, variant, reason in missing if not reason]
        if unexplained:
            raise PageError(f"measured, neither predicted nor in LEFT_OUT of tools/results/planner.py: {', '.join(unexplained)}")
        unmeasured = sorted(known - {row.problem[0].partition("/")[0] for row in self.rows})
        by_reason: Dict[Tuple[str, str], List[str]] = {}
        for chapter, variant, reason in missing:
            by_reason.setdefault((chapter, reason), []).append(f"`{variant}`")
        return table(["chapter", "variants", "why"],
                     [[chapter, ", ".join(variants), reason] for (chapter, reason), variants in by_reason.items()]) + \
            (f"\nPredicted, and not measured in a way that can be compared: {', '.join(unmeasured)}.\n" if unmeasured else "")


def _machine_of(run: Run) -> str:
    """The machines of the measurements. The dates are in the chapters' tables, because a file has runs of several days."""
    hardware = run["hardware"]
    return f"{hardware['gpus']} x {hardware['gpu']}, driver {hardware['driver']}, CUDA {hardware['toolkit']}"


def constants(program: pathlib.Path) -> str:
    """The constants of the machine file, each with its source."""
    prediction = planner.plan(program, "--machine", MACHINE, "--operation", "matmul")
    return table(["constant", "value", "from"],
                 [[f"`{one['name']}`", f"{one['is']:g}", one["from"]] for one in prediction["constants"]])


def scale(program: pathlib.Path) -> str:
    """The fastest variant for each number of GPUs, and its bottleneck."""
    def cell(operation: Dict[str, Any]) -> List[str]:
        winner = next(variant for variant in operation["variants"]
                      if operation["winner"] == f"{variant['chapter']} {variant['variant']}")
        name = f"{winner['chapter'][:2]} `{winner['variant']}`"
        if "gemm_only_us" not in operation:
            return [name, f"{winner['predicted_us'] / 1e3:.2f}", winner["bound"]]
        return [name, f"{winner['predicted_us'] / operation['gemm_only_us']:.3f}", winner["bound"]]
    names = {"all_gather_matmul": "all-gather, product", "matmul_reduce_scatter": "product, reduce-scatter", "mlp_block": "MLP block",
             SPARSE: "sparse sum"}
    header = ["GPUs"] + [word for operation, name in names.items()
                         for word in (name, "ms" if operation == SPARSE else "x GEMM only", "bound by")]
    return table(header, [[f"{gpus:,}"] + [word for name in names for word in cell(planned(program, gpus)[name])] for gpus in GPUS])


def output(program: pathlib.Path, arguments: Sequence[str]) -> str:
    """The output of ./lab plan for these arguments."""
    run = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise PageError(f"plan {' '.join(arguments)}: {run.stderr.strip()}")
    return f"```\n$ ./lab plan {' '.join(arguments)}\n{run.stdout.rstrip()}\n```\n"


def block(argument: str, program: pathlib.Path, reports: Reports) -> str:
    """The text of a block `planner ARGUMENT`."""
    what, *arguments = argument.split()
    blocks: Dict[str, Callable[[], str]] = {
        "errors": lambda: Check(program, reports).errors(), "rows": lambda: Check(program, reports).rows_table(),
        "winners": lambda: Check(program, reports).winners(), "left_out": lambda: Check(program, reports).left_out(),
        "constants": lambda: constants(program), "scale": lambda: scale(program), "density": lambda: sparse_page.density(program),
        "progression": lambda: sparse_page.progression(program, reports), "output": lambda: output(program, arguments)}
    if what not in blocks:
        raise PageError(f"there is no block 'planner {what}'")
    return blocks[what]()


def picture(name: str, program: pathlib.Path) -> str:
    """One of PICTURES: predicted times against the number of GPUs, for the numbers that a variant supports."""
    operation, lines = PICTURES[name]
    points: Dict[str, Points] = {line: [] for line in lines}
    for gpus in GPUS:
        prediction = planned(program, gpus)[operation]
        base = prediction.get("gemm_only_us", 1e3)
        times = planner.predicted(prediction)
        for line, variant in lines.items():
            if variant in times:
                points[line].append((gpus, times[variant] / base))
    unit = "x GEMM only" if operation != SPARSE else "ms"
    return drawing(points, "GPUs", f"{MACHINE}, 8 GPUs in a node: not measured", f"{unit} (predicted)", "Predicted time")
