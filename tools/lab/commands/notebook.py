"""open the notebooks, or one"""
import argparse
from typing import List, Optional

from build import set_up, shell
from command_line import given
from process import ROOT, Refusal, become


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("notebook", nargs="?", metavar="NUMBER", help="1, 2 ...")
    parser.add_argument("--execute", action="store_true", help="run them as a test")
    parser.add_argument("--update", action="store_true", help="run them, and save their new outputs")


def main(call: argparse.Namespace) -> int:
    executes = call.execute or call.update
    notebooks = find(call.notebook)
    set_up("notebooks" if executes else "notebook", "virtual", call.yes)
    python = shell("notebook_python").strip()
    if executes:
        become([python, str(ROOT / "tools" / "pages" / "notebooks.py"), *given(call, "update"), *notebooks])
    target = notebooks[0] if call.notebook else str(ROOT / "notebooks")
    become([python, "-m", "notebook", target])


def find(operand: Optional[str]) -> List[str]:
    """The paths of all notebooks, or of the one with this number."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    chosen = [path for path in paths if operand is None or path.name.partition("_")[0] == operand]
    if not chosen:
        raise Refusal(f"there is no notebook '{operand}'; the notebooks are: {', '.join(path.name.partition('_')[0] for path in paths)}")
    return [str(path) for path in chosen]
