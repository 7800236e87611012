#!/usr/bin/env python3
"""cmake/strict_ptxas.py: notes of the assembler become errors, all else is the compiler's."""
import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "strict_ptxas.py"


class StrictPtxasTest(unittest.TestCase):
    def run_compiler(self, said: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        compiler = (sys.executable, "-c", "import sys; sys.stderr.write(sys.argv[1]); sys.exit(int(sys.argv[2]))")
        return subprocess.run([sys.executable, str(SCRIPT), *compiler, said, str(status)], capture_output=True, text=True,
                              check=False)

    def test_what_makes_a_kernel_slow_is_an_error(self) -> None:
        for said in ("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x\n",
                     "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine it\n",
                     "ptxas warning : Registers are spilled to local memory in function 'x', 8 bytes spill stores, 4 bytes spill loads\n",
                     "    16 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads\n"):
            with self.subTest(said):
                done = self.run_compiler(said)
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)
                self.assertIn("strict_ptxas.py: error: ", done.stderr)

    def test_all_else_passes(self) -> None:
        for said in ("", "x.cu(3): warning #177-D: variable declared but never referenced\n",
                     "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"):
            with self.subTest(said):
                done = self.run_compiler(said)
                self.assertEqual((done.returncode, done.stderr), (0, said))

    def test_the_compilers_own_failure_stays(self) -> None:
        done = self.run_compiler("error: C7510\n", 3)
        self.assertEqual((done.returncode, done.stderr), (3, "error: C7510\n"))


if __name__ == "__main__":
    unittest.main()
