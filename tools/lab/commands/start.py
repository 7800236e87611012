"""make a hand-out in work/: the header with questions, the page without answers, ./try"""
import argparse
import os
import shlex

import chapters
import process
from program import refusals
from course import handout


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("--student", default="", metavar="ID", help="the student's own variation, with the course's key")
    parser.add_argument("--key", default="", metavar="FILE", help="the course's key")
    parser.add_argument("--to", default="", metavar="FOLDER", help="make it in this folder instead")


def main(call: argparse.Namespace) -> int:
    with refusals():
        folder = handout.start(chapters.find(call.chapter), call.student, call.key, call.to)
    print(f"{os.path.relpath(folder)}\n\nRead TASKS.md there, edit the header, and call ./try in that folder.")
    if call.to:
        print(f"Where it does not find the repository: ./try --repository {shlex.quote(str(process.ROOT))}, once.")
    return 0
