"""what the chapter adds to the one that it builds on"""
import argparse

import chapters
from process import leave_to

arguments = chapters.add_to


def main(call: argparse.Namespace) -> int:
    leave_to("teaching/changes.py", chapters.find(call.chapter))
