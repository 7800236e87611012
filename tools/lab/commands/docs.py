"""build the documentation site, and print the path of its first page"""
import argparse
import sys

from build import shell
from process import ROOT, Refusal, become, run, say


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--serve", action="store_true", help="then serve it on this computer only (its search needs HTTP)")


def main(call: argparse.Namespace) -> int:
    """Builds the site and prints the path of its first page, or serves it."""
    if call.backend:
        raise Refusal("the documentation is built without GPUs: docs takes no --backend")
    shell("set_up", "docs", "", str(call.yes).lower())
    folder = ROOT / "build" / "docs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"{folder.relative_to(ROOT)} cannot be made: {error.strerror}") from None
    say("building the documentation")
    if run([sys.executable, str(ROOT / "tools" / "pages" / "build_site.py"), str(folder)]) != 0:
        raise Refusal("building the documentation failed")
    if call.serve:
        become([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder / "html")])
    return 0
