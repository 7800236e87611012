"""make a new chapter: a skeleton that builds, runs and is tested"""
import argparse

from process import leave_to


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NN_NAME", help="number and name, as 22_my_idea")


def main(call: argparse.Namespace) -> int:
    leave_to("tools/new_chapter.py", call.name)
