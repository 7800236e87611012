"""build the documentation site, and print where it begins"""
import argparse

from build import set_up
from process import Refusal


def main(call: argparse.Namespace) -> int:
    """Builds it, and says where it begins."""
    if call.backend:
        raise Refusal("the documentation is built without GPUs: docs takes no --backend")
    build = set_up("docs", "", call.yes)
    build.build("docs")
    print(build.folder / "html" / "index.html")
    return 0
