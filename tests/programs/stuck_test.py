#!/usr/bin/env python3
"""A program that hangs on virtual GPUs ends with a report instead."""
from program_test_case import ProgramTestCase, main


class StuckTest(ProgramTestCase):
    def test_a_deadlock_is_reported(self) -> None:
        result = self.call()
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"deadlock: the host waits, and no work can go on")
        self.assertRegex(result.stderr, r"gpu0/stream0.*kernel '.*wait_for_ever'.*0 of 8 blocks done")
        self.assertRegex(result.stderr.splitlines()[-1], r"^stuck: .*cudaDeviceSynchronize\(\).*cudaErrorLaunchTimeout")

    def test_in_random_schedules_too(self) -> None:
        for seed in "123":
            with self.subTest(seed=seed):
                self.assertEqual(self.call("--schedule", seed).returncode, 3)


if __name__ == "__main__":
    main()
