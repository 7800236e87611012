"""The block `calls` of docs/calls.md: the calls of CUDA, NCCL, cuBLAS and CUB in each chapter's lesson, found in the
sources."""
import os
import pathlib
import re
from typing import Dict, List, Set, Tuple

# The form of a call's name; its library.
KINDS: Tuple[Tuple[str, str], ...] = (
    ("CUDA runtime", r"cuda[A-Z]\w*(?=\()"),
    ("CUDA driver", r"cu[A-Z]\w*(?=\()"),
    ("In kernels", r"__(?:sync|shfl|ballot|any|all|reduce|match|ffs|popc|nanosleep|threadfence)\w*(?=\()|atomic[A-Z]\w*(?=\()"
                   r"|cuda::(?!std|memory_order|thread_scope|aligned_size_t)\w+"),
    ("NCCL", r"nccl[A-Z]\w*(?=\()"),
    ("cuBLAS", r"cublas(?:Lt)?[A-Z]\w*(?=\()"),
    ("CUB", r"cub::\w+(?:::\w+)?"))
PAGE = "docs"  # the folder of the page, to which links are relative
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_GPU_HEADER = re.compile(r'#include "overlap/gpu/(\w+)\.hpp"')


def calls_in(source: str, pattern: str) -> Set[str]:
    """The calls of one kind that a source makes. (A variable such as cudaStream_t stream(0) is not a call.)"""
    code = _STRING.sub('""', _COMMENT.sub("", source))
    return {name for name in re.findall(rf"(?<![\w:]){pattern}", code) if not name.endswith("_t")}


def _texts(root: pathlib.Path, *patterns: str) -> Dict[pathlib.Path, str]:
    return {path: path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(root.glob(pattern))}


def _link(path: pathlib.Path, text: str, root: pathlib.Path) -> str:
    return f"[{text}]({os.path.relpath(path, root / PAGE)})"


def helpers(root: pathlib.Path) -> Dict[pathlib.Path, str]:
    """The helpers of common/ that lessons use: header -> all its text, its .cpp included."""
    found = {}
    for header in sorted(root.glob("common/overlap/gpu/*.hpp")):
        parts = [header, *sorted(root.glob(f"common/overlap/gpu/**/{header.stem}.cpp"))]
        found[header] = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    return found


def call_table(root: pathlib.Path) -> str:
    """A table for each library: the call, the lessons with it, the helpers with it."""
    lessons = _texts(root, "chapters/[0-9][0-9]_*/*.cuh", "chapters/[0-9][0-9]_*/main.cu")
    includes: Dict[str, str] = {}  # helper -> the first chapter that includes it
    for path, text in sorted(lessons.items()):
        for name in _GPU_HEADER.findall(text):
            includes[name] = min(path.parent.name[:2], includes.get(name, "99"))
    parts: List[str] = []
    for title, pattern in KINDS:
        direct: Dict[str, Dict[str, pathlib.Path]] = {}  # call -> chapter -> its first file that makes it
        for path, text in lessons.items():
            for name in calls_in(text, pattern):
                direct.setdefault(name, {}).setdefault(path.parent.name[:2], path)
        through: Dict[str, List[str]] = {}
        for header, text in helpers(root).items():
            if header.stem in includes:
                for name in calls_in(text, pattern):
                    cell = f"{_link(header, f'`{header.name}`', root)} (from {includes[header.stem]})"
                    through.setdefault(name, []).append(cell)
        names = sorted({*direct, *through})
        if names:
            rows = [f"| `{name}` | {', '.join(_link(path, chapter, root) for chapter, path in sorted(direct.get(name, {}).items()))} "
                    f"| {', '.join(through.get(name, []))} |" for name in names]
            parts.append("\n".join([f"## {title}\n", "| call | lessons that make it | helpers that make it, and from which chapter on |",
                                    "| --- | --- | --- |", *rows]) + "\n")
    return "\n".join(parts)
