#!/usr/bin/env python3
"""./lab plan: predicts the time of a call of each chapter's algorithms on any machine. Nothing is run: the chapters' cost cards
contain the bytes and floating point operations, a machine file the rates, and plan_rules.py the dependencies."""
import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from tools.results import plan_rules  # noqa: E402
from tools.chapters import Chapter, all_chapters  # noqa: E402
from tools.results.plan_machine import BOUNDS, Machine, PlanError, read_machine, without  # noqa: E402

PROGRAMS = REPOSITORY / "build" / "virtual" / "bin"
MOST_SIZE, MOST_GPUS = 2**26, 4096
MOST_OPERAND, MOST_RESULT = 1e13, 1e14  # elements: the chapters count the tiles of a matrix in 32 bits
COUNTS = ("messages", "bytes_out", "bytes_in", "host_waits", "products", "launches", "comparisons", "memory")  # of a cost card
SPARSE = "sparse_all_reduce"
# The formula of each operation.
FORMULAS = {
    "matmul": "C[{own_m}, {own_n}] = A[{own_m}, {own_k}] B[{own_k}, {own_n}]: a rank's product, all of A there",
    "all_gather_matmul": "C[{m}, {n}] = A[{m}, {k}] B[{k}, {n}]: all-gather of A, then the product",
    "matmul_reduce_scatter": "C[{m}, {n}] = X[{m}, {k}] W[{k}, {n}]: the product, then a reduce-scatter of C",
    "matmul_all_reduce": "C[{m}, {n}] = A[{m}, {k}] B[{k}, {n}]: the product of a part of k, then an all-reduce of C",
    "mlp_block": "Y = X + act(norm(X) W1) W2 of {m} tokens, hidden size {k}, inner size {n}",
    SPARSE: "the sum of {entries} rows of each rank, of a table of {rows} x {features}; {global} different rows in all"}
Prediction = Dict[str, Any]


def operation_of(chapter: Chapter) -> str:
    """The operation of a chapter's algorithms. A rank's GEMM alone is in no manifest, because no peer is compared with it."""
    if chapter.kind == "dense":
        return chapter.operation or "matmul"
    return SPARSE if chapter.kind == "sparse" else ""


def chapters_of(operation: str) -> List[str]:
    """The chapters whose algorithms compute it, in order."""
    return [name for name, chapter in sorted(all_chapters().items()) if operation_of(chapter) == operation]


