#!/usr/bin/env python3
"""device_calls.py FILE.cu ... [-- COMPILER OPTIONS]

Finds code in kernels that g++ accepts and nvcc refuses: calls of functions that are neither `__device__` nor `constexpr`,
and `throw`. clang distinguishes device from host functions; it reads the sources as HIP, which needs no toolkit
(include/vgpu/editor.h), and does not check functions that no kernel calls. Prints clang's errors; the exit status is 1
if there is one, and 77 if clang is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys
from typing import List

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include"
# Compiles for a GPU: otherwise clang checks only kernels, not the functions that they call. The kind of GPU does not matter.
OPTIONS = ["-std=c++20", "-x", "hip", "--cuda-device-only", "--offload-arch=gfx906", "-nogpuinc", "-nogpulib",
           "-fsyntax-only", "-ferror-limit=0", "-w", "-isystem", str(HEADERS), "-include", "vgpu/editor.h"]
# Other errors are ignored, because the GPU's assembler is not PTX, and the built-in variables are host variables here: g++
# and nvcc find real ones.
REFUSED = re.compile(r"error: (reference to __host__ function|cannot use 'throw')|note: .* call to __host__ function from")


def errors(file: str, options: List[str]) -> List[str]:
    """clang's errors about the file, each with its notes."""
    done = subprocess.run(["clang++", *OPTIONS, *options, file], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or " fatal error: " in done.stderr:
        return [done.stderr]
    reports = re.split(r"^(?=\S+:\d+:\d+: (?:fatal )?error: )", done.stderr, flags=re.MULTILINE)
    return [report for report in reports[1:] if REFUSED.search(report)]


def main(arguments: List[str]) -> int:
    split = arguments.index("--") if "--" in arguments else len(arguments)
    if split == 0:
        sys.exit(__doc__)
    if shutil.which("clang++") is None:
        print("device_calls.py: clang is not installed")
        return 77
    found = [report for file in arguments[:split] for report in errors(file, arguments[split + 1:])]
    print("".join(re.sub(r"\n(In file included|\d+ errors? generated).*", "\n", report) for report in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
