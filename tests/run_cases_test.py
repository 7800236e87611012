#!/usr/bin/env python3
"""tests/run_cases.py with a program that has cases of each kind: run_cases_test.py PROGRAM"""
import pathlib
import subprocess
import sys
import time
import unittest

RUN_CASES = pathlib.Path(__file__).resolve().parent / "run_cases.py"


class RunCasesTest(unittest.TestCase):
    program: str

    def run_cases(self, cases: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, RUN_CASES, f"--filter={cases}", *options, self.program], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)

    def assert_ends(self, status: int, printed: str, cases: str, *options: str) -> None:
        """The exit status, and a pattern of all that is printed."""
        done = self.run_cases(cases, *options)
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertRegex(done.stdout, f"^{printed}$")

    def test_of_cases_that_pass_nothing_is_printed(self) -> None:
        self.assert_ends(0, "12 cases: 12 ran, 0 skipped\n", "Right.*:All/*")
        self.assert_ends(0, "3 cases: 2 ran, 1 skipped\n", "Right.*:Skipped.*")

    def test_only_skipped_cases(self) -> None:
        self.assert_ends(77, "1 cases: 0 ran, 1 skipped\n", "Skipped.*")

    def test_no_case_is_a_failure(self) -> None:
        self.assert_ends(1, ".* has no case for the filter Nothing.*\n", "Nothing.*")

    def test_a_failed_case_says_how_to_run_it_alone(self) -> None:
        self.assert_ends(1, r"Wrong\.Fails: failed\n(.*\n)+alone: .*run_cases_sample --gtest_filter=Wrong\.Fails\n\n"
                            r"3 cases: 3 ran, 0 skipped\n", "Right.*:Wrong.*")

    def test_a_crash_names_the_running_case_and_those_not_run(self) -> None:
        self.assert_ends(1, r"Fatal\.Crashes: crashed: SIGABRT\nabout to crash\nalone: .*Fatal\.Crashes\n\n"
                            r"not run: 1 cases\n  Fatal\.ComesAfterTheCrash\n4 cases: 2 ran, 0 skipped\n", "Right.*:Fatal.*")

    def test_a_process_that_ends_early(self) -> None:
        self.assert_ends(1, r"Ends\.TheProcess: ended the process with exit status 3\nalone: .*\n\n1 cases: 0 ran, 0 skipped\n", "Ends.*")

    def test_a_failure_outside_of_all_cases(self) -> None:
        self.assert_ends(1, r"run_cases_sample, cases .*: ended the process with exit status 1\n(.*\n)*.*no case fails by this\n(.*\n)*"
                            r"1 cases: 0 ran, 1 skipped\n", "BrokenSuite.*")

    def test_a_time_limit_names_the_running_case(self) -> None:
        self.assert_ends(1, r"Stuck\.Hangs: exceeded the time limit of 0\.5 s\nalone: .*\n\n3 cases: 2 ran, 0 skipped\n",
                         "Right.*:Stuck.*", "--limit", "0.5")

    def test_the_program_ends_with_the_script(self) -> None:
        with subprocess.Popen([sys.executable, RUN_CASES, "--filter=Stuck.*", self.program], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as script:
            def stuck() -> str:
                """The program's entry of /proc, once it runs the case."""
                for child in pathlib.Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text().split():
                    if "--gtest_filter=Stuck.Hangs" in pathlib.Path(f"/proc/{child}/cmdline").read_text():
                        return f"/proc/{child}"
                return ""
            end = time.monotonic() + 30
            while not stuck() and time.monotonic() < end:
                time.sleep(0.05)
            program = stuck()
            script.kill()
        self.assertNotEqual(program, "")
        while pathlib.Path(program).exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(pathlib.Path(program).exists())

    def test_processes_of_their_own(self) -> None:
        """The crash ends its own process alone."""
        self.assert_ends(1, r"Fatal\.Crashes: .*\nabout to crash\nalone: .*\n\n4 cases: 3 ran, 0 skipped\n", "Right.*:Fatal.*", "--alone")
        done = self.run_cases("Right.*:Fatal.*:Wrong.*", "--suites")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Wrong.Fails: failed\n", done.stdout)
        self.assertIn("not run: 1 cases\n  Fatal.ComesAfterTheCrash\n5 cases: 3 ran", done.stdout)

    def test_shards_share_the_cases(self) -> None:
        for shard, count in (("0/3", 4), ("1/3", 3), ("2/3", 3)):
            self.assert_ends(0, f"{count} cases: {count} ran, 0 skipped\n", "All/*", "--shard", shard)
        self.assert_ends(0, "0 cases: 0 ran, 0 skipped\n", "Right.IsQuiet", "--shard", "1/2")

    def test_a_shuffle_prints_its_seed(self) -> None:
        self.assert_ends(0, r"shuffled: --gtest_shuffle --gtest_random_seed=[1-9]\d*\n12 cases: 12 ran, 0 skipped\n",
                         "Right.*:All/*", "--shuffle", "0")
        self.assert_ends(0, r"shuffled: --gtest_shuffle --gtest_random_seed=17\n2 cases: .*\n", "Right.*", "--shuffle", "17")


if __name__ == "__main__":
    RunCasesTest.program = sys.argv.pop(1)
    unittest.main()