@functools.lru_cache(maxsize=None)
def cards_of(program: pathlib.Path, arguments: Tuple[str, ...]) -> Dict[str, Any]:
    """The cost cards of a chapter's program."""
    run = subprocess.run([program, "--cost", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise PlanError(run.stderr.strip().removeprefix(f"{program.name}: ").removesuffix(" (--help shows the options)"))
    cards: Dict[str, Any] = json.loads(run.stdout)
    return cards


def predict_variant(machine: Machine, card: Dict[str, Any], variant: Dict[str, Any]) -> Dict[str, Any]:
    """One variant: its time and its bottleneck, or the reason why it cannot run on this machine."""
    counted = variant.get("cost", {})
    result: Dict[str, Any] = {"chapter": card["chapter"], "variant": variant["variant"], "cost": {name: counted.get(name, 0) for name in COUNTS}}
    most, per_node = variant.get("max_ranks", 0), machine.gpus_per_node
    if most and card["gpus"] > most:
        return {**result, "why_not": f"its kernel takes at most {most} ranks"}
    if card["gpus"] > per_node and any(step["rule"] in plan_rules.PEERS for step in variant["steps"]):
        reach = "GPUs do not" if per_node == 1 else f"only {per_node} GPUs"
        return {**result, "why_not": f"{reach} reach each other's memory"}
    if "differs" in variant:
        result["differs"] = variant["differs"]
    us = plan_rules.call_us(machine, card, variant)
    saved = {bound: max(0.0, us - plan_rules.call_us(without(machine, bound), card, variant)) for bound in BOUNDS}
    return {**result, "predicted_us": us, "bound": max(BOUNDS, key=lambda bound: saved[bound]), "saved_us": saved}


def predict_operation(machine: Machine, operation: str, cards: Sequence[Dict[str, Any]]) -> Prediction:
    """All variants of an operation, each by the chapter that has its schedule, and the fastest of them. A variant with another
    result is never the fastest."""
    first = cards[0]
    own = first["products"][0] if first["products"] else {}
    formula = FORMULAS.get(operation, "{m} x {n} x {k}").format(**first, **{f"own_{name}": size for name, size in own.items()})
    result: Prediction = {"operation": operation, "formula": formula}
    alone = plan_rules.gemm_only_us(machine, first)
    if alone is not None:
        result["gemm_only_us"] = alone
    variants = [(card, variant) for card in cards for variant in card["variants"]]
    result["variants"] = [predict_variant(machine, card, variant) for card, variant in variants
                          if "steps" in variant or 0 < variant.get("max_ranks", 0) < card["gpus"]]
    may_win = [variant for variant in result["variants"] if "predicted_us" in variant and "differs" not in variant]
    least = min((variant["predicted_us"] for variant in may_win), default=0)
    result["winner"] = next((f"{variant['chapter']} {variant['variant']}" for variant in may_win
                             if variant["predicted_us"] <= least * (1 + 1e-12)), "")  # the first of several equally fast ones
    return result


def table(operation: Prediction) -> Iterator[str]:
    """The lines of an operation's table."""
    alone: Optional[float] = operation.get("gemm_only_us")
    yield f"\n{operation['operation']}: {operation['formula']}"
    if alone is not None:
        yield f"  GEMM only, the product alone: predicted {alone:.1f} us"
    yield " " * 85 + "   us less without:"
    yield f"  {'chapter':27}{'variant':22}{'predicted us':>14}{'x GEMM' if alone else '':>10}{'bound by':>10}" + "".join(f"{bound:>10}" for bound in BOUNDS)
    for variant in operation["variants"]:
        name = f"  {variant['chapter']:27}{variant['variant']:22}"
        if "why_not" in variant:
            yield f"{name}  not here: {variant['why_not']}"
            continue
        us, ratio = variant["predicted_us"], f"{variant['predicted_us'] / alone:.3f}" if alone else ""
        saved = "".join(f"{variant['saved_us'][bound]:10.1f}" for bound in BOUNDS)
        yield f"{name}{us:14.1f}{ratio:>10}{variant['bound']:>10}{saved}" + (f"  {variant['differs']}" if "differs" in variant else "")
    if operation["winner"]:
        yield f"  predicted winner: {operation['winner']}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise PlanError(message.removeprefix("argument "))


def whole(most: int) -> Callable[[str], int]:
    """Parses a size."""
    def size(text: str) -> int:
        if not text.isdigit() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 to {most}")
        return int(text)
    return size


def parser() -> Parser:
    """The options of the command line."""
    made = Parser(prog="./lab plan", description="Predicts how long a call of each chapter's algorithms takes; runs nothing.", allow_abbrev=False)
    size, gpus = whole(MOST_SIZE), whole(MOST_GPUS)
    made.add_argument("--m", type=size, metavar="SIZE", help="rows of A or X, tokens of an MLP block [1024 for each GPU]")
    made.add_argument("--n", type=size, metavar="SIZE", help="columns of B or W, inner size of an MLP block [4096 for each GPU; of W 4096]")
    made.add_argument("--k", type=size, metavar="SIZE", help="columns of A or X, hidden size of an MLP block [4096; of X 4096 for each GPU]")
    made.add_argument("--gpus", type=gpus, default=8, metavar="COUNT", help="ranks, up to 4096 [8]")
    made.add_argument("--gpus-per-node", type=gpus, default=0, metavar="COUNT",
                      help="GPUs that reach each other's memory [as the machine's file says]")
    made.add_argument("--machine", default="h200-nvlink", help="NAME or FILE of a machine [h200-nvlink]")
    made.add_argument("--type", default="f16", choices=("f16", "bf16"), help="type of the elements; both are equally fast [f16]")
    made.add_argument("--operation", choices=tuple(FORMULAS), help="only this one")
    made.add_argument("--sparse", action="store_true", help="the sums of row-sparse gradients, chapters 08 to 15")
    made.add_argument("--rows", type=size, default=5_000_000, metavar="SIZE", help="sparse: rows of the table [5000000]")
    made.add_argument("--features", type=size, default=2048, metavar="SIZE", help="sparse: elements of a row [2048]")
    made.add_argument("--entries", type=size, default=50_000, metavar="SIZE", help="sparse: different rows of each rank [50000]")
    made.add_argument("--global", type=size, metavar="SIZE", help="sparse: different rows of all ranks [what rows at random give]")
    made.add_argument("--json", metavar="FILE", help="write the prediction to this file; - for standard output")
    return made


def sizes_of(call: argparse.Namespace, operation: str) -> List[str]:
    """The sizes with which a chapter's program is called."""
    if operation == SPARSE:
        sizes = {name: getattr(call, name) for name in ("rows", "features", "entries", "global")}
    else:
        sizes = {"m": call.m or 1024 * call.gpus, "n": call.n or 4096 * call.gpus, "k": call.k or 4096}
        m, n, k = sizes.values()
        if max(m * k, k * n) > MOST_OPERAND or m * n > MOST_RESULT:
            raise PlanError("--m, --n, --k: a matrix of more elements than any machine holds")
        if operation == "matmul_reduce_scatter" and not (call.m or call.n or call.k):
            # If sizes are not given, the one that is divided among the ranks grows with the number of GPUs: here it is k.
            sizes.update(n=k, k=n)
        if operation == "matmul_all_reduce" and not (call.m or call.n or call.k):
            sizes.update(m=16, n=8192, k=3584 * call.gpus)  # few rows: large ones are hidden behind GEMMs
        sizes["type"] = call.type
    return [word for name, size in sizes.items() if size is not None for word in (f"--{name}", str(size))]


def operations_of(call: argparse.Namespace) -> List[str]:
    """The requested operations."""
    if call.sparse and call.operation not in (None, SPARSE):
        raise PlanError(f"--sparse: {call.operation} is not sparse")
    if call.sparse:
        return [SPARSE]
    return [call.operation] if call.operation else [name for name in FORMULAS if name != SPARSE]


def questions(call: argparse.Namespace) -> Tuple[Machine, Dict[str, Tuple[str, ...]]]:
    """The machine, and the programs' arguments by operation. Throws PlanError for whatever is wrong without running a
    program."""
    machine = read_machine(call.machine, call.gpus_per_node)
    per_node = machine.gpus_per_node
    if call.gpus > per_node and call.gpus % per_node:
        raise PlanError(f"--gpus-per-node: nodes of {per_node} GPUs cannot hold {call.gpus}")
    nodes = ("--gpus", str(call.gpus), "--gpus-per-node", str(min(call.gpus, per_node)))
    return machine, {operation: (*nodes, *sizes_of(call, operation)) for operation in operations_of(call)}


def predict(call: argparse.Namespace, programs: pathlib.Path) -> Prediction:
    """The requested predictions; the programs have been built."""
    machine, asked = questions(call)
    operations = [predict_operation(machine, operation, [cards_of(programs / name, words) for name in chapters_of(operation)])
                  for operation, words in asked.items()]
    return {"predicted": True, "machine": machine.name, "gpus": call.gpus, "gpus_per_node": machine.gpus_per_node, "type": call.type,
            "constants": list(machine.sources), "operations": operations}


def answer(call: argparse.Namespace, programs: pathlib.Path) -> None:
    """Prints the predictions and writes the requested files."""
    prediction = predict(call, programs)
    text = json.dumps(prediction, indent=2) + "\n"
    if call.json == "-":
        sys.stdout.write(text)
        return
    print(f"Predicted, not run: {call.gpus} GPUs of {prediction['machine']}, {prediction['gpus_per_node']} on a node, {call.type}")
    for operation in prediction["operations"]:
        print(*table(operation), sep="\n")
    if call.json:
        try:
            pathlib.Path(call.json).write_text(text, encoding="utf-8")
        except OSError:
            raise PlanError(f"--json: {call.json} cannot be written") from None


def main(words: Sequence[str]) -> int:
    """Returns the exit status. With --programs as first word it prints only the programs that have to be built."""
    only_names = words[:1] == ["--programs"]
    if only_names and "--help" in words:
        return 0
    try:
        call = parser().parse_args(words[1:] if only_names else words)
        if only_names:
            print(*(name for operation in questions(call)[1] for name in chapters_of(operation)))
        else:
            answer(call, pathlib.Path(os.environ.get("OVERLAP_PROGRAMS", PROGRAMS)))
    except PlanError as error:
        print(f"plan: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
