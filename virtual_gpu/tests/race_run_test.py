#!/usr/bin/env python3
"""Tests of virtual_gpu/tools/race_run, which starts the programs of the race build, with stand-ins for setarch and the program."""
import pathlib
import sys
import os
import subprocess
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402

RACE_RUN = REPOSITORY / "virtual_gpu" / "tools" / "race_run"
ALLOWED = 'shift 2; STARTED=yes exec "$@"'  # setarch ARCHITECTURE -R COMMAND...
REFUSED = "echo 'setarch: failed to set personality: Operation not permitted' >&2; exit 1"
# Before and since g++ 14.
MESSAGES = ("FATAL: ThreadSanitizer: unexpected memory mapping 0x5d6d7a8f9000-0x5d6d7a8fa000",
            "FATAL: ThreadSanitizer: memory layout is incompatible, even though ASLR is disabled.")


class RaceRunTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.bits(28)

    def bits(self, number: int) -> None:
        """Sets the number of address bits that the kernel appears to randomise."""
        self.script("cat", f'case $1 in /proc/sys/vm/mmap_rnd_bits) echo {number} ;; *) exec /bin/cat "$@" ;; esac')

    def call(self, setarch: str, *arguments: str, program: str = "exit 0") -> "subprocess.CompletedProcess[str]":
        self.script("setarch", setarch)
        self.script("program", program)
        environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "TMPDIR": str(self.folder)}
        return subprocess.run([str(RACE_RUN), *(arguments or (str(self.folder / "program"), "a b", "*"))],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=60,
                              check=False)

    def test_without_randomisation_where_that_is_allowed(self) -> None:
        result = self.call(ALLOWED, program='printf "[%s]" "$STARTED" "$@"; echo report >&2; exit 3')
        self.assertEqual((result.returncode, result.stdout, result.stderr), (3, "[yes][a b][*]", "report\n"))

    def test_directly_where_it_is_refused(self) -> None:
        for status in (0, 3, 66):
            result = self.call(REFUSED, program=f'printf "[%s]" "$STARTED" "$@"; echo report >&2; exit {status}')
            self.assertEqual((result.returncode, result.stdout, result.stderr), (status, "[][a b][*]", "report\n"))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["cat", "program", "setarch"])

    def test_skipped_if_the_detector_does_not_start(self) -> None:
        for message in MESSAGES:
            with self.subTest(message):
                result = self.call(REFUSED, program=f"echo '{message}' >&2; exit 66")
                self.assertEqual((result.returncode, result.stdout), (77, ""))
                self.assertRegex(result.stderr, r"^skipped: .*setarch.*seccomp=unconfined.*mmap_rnd_bits=28.*\n$")
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_message_of_a_program_that_succeeds_is_left_alone(self) -> None:
        result = self.call(REFUSED, program=f"echo '{MESSAGES[0]}' >&2")
        self.assertEqual((result.returncode, result.stderr), (0, MESSAGES[0] + "\n"))

    def test_why_not(self) -> None:
        for setarch, bits, fine in ((ALLOWED, 28, True), (ALLOWED, 32, True), (REFUSED, 28, True),
                                    (REFUSED, 29, False), (REFUSED, 32, False)):
            with self.subTest(setarch=setarch, bits=bits):
                self.bits(bits)
                result = self.call(setarch, "--why-not")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertEqual(result.stdout == "", fine, result.stdout)
                self.assertTrue(fine or len(result.stdout.splitlines()) == 1 and "seccomp" in result.stdout)

    def test_without_a_program(self) -> None:
        self.script("setarch", ALLOWED)
        result = subprocess.run([str(RACE_RUN)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (2, "", 1))


if __name__ == "__main__":
    unittest.main()
