#!/usr/bin/env python3
"""Tests of bin/doctor on virtual GPUs: the matrix of a sound machine, and of one that loses data.
    doctor_test.py DOCTOR DOCTOR_WITH_FAULTY_COPY"""
import pathlib
import re
import subprocess
import sys
import unittest


class DoctorTest(unittest.TestCase):
    doctor: pathlib.Path
    faulty: pathlib.Path

    def call(self, program: pathlib.Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              check=False)

    def test_sound_machine(self) -> None:
        result = self.call(self.doctor)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        gpus = re.findall(r"^GPU (\d+) .* \d+ SMs, [\d.]+ GiB$", result.stdout, re.MULTILINE)
        self.assertGreaterEqual(len(gpus), 2)
        self.assertRegex(result.stdout, r"\nproducts +virtual cuBLAS, with (OpenBLAS|a loop .*)\n")
        rows = [line.split() for line in result.stdout.splitlines()[-len(gpus):]]
        for i, row in enumerate(rows):
            self.assertEqual(row, [str(i)] + ["-" if i == j else "ok" for j in range(len(gpus))])

    def test_faulty_copy(self) -> None:
        result = self.call(self.faulty)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout.count("WRONG"), 1)
        self.assertRegex(result.stderr,
                         r"^doctor: the copy from GPU 1 to GPU 0 is wrong in 1 of \d+ elements: element 1000 is ")
        self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    DoctorTest.faulty = pathlib.Path(sys.argv.pop())
    DoctorTest.doctor = pathlib.Path(sys.argv.pop())
    unittest.main()
