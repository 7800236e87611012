"""the next hint; without a task, the tasks and exercises"""
import argparse

import chapters
from program import refusals
from course import hints


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="a task, an exercise or a planted error of ./lab break")
    parser.add_argument("--solution", action="store_true", help="the solution")
    parser.add_argument("--to", default="", metavar="FOLDER", help="in the words of the hand-out there, if its variation is another one")


def main(call: argparse.Namespace) -> int:
    with refusals():
        print(hints.text(chapters.find(call.chapter), call.task, call.solution, call.to))
    return 0
