#!/usr/bin/env python3
"""Tests of ./lab check on a machine with all packages."""
import unittest

from lab_sandbox import CompleteSandbox


class LabCheckTest(CompleteSandbox):
    def test_builds_and_starts_the_check_build_where_real_gpus_answer_too(self) -> None:
        self.add_gpu()
        self.program("01_first", 'printf "[%s]" "$@"')
        result = self.lab("check", "1", "--gpus", "2", "--", "--test")
        self.assertEqual(result.stdout, "[--gpus][2][--test]", result.stderr)
        self.assertEqual(result.stderr.splitlines()[-1], "lab: no wrong access was reported")
        calls = self.calls("cmake")
        self.assertIn("--preset check", calls[0])
        self.assertIn("build/check --target 01_first", calls[1])

    def test_exit_status_is_the_programs(self) -> None:
        for status in (1, 2, 3, 77):
            self.program("01_first", f"echo sentence >&2; exit {status}")
            result = self.lab("check", "01")
            self.assertEqual(result.returncode, status)
            self.assertEqual(result.stderr.splitlines()[-1], "sentence")

    def test_tour(self) -> None:
        self.program("01_first", "exit 3")
        result = self.lab("check")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stdout, r"\n01_first +failed .* race, deadlock or wrong access\n02_second +ok")

    def test_own_tests(self) -> None:
        for arguments, label in ((["--test"], False), (["01", "--test"], True)):
            self.assertEqual(self.lab("check", *arguments).returncode, 0)
            call = self.calls("ctest")[-1]
            self.assertIn("build/check ", call)
            self.assertEqual("-L chapter_01$" in call, label)
        self.mark("ctest_status", "8")
        self.assertEqual(self.lab("check", "--test").returncode, 1)


if __name__ == "__main__":
    unittest.main()
