"""a hand-out in work/: the header with questions, the page without their answers, ./try"""
import argparse

import chapters
from command_line import given
from process import leave_to


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser)
    parser.add_argument("--student", metavar="ID", help="the student's own variation, with the course's key")
    parser.add_argument("--key", metavar="FILE", help="the course's key")
    parser.add_argument("--to", metavar="FOLDER", help="put it there instead")


def main(call: argparse.Namespace) -> int:
    leave_to("teaching/handout.py", "start", chapters.find(call.chapter), *given(call, "student", "key", "to"))
