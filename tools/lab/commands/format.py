"""format all C++ and CUDA sources"""
import argparse

from process import ROOT, become


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="only list the files that are not formatted")


def main(call: argparse.Namespace) -> int:
    """Starts tools/check_format, which requires one version of clang-format."""
    become([str(ROOT / "tools" / "check_format"), *([] if call.check else ["--fix"])])
