"""What ./lab bench measures of each chapter on real GPUs: its command lines, from one table. The first shape, the first
pattern and the largest number of GPUs are those that matter most: --quick takes no others, and no experiments."""
import dataclasses
from typing import Callable, Dict, List, Sequence, Tuple

Shape = Tuple[int, int, int]  # m, n, k of the whole problem
Words = List[str]  # a command line without the program; NAME=VALUE in front is a setting of the environment

# Fewer iterations: a quick run is marked, and never takes the place of a full one.
QUICK = ["--iterations", "10", "--warmup", "2"]


def gather_shapes(gpus: int) -> List[Shape]:
    """Of C = A B with rows of A and columns of B shared out: the usual one grows with the GPUs, the others are those of the
    MLP blocks of a 70B and a 175B model on 8 GPUs."""
    return [(1024 * gpus, 4096 * gpus, 4096), (8192, 3584 * gpus, 8192), (8192, 6144 * gpus, 12288)]


def scatter_shapes(gpus: int) -> List[Shape]:
    """The way back, with columns of A and rows of B: what was shared out of n is now shared out of k."""
    return [(m, k, n) for m, n, k in gather_shapes(gpus)]


def block_shapes(gpus: int) -> List[Shape]:
    """Tokens, feed-forward and hidden size of the MLP block of a 70B model, and a small one."""
    del gpus  # the models do not grow with the GPUs
    return [(8192, 28672, 8192), (1024, 14336, 4096)]


def column_split_shapes(gpus: int) -> List[Shape]:
    """Even and uneven columns."""
    del gpus
    return [(4096, 8192, 1024), (4096, 8191, 1024)]


def arguments_of(gpus: int, shape: Sequence[int] = ()) -> Words:
    """A chapter's command line."""
    return ["--gpus", str(gpus), *(word for name, size in zip("mnk", shape) for word in (f"--{name}", str(size)))]


def column_split_control(gpu_counts: Sequence[int]) -> List[Words]:
    """One GPU with half of the columns."""
    del gpu_counts
    return [arguments_of(1, (4096, 4096, 1024))]


def transports(gpu_counts: Sequence[int]) -> List[Words]:
    """Chapter 08's one buffer, by both ways, and by NCCL without peer access: NCCL reads that setting once, so that it is a
    process of its own."""
    size = ["--rows", "131072", "--features", "2048", "--entries", "1", "--duplicates", "0", "--type", "f32"]
    return [[*setting, *arguments_of(gpus), *size, "--only", only] for gpus in gpu_counts if gpus > 1
            for setting, only in (([], "transport,through_host"), (["NCCL_P2P_DISABLE=1"], "transport"))]


def densities(gpu_counts: Sequence[int]) -> List[Words]:
    """Rows of each GPU, 0.1 to 30 % of the article's table: where does version 6 no longer pay? (1 % is in the usual runs.)
    The largest take a minute and more to make and to check. Then the search for one of the article's eight ranks, which
    needs no other GPU."""
    most = arguments_of(max(gpu_counts))
    return [[*most, "--entries", str(entries), "--only", "v6_ordered", "--iterations", "5", "--timeout", "300"]
            for entries in (5000, 15000, 150000, 500000, 1500000)] + [
                [*arguments_of(8), "--features", "1", "--only", "sweep"]]


def nothing(gpu_counts: Sequence[int]) -> List[Words]:
    """A chapter without experiments."""
    del gpu_counts
    return []


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a chapter is measured."""
    shapes: Callable[[int], List[Shape]] = lambda gpus: []  # of so many GPUs, the usual one first; none: the chapter's own
    first: int = 1  # so many of the shapes; the others follow on 8 GPUs
    patterns: Sequence[str] = ()  # the ways to draw the rows of gradients, the usual one first
    only: str = ""  # the variants, if not all
    all_gpus: bool = False  # on fewer GPUs than are here it says nothing
    experiments: Callable[[Sequence[int]], List[Words]] = nothing


GRADIENTS = Plan(patterns=("uniform", "zipf", "identical"))  # the article's table and rows, drawn in these ways

PLANS: Dict[str, Plan] = {
    "01": Plan(shapes=column_split_shapes, first=2, all_gpus=True, experiments=column_split_control),
    "02": Plan(shapes=gather_shapes),
    "03": Plan(shapes=lambda gpus: gather_shapes(gpus)[:1]),
    "04": Plan(shapes=gather_shapes),
    "05": Plan(shapes=gather_shapes),
    "06": Plan(shapes=scatter_shapes),
    "07": Plan(shapes=block_shapes, first=2),
    # The transports do not depend on the rows.
    "08": dataclasses.replace(GRADIENTS, only="dense_nccl,host_gloo", experiments=transports),
    "09": GRADIENTS, "10": GRADIENTS, "11": GRADIENTS, "12": GRADIENTS, "13": GRADIENTS,
    "14": dataclasses.replace(GRADIENTS, experiments=densities),
}


def plans(chapter: str, gpu_counts: Sequence[int], all_sizes: bool = False, quick: bool = False) -> List[Words]:
    """The command lines that measure a chapter on these numbers of GPUs."""
    plan = PLANS.get(chapter[:2], Plan())
    most = [max(gpu_counts)]
    lines: List[Words] = []
    for gpus in most if quick or plan.all_gpus else gpu_counts:
        shapes: Sequence[Sequence[int]] = plan.shapes(gpus) or [()]
        shown = len(shapes) if all_sizes or gpus == 8 else plan.first
        patterns = [["--pattern", pattern] for pattern in plan.patterns] or [[]]
        only = ["--only", plan.only] if plan.only else []
        lines += [[*arguments_of(gpus, shape), *pattern, *only]
                  for shape in shapes[:1 if quick else shown] for pattern in patterns[:1 if quick else None]]
    return lines if quick else lines + plan.experiments(gpu_counts)
