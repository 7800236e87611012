"""print the next hint; without TASK, list the tasks and exercises"""
import argparse

import chapters
from program import refusals
from course import hints


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="a task, an exercise or a planted error of ./lab break")
    parser.add_argument("--solution", action="store_true", help="print the solution")
    parser.add_argument("--to", default="", metavar="FOLDER", help="hints for the hand-out in this folder, if it has a variation of its own")


def main(call: argparse.Namespace) -> int:
    with refusals():
        print(hints.text(chapters.find(call.chapter), call.task, call.solution, call.to))
    return 0
