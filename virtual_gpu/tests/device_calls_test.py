#!/usr/bin/env python3
"""tools/device_calls.py rejects calls of host functions and throw in device code, and nothing else."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[1] / "tools" / "device_calls.py"

CLEAN = """#include <cuda_runtime.h>
#include <vector>
int on_host(int value) { return value; }
constexpr int folded(int value) { return value + 1; }
__device__ int doubled(int value) { return 2 * value; }
template <class T>
__global__ void write(T* cell) {
  __shared__ T kept;
  kept = static_cast<T>(doubled(static_cast<int>(threadIdx.x)) + folded(2));
  __syncthreads();
  cell[threadIdx.x] = kept;
}
int main() {
  std::vector<int> values(on_host(3));
  if (values.empty()) throw 1;
  write<<<1, 32>>>(values.data());
}
"""
# The replaced text, the replacement, and clang's message.
ERRORS = (("return 2 * value", "if (value > 2) throw 1; return on_host(value)", "cannot use 'throw' in __host__ __device__",
           "reference to __host__ function 'on_host'"),
          ("__syncthreads()", "if (kept == 3) throw 1", "cannot use 'throw' in __global__"),
          ("kept;\n}", "on_host(2);\n}", "no matching function for call to 'on_host'"))


def check(source: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "main.cu"
        file.write_text(source)
        return subprocess.run([sys.executable, TOOL, file], capture_output=True, text=True, check=False)


class DeviceCallsTest(unittest.TestCase):
    def test_code_of_the_device_passes(self) -> None:
        done = check(CLEAN)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_each_error_is_found(self) -> None:
        source = CLEAN
        for original, error, *_ in ERRORS:
            self.assertEqual(source.count(original), 1, original)
            source = source.replace(original, error)
        done = check(source)
        sentences = [sentence for _, _, *sentences in ERRORS for sentence in sentences]
        self.assertEqual((done.returncode, done.stdout.count("error:")), (1, len(sentences)), done.stdout + done.stderr)
        for sentence in sentences:
            self.assertIn(sentence, done.stdout)


if __name__ == "__main__":
    if shutil.which("clang++") is None:
        print("skipped: clang is not here")
        sys.exit(77)
    unittest.main()
