"""./lab notebook: the notebooks, to read and change, or run as a test."""
from typing import List

from build import set_up, shell
from call import Call
from chapters import ROOT
from process import Refusal, become


def main(call: Call) -> int:
    """Opens one or all, or runs them; --update keeps what they show."""
    executes = [option for option in call.options if option in ("--execute", "--update")]
    notebooks = find(call.operand)
    set_up("notebooks" if executes else "notebook", "virtual", call.yes)
    python = shell("notebook_python").strip()
    if executes:
        update = ["--update"] if "--update" in executes else []
        become([python, str(ROOT / "tools" / "notebooks.py"), *update, *notebooks])
    target = notebooks[0] if call.operand else str(ROOT / "notebooks")
    become([python, "-m", "notebook", target])


def find(operand: "str | None") -> List[str]:
    """The paths of all notebooks, or of the one with this number."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    chosen = [path for path in paths if operand is None or path.name.partition("_")[0] == operand]
    if not chosen:
        raise Refusal(f"there is no notebook '{operand}'; the notebooks are: {', '.join(path.name.partition('_')[0] for path in paths)}")
    return [str(path) for path in chosen]
