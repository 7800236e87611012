#!/usr/bin/env python3
"""Tests of the programs of examples/, on virtual GPUs. After -- comes what starts a program, if anything does.
    examples_test.py right PROGRAM -- [START]            its result is right, on several numbers of GPUs and in schedules
    examples_test.py planted PROGRAM SOURCE -- [START]   the race detector reports both lines of the missing wait
    examples_test.py by_chance PROGRAM -- [START]        without the race detector, its result is right in the order of time
    examples_test.py settings PROGRAM -- [START]         what the environment sets, and what it cannot
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest
from typing import List

SCHEDULES = [None, "1", "2"]  # the order of time, and two random ones
ACCESS = re.compile(r"^  (?:read|write) by .*$", re.MULTILINE)


class ExampleTest(unittest.TestCase):
    program: str
    arguments: List[str]
    start: List[str]

    def call(self, **settings: object) -> "subprocess.CompletedProcess[str]":
        """Runs the program with VGPU_ settings: call(gpus=2)."""
        own = {f"VGPU_{name.upper()}": str(value) for name, value in settings.items() if value is not None}
        others = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_")}
        return subprocess.run([*self.start, self.program], env={**others, **own}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100, check=False)


class RightTest(ExampleTest):
    def test_result_is_right(self) -> None:
        # The race detector, which takes 20 times as long, does not depend on the schedule.
        runs = [(2, None), (3, "1")] if self.start else [(gpus, schedule) for gpus in (1, 2, 3, 8) for schedule in SCHEDULES]
        for gpus, schedule in runs:
            with self.subTest(gpus=gpus, schedule=schedule):
                result = self.call(gpus=gpus, schedule=schedule)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertEqual(result.stderr, "")
                self.assertRegex(result.stdout, rf"\A{gpus} devices\b")
                alone = gpus == 1 and "peer" in pathlib.Path(self.program).name
                self.assertRegex(result.stdout, r"skipped\n\Z" if alone else r"PASS\n\Z")


class PlantedTest(ExampleTest):
    def test_both_lines_are_reported(self) -> None:
        source = pathlib.Path(self.arguments[0])
        lines = source.read_text(encoding="utf-8").splitlines()

        def place(text: str) -> str:
            """The only line that contains `text`, as reports say it."""
            found, = [number for number, line in enumerate(lines, start=1) if text in line]
            return rf"\b{source.name}:{found}\b"

        read = rf"read by gpu\d/stream1: kernel 'iterate' at {place('const float value =')}"
        write = rf"write by gpu\d/stream1: cudaMemcpyPeerAsync, enqueued at {place('(bands[device + 1].grid[to],')}"
        for schedule in [*SCHEDULES, "3", "4"]:
            with self.subTest(schedule=schedule):
                result = self.call(gpus=2, schedule=schedule)
                self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
                self.assertRegex(result.stderr, r"\Avirtual GPUs: data race in ")
                accesses = sorted(ACCESS.findall(result.stderr))
                self.assertEqual(len(accesses), 2, result.stderr)
                self.assertRegex(accesses[0], read)
                self.assertRegex(accesses[1], write)


class ByChanceTest(ExampleTest):
    def test_only_the_order_of_time_is_right(self) -> None:
        for schedule, status, word in ((None, 0, "PASS"), ("1", 1, "FAIL"), ("2", 1, "FAIL")):
            with self.subTest(schedule=schedule):
                result = self.call(gpus=2, schedule=schedule)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertTrue(result.stdout.endswith(f"{word}\n"), result.stdout)


class SettingsTest(ExampleTest):
    def test_number_of_gpus(self) -> None:
        for gpus, words in ((1, "1 devices"), (5, "5 devices"), (16, "16 devices"), (None, "8 devices")):
            self.assertTrue(self.call(gpus=gpus).stdout.startswith(f"{words}\n"), words)

    def test_machine(self) -> None:
        self.assertEqual(self.call(machine="h100-pcie").returncode, 0)

    def test_no_schedule_is_the_order_of_time(self) -> None:
        self.assertEqual(self.call(gpus=1, schedule="").returncode, 0)

    def test_what_cannot_be(self) -> None:
        for settings, sentence in (({"gpus": "0"}, "0 GPUs: a machine has 1 to 64"),
                                   ({"gpus": "65"}, "65 GPUs: a machine has 1 to 64"),
                                   ({"gpus": "two"}, "VGPU_GPUS='two' is not a number in range"),
                                   ({"gpus": ""}, "VGPU_GPUS='' is not a number in range"),
                                   ({"schedule": "-1"}, "VGPU_SCHEDULE='-1' is not a number in range"),
                                   ({"schedule": "1x"}, "VGPU_SCHEDULE='1x' is not a number in range"),
                                   ({"machine": "big"}, "'big' is neither a shipped machine nor a readable file")):
            with self.subTest(**settings):
                result = self.call(**settings)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, rf"\Avirtual GPUs: .*{re.escape(sentence)}\n\Z")


TESTS = {"right": RightTest, "planted": PlantedTest, "by_chance": ByChanceTest, "settings": SettingsTest}


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[1] not in TESTS or "--" not in sys.argv:
        print(__doc__, file=sys.stderr)
        return 2
    end = sys.argv.index("--")
    ExampleTest.program, *ExampleTest.arguments = sys.argv[2:end]
    ExampleTest.start = sys.argv[end + 1:]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TESTS[sys.argv[1]])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
