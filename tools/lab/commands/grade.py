"""grade a submitted header of chapter NN: points, each with its reason"""
import argparse
import sys

import chapters
import process
from build import set_up
from command_line import Parser
from process import ROOT


def arguments(parser: Parser) -> None:
    """All words behind the chapter are passed on to course/grade."""
    chapters.add_to(parser)
    parser.pass_on_behind("chapter", "the grader: FILE, or --submissions FOLDER --csv FILE; ./lab grade NN --help shows its options")


def main(call: argparse.Namespace) -> int:
    """Builds the runner and the judge. All three builds are needed: for results, races and wrong accesses."""
    chapter = chapters.find(call.chapter)
    # Otherwise the grader says what is missing.
    if "--help" not in call.arguments and (ROOT / "chapters" / chapter / "assignment" / "grade.json").is_file():
        plain = set_up("run", "virtual", call.yes)
        plain.build("teaching")
        plain.race().build("teaching")
        plain.check().build("teaching")
    process.become([sys.executable, "-I", str(ROOT / "course" / "grade"), chapter, *call.arguments])
