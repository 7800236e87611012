#!/usr/bin/env python3
"""Compiler launcher for folders whose names ninja cannot read in lists of dependencies: odd_paths.py [LAUNCHER] g++ ...

Ninja 1.11 ends a name there at ' & and other characters, which nothing can escape; it then builds all again each time, or
never again. So each such name in the file of -MF gives way to a link of the folder odd_names, which leads to the same file.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
from typing import List

READABLE = re.compile(r"[\w+,/.:~()}{%=@\[\]! -]*")  # see cmake/OddPaths.cmake
LINKS = pathlib.Path("odd_names")


def readable(path: str) -> str:
    """The path itself, or a link to it."""
    if READABLE.fullmatch(path):
        return path
    link = LINKS / (hashlib.md5(path.encode(errors="surrogateescape")).hexdigest() + pathlib.Path(path).suffix)
    LINKS.mkdir(exist_ok=True)
    try:
        link.symlink_to(os.path.abspath(path))
    except FileExistsError:
        pass  # another compiler was here
    return str(link)


def rewritten(rules: str) -> str:
    """Make's rule "object: sources", as compilers write it, without names that ninja cannot read."""
    words = re.findall(r"(?:\\.|\S)+", rules.replace("\\\n", " "))
    names = [re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words]
    # Ninja knows which object it is.
    sources = [readable(name).replace(" ", "\\ ") for name in names[1:] if not name.endswith(":")]
    return "object: " + " \\\n ".join(sources) + "\n"


def main(command: List[str]) -> int:
    """Runs the command, then rewrites what it wrote."""
    status = subprocess.run(command, check=False).returncode
    if status == 0 and "-MF" in command:
        rules = pathlib.Path(command[command.index("-MF") + 1])
        text = rules.read_text(encoding="utf-8", errors="surrogateescape")
        rules.write_text(rewritten(text), encoding="utf-8", errors="surrogateescape")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
