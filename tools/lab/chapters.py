"""The chapters and their experiments, found by their folders and files."""
import argparse
import re
from typing import List

from process import ROOT, Refusal
from course import work


def names() -> List[str]:
    """All chapters, such as 01_column_split."""
    return sorted(path.parent.name for path in ROOT.glob("chapters/[0-9][0-9]_*/main.cu"))


def add_to(parser: argparse.ArgumentParser, **more: str) -> None:
    """NN of a command line."""
    parser.add_argument("chapter", metavar="NN", help="a chapter: 01, 1 or 01_column_split", **more)  # type: ignore[arg-type]


def find(wanted: str) -> str:
    """1, 01 or 01_column_split -> 01_column_split"""
    number = wanted.zfill(2) if re.fullmatch("[0-9]{1,2}", wanted) else wanted
    for name in names():
        if number in (name, name[:2]):
            return name
    meant = work.meant(wanted, [*names(), *(name[3:] for name in names())])
    raise Refusal(f"there is no chapter '{wanted}'{meant}; the chapters are: {', '.join(names())}")


def experiments(chapter: str) -> List[str]:
    """The chapter's experiments, from the files of its folder experiments."""
    return sorted(path.stem for path in ROOT.glob(f"chapters/{chapter}/experiments/*.cu"))


def find_experiment(wanted: str) -> str:
    """4/transports -> 04_transports, which is its target and its program"""
    number, _, experiment = wanted.partition("/")
    chapter = find(number)
    here = experiments(chapter)
    if experiment not in here:
        raise Refusal(f"{chapter} has no experiment '{experiment}'; its experiments are: {', '.join(here) or 'none'}")
    return f"{chapter[:2]}_{experiment}"
