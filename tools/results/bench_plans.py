"""The command lines with which ./lab bench measures a program on real GPUs, from the manifests (chapters.py). The first usual
line on the largest number of GPUs matters most: --quick runs no other."""
import re
import shlex
from typing import List, Sequence

from tools.chapters import Measure, all_chapters

Words = List[str]  # a command line without the program; NAME=VALUE in front is a setting of the environment

QUICK = ("--iterations", "10", "--warmup", "2")

_SETTING = re.compile("[A-Z0-9_]+=")


def is_setting(word: str) -> bool:
    """True for a word of a command line that is a setting of the environment."""
    return _SETTING.match(word) is not None


def command_line(gpus: int, line: str) -> Words:
    """A line of a manifest for this number of GPUs; sizes such as 1024*P are multiplied out."""
    words = [str(int(word[:-2]) * gpus) if re.fullmatch(r"\d+\*P", word) else word for word in shlex.split(line)]
    settings = [word for word in words if is_setting(word)]
    return [*settings, "--gpus", str(gpus), *words[len(settings):]]


def lines_of(measure: Measure, gpu_counts: Sequence[int], all_sizes: bool = False, quick: bool = False) -> List[Words]:
    """The command lines that measure a program on these numbers of GPUs."""
    most = max(gpu_counts)
    if quick:
        return [command_line(most, line) for line in measure.usual[:1]]
    lines: List[Words] = []
    for gpus in [most] if measure.on_all_gpus_only else gpu_counts:
        large = measure.large if all_sizes or gpus == 8 else ()
        lines += [command_line(gpus, line) for line in (*measure.usual, *large)]
    for where, more in measure.also:
        counts = [most] if where == "most" else [gpus for gpus in gpu_counts if gpus > 1] if where == "several" else [int(where)]
        lines += [command_line(gpus, line) for gpus in counts for line in more]
    return lines


def measure_of(program: str) -> Measure:
    """How a chapter, or the program of an experiment, is measured."""
    measures = {chapter.name: chapter.measure for chapter in all_chapters().values()}
    measures.update({each.program: each.measure for chapter in all_chapters().values() for each in chapter.experiments})
    return measures[program]


def plans(program: str, gpu_counts: Sequence[int], all_sizes: bool = False, quick: bool = False) -> List[Words]:
    """The command lines that measure a chapter, or the program of an experiment, on these numbers of GPUs."""
    return lines_of(measure_of(program), gpu_counts, all_sizes, quick)
