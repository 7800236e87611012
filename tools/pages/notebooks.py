#!/usr/bin/python3
"""Runs the notebooks and compares their outputs with the stored ones: tools/pages/notebooks.py [--update] NOTEBOOK...

In text outputs numbers may differ, words may not; pictures must exist. --update stores the new outputs. Stored notebooks
contain no metadata of the run and no execution counts, and have at most 300 KB. ./lab notebook starts this script with the
system's Python, which has Debian's python3-nbclient.
"""
import argparse
import os
import pathlib
import re
import sys
import time
from typing import Any, Dict, List

LIMIT_BYTES = 300_000
LIMIT_S = 60  # for a notebook whose programs are built
NUMBER = re.compile(r"-?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?")
Cell = Dict[str, Any]


class NotebookError(Exception):
    """A notebook fails, or its outputs differ from the stored ones."""


def shown(cell: Cell) -> List[str]:
    """A cell's outputs as words: numbers are masked, a picture is one word."""
    words = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            words.append(output["text"])
        elif "image/png" in output.get("data", {}):
            words.append("a picture")
        else:
            words.append(output.get("data", {}).get("text/plain", ""))
    # Columns move with the width of numbers.
    return [re.sub(r"[ \t]+", " ", NUMBER.sub("N", "".join(text))).strip() for text in words]


def stripped(notebook: Any) -> Any:
    """The notebook without execution counts, times and the version of Python, which differ from run to run."""
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                            "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook["cells"], start=1):
        cell["metadata"], cell["id"] = {}, f"cell-{number}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            for output in cell["outputs"]:
                output.pop("execution_count", None)
                if "metadata" in output:
                    output["metadata"] = {}
                if "data" in output:  # a table's HTML is dropped: the site and GitHub show its text
                    output["data"] = {kind: data for kind, data in output["data"].items() if kind in ("text/plain", "image/png")}
    return notebook


def differences(kept: Any, new: Any) -> List[str]:
    """The differences between a run and the stored outputs, one sentence a cell."""
    if len(kept["cells"]) != len(new["cells"]):
        return ["it has other cells"]
    return [f"cell {number} shows {shown(now)}, kept is {shown(before)}"
            for number, (before, now) in enumerate(zip(kept["cells"], new["cells"]), start=1) if shown(before) != shown(now)]


def executed(notebook: Any, folder: pathlib.Path) -> Any:
    """The notebook after all its cells have run."""
    import nbclient
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # silences the kernel's debugger, which is not used
    try:
        return nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                                       resources={"metadata": {"path": str(folder)}}).execute()
    except nbclient.exceptions.CellExecutionError as error:
        raise NotebookError(f"a cell fails:\n{error}") from None


def check(path: pathlib.Path, update: bool) -> str:
    """Runs one notebook. Returns a sentence on it; throws NotebookError if it fails or has drifted."""
    import nbformat
    kept, started = nbformat.read(path, as_version=4), time.monotonic()
    new = stripped(executed(nbformat.from_dict(kept), path.parent))
    took = time.monotonic() - started
    text = nbformat.writes(new) + "\n"
    if len(text.encode()) > LIMIT_BYTES:
        raise NotebookError(f"it has {len(text.encode())} bytes, more than {LIMIT_BYTES}")
    if update:
        path.write_text(text, encoding="utf-8")
        return f"{took:.0f} s, written"
    found = differences(nbformat.read(path, as_version=4), new)
    if found:
        raise NotebookError("\n".join(found) + "\n(./lab notebook N --update keeps what it shows now)")
    return f"{took:.0f} s, as kept" + (f"; longer than {LIMIT_S} s: what it runs was built first" if took > LIMIT_S else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true", help="keep what the notebooks show now")
    parser.add_argument("notebooks", nargs="+", type=pathlib.Path, metavar="NOTEBOOK.ipynb")
    arguments = parser.parse_args()
    status = 0
    for path in arguments.notebooks:
        try:
            print(f"{path.name}: {check(path, arguments.update)}", flush=True)
        except NotebookError as error:
            print(f"{path.name}: {error}", file=sys.stderr, flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
