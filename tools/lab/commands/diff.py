"""show what a chapter adds to the one that it builds on"""
import argparse
import sys

import chapters
from program import refusals
from course import changes

arguments = chapters.add_to


def main(call: argparse.Namespace) -> int:
    with refusals():
        print("\n".join(changes.shown(chapters.find(call.chapter), sys.stdout.isatty())))
    return 0
