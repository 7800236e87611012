"""the next hint; without a task, the tasks and exercises"""
import argparse

import chapters
from command_line import given
from process import leave_to


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("task", nargs="?", metavar="TASK", help="a task, an exercise or a planted error of ./lab break")
    parser.add_argument("--solution", action="store_true", help="the solution")
    parser.add_argument("--to", metavar="FOLDER", help="in the words of the hand-out there, if its variation is another one")


def main(call: argparse.Namespace) -> int:
    task = [call.task] if call.task else []
    leave_to("teaching/hints.py", chapters.find(call.chapter), *task, *given(call, "solution", "to"))
