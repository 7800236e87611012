#!/usr/bin/env python3
"""The sources in an editor on a computer without CUDA: clangd, configured by .clangd, must find no error in a lesson, a program
and a test, and must find planted ones. Needs the configured build for virtual GPUs, as the editor does."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import List

from support import REPOSITORY
COMMANDS = REPOSITORY / "build" / "virtual" / "compile_commands.json"
HEADERS = REPOSITORY / "virtual_gpu" / "include"

KERNEL = """#pragma once
#include <cuda_runtime.h>
#include <vector>
inline int on_host(int value) { return value; }
__device__ inline int doubled(int value) { return 2 * value; }
__global__ void write(int* cell) {
  __shared__ int kept;
  kept = CALL;
  __syncthreads();
  cell[threadIdx.x] = kept;
}
inline void launch(int* cell) { write<<<1, 32>>>(LAUNCH); }
"""


def errors(file: pathlib.Path) -> List[str]:
    """clangd's errors in a file. It tries its features on lines 1 and 2 only, but parses the whole file."""
    done = subprocess.run(["clangd", f"--check={file}", "--check-lines=1-2"], cwd=REPOSITORY, capture_output=True,
                          text=True, timeout=100, check=False)
    count = re.search(r"All checks completed, (\d+) errors", done.stderr)
    if count is None:
        return [f"clangd ended with exit status {done.returncode}: {done.stderr[-500:]}"]
    found = [line for line in done.stderr.splitlines() if line.startswith("E[")]
    assert len(found) == int(count.group(1)) and (done.returncode != 0) == bool(found), done.stderr
    return found


class EditorTest(unittest.TestCase):
    def test_sources_have_no_errors(self) -> None:
        if not COMMANDS.exists():
            self.skipTest("build/virtual is not configured: ./lab run does it")
        for name in ("chapters/13_sparse_v5_kernel/tile_search.cuh", "chapters/13_sparse_v5_kernel/main.cu",
                     "chapters/03_ring_all_gather/tests/ring_all_gather_test.cu"):
            with self.subTest(name):
                self.assertEqual(errors(REPOSITORY / name), [])

    def test_errors_are_found(self) -> None:
        cases = {("doubled(threadIdx.x)", "cell"): "",
                 ("undeclared(threadIdx.x)", "cell"): "undeclared",
                 ("on_host(threadIdx.x)", "cell"): "no matching function for call to 'on_host'",
                 ("0", "std::vector<int>()"): "no matching function for call to 'write'"}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copy(REPOSITORY / ".clangd", root)
            build = root / "build" / "virtual"
            build.mkdir(parents=True)
            (build / "compile_commands.json").write_text(json.dumps([{
                "directory": str(build), "file": str(root / "main.cu"),
                "command": f"g++ -isystem {HEADERS} -x c++ -std=c++20 -c {root / 'main.cu'}"}]))
            file = root / "kernel.cuh"
            for (call, argument), sentence in cases.items():
                with self.subTest(call):
                    file.write_text(KERNEL.replace("CALL", call).replace("LAUNCH", argument))
                    found = errors(file)
                    self.assertEqual(len(found), 1 if sentence else 0, found)
                    self.assertIn(sentence, " ".join(found))


if __name__ == "__main__":
    if shutil.which("clangd") is None:
        print("skipped: clangd is not here")
        sys.exit(77)
    unittest.main()
