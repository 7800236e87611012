"""measure all chapters (or one) beside PyTorch and JAX, and print the ladder"""
import argparse

import chapters
import process
import tour
from build import set_up, shell
from command_line import given

OPTIONS = ("gpus", "sizes", "peers", "limit", "quick")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tools/results/bench.py, which checks their values."""
    chapters.add_to(parser, nargs="?")
    parser.add_argument("--gpus", metavar="LIST", help="numbers of GPUs, such as 2,8 (default: 2, 4 and all)")
    parser.add_argument("--sizes", metavar="first|all", help="all: on fewer than 8 GPUs the larger sizes, too")
    parser.add_argument("--peers", metavar="yes|no", help="no: chapters only")
    parser.add_argument("--quick", action="store_true", help="one size of each on all GPUs, at most six minutes")
    parser.add_argument("--limit", metavar="SECONDS", help="measure what fits into this time, and list the rest")


def main(call: argparse.Namespace) -> int:
    """Builds the measured programs, then starts tools/results/bench.py."""
    names = chapters.names() if call.chapter is None else [chapters.find(call.chapter)]
    if not call.quick:
        names = [program for name in names for program in (name, *(f"{name[:2]}_{each}" for each in chapters.experiments(name)))]
    build = set_up("run", call.backend, call.yes)
    unbuilt = [f"--unbuilt={name}" for name in tour.build_all(build, names)]
    build.need_gpus()
    here = len(shell("gpus_here").splitlines())
    # Without -I: PyTorch and JAX may be installed for this user only.
    process.leave_to("tools/results/bench.py", f"--backend={build.backend}", f"--here={here}", *unbuilt, *given(call, *OPTIONS), *names)
