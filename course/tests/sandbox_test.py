#!/usr/bin/env python3
"""Tests of the grader's sandbox (course/grade/sandbox.py) at each level that works here: limits, processes, files."""
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest
from typing import List

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "course" / "grade"))
import sandbox  # noqa: E402
from processes import processes  # noqa: E402
from sandbox import Limits, Outcome  # noqa: E402

SHORT = Limits(seconds=2, memory=200 * 1024 * 1024)
LONG = Limits(seconds=20, memory=200 * 1024 * 1024)
SLEEP = "7654.321"  # seconds; identifies our sleeping processes


def sleeping() -> List[str]:
    """Sleeping processes that a test left behind."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if SLEEP.encode() in path.read_bytes().split(b"\0"):
                found.append(str(path))
        except OSError:
            pass
    return found


def zombies() -> int:
    """Number of children of this process that have ended and were never waited for."""
    found = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            found += path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2] == ["Z", str(os.getpid())]
        except OSError:
            pass
    return found


class AnyLevel:
    level = ""

    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
        os.chmod(self.folder, 0o755)
        (self.folder / "readable").write_text("hello", encoding="utf-8")
        os.chmod(self.folder / "readable", 0o644)
        try:
            self.context = sandbox.make([self.folder], self.level)
            self.place = self.context.__enter__()
        except sandbox.Unavailable as why:
            shutil.rmtree(self.folder)
            self.skipTest(str(why))

    def tearDown(self) -> None:
        self.context.__exit__(None, None, None)
        shutil.rmtree(self.folder)
        self.assertEqual(sleeping(), [])
        self.assertFalse(self.place.home.exists())

    def run_shell(self, script: str, limits: Limits = LONG, data: bytes = b"", frame: bool = False) -> Outcome:
        return self.place.run(["bash", "-c", script, "bash"], limits, data, frame)

    def test_orphans_that_have_ended_are_collected(self) -> None:
        for _ in range(8):  # in a class each command left one behind, and each look took longer than the one before
            self.run_shell("sleep 0.01 & exit 0")
        self.assertLess(zombies(), 4, "of eight commands")

    def test_status_output_input_and_frame(self) -> None:
        done = self.run_shell("cat >&$1; echo out; echo error >&2; exit 7", data=b"x" * 300_000, frame=True)
        self.assertEqual((done.status, done.ended, done.output, len(done.frame)), (7, "", "out\nerror\n", 300_000))

    def test_reads_what_it_may_and_writes_in_its_folder(self) -> None:
        done = self.run_shell(f"cat {self.folder}/readable && echo x > mine && cat mine")
        self.assertEqual((done.status, done.output), (0, "hellox\n"), done.output)

    def test_does_not_end(self) -> None:
        done = self.run_shell(f"sleep {SLEEP}", SHORT)
        self.assertIn("did not end within 2 s", done.ended)
        self.assertLess(done.seconds, 15)

    def test_eats_memory(self) -> None:
        eater = "import time; x = bytearray(150 << 20); time.sleep(30)"
        done = self.run_shell(f"python3 -c '{eater}' & python3 -c '{eater}' & wait")
        self.assertIn("more than 200 MB of memory", done.ended)

    def test_prints_without_end(self) -> None:
        done = self.run_shell("yes and so on")
        self.assertIn("more than 64 KiB of output", done.ended)
        self.assertEqual(len(done.output), sandbox.OUTPUT)

    def test_too_long_an_answer(self) -> None:
        self.assertIn("far too long", self.run_shell("cat /dev/zero >&$1", frame=True).ended)

    def test_daemons_end_with_it(self) -> None:
        self.run_shell(f"setsid sleep {SLEEP} >/dev/null 2>&1 </dev/null & setsid sh -c 'sleep {SLEEP} & sleep {SLEEP}' & echo done")
        self.assertEqual(sleeping(), [])

    def test_does_not_wait_for_who_keeps_its_pipes(self) -> None:
        done = self.run_shell(f"sleep {SLEEP} & echo done")
        self.assertEqual((done.ended, done.output), ("", "done\n"))
        self.assertLess(done.seconds, 10)

    def test_stops_reading(self) -> None:
        self.assertEqual(self.run_shell("exit 3", data=b"x" * 3_000_000).status, 3)


class RootTest(AnyLevel, unittest.TestCase):
    """setpriv, and bubblewrap around it where it is installed."""

    level = "root"

    def test_is_another_user_without_rights(self) -> None:
        done = self.run_shell("id -u; id -G; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status")
        lines = done.output.split()
        self.assertEqual(lines[0], str(self.place.uid))
        self.assertEqual(lines[1], str(self.place.uid))
        self.assertEqual(lines[2:], ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"])
        # Without bubblewrap it depends on the repository's permissions; the level must say so.
        reads = self.run_shell(f"test -r {ROOT / 'chapters'}").status == 0
        self.assertNotEqual(self.place.isolated(), reads)

    def test_cannot_harm_others(self) -> None:
        secret = self.place.home / "grader"
        secret.mkdir(mode=0o700)
        (secret / "file").write_text("secret", encoding="utf-8")
        script = f"rm -rf {secret} {self.folder} 2>&1; kill -9 {os.getpid()} $PPID; kill -9 -1; cat {secret}/file"
        self.assertNotIn("secret\n", self.run_shell(script).output.replace("/secret", ""))
        self.assertTrue((secret / "file").is_file() and (self.folder / "readable").is_file())

    def test_forks_without_end(self) -> None:
        started = time.monotonic()
        self.run_shell(f"f() {{ sleep {SLEEP} & f | f & }}; f; sleep 5", SHORT)
        self.assertLess(time.monotonic() - started, 30)
        living = [uid for _parent, uid in processes().values() if uid == self.place.uid]
        self.assertEqual(living, [])

    def test_sees_no_repository(self) -> None:
        if not self.place.wrapped:
            self.skipTest("bubblewrap is not installed")
        for path in (ROOT / "chapters", ROOT / "build", ROOT / ".git", pathlib.Path("/root"), pathlib.Path("/home"), self.place.home / "x"):
            self.assertNotEqual(self.run_shell(f"ls {path}").status, 0, path)
        done = self.run_shell("ls /proc | grep -c '^[0-9]'; cat /proc/net/dev | tail -n +3 | cut -d: -f1")
        self.assertLess(int(done.output.split()[0]), 12)
        self.assertEqual(done.output.split()[1:], ["lo"])


class RootAloneTest(RootTest):
    """setpriv without bubblewrap."""

    def setUp(self) -> None:
        super().setUp()
        self.place.wrapped = False

    def test_is_another_user_without_rights(self) -> None:
        done = self.run_shell("id -u; grep NoNewPrivs /proc/self/status")
        self.assertEqual(done.output.split(), [str(self.place.uid), "NoNewPrivs:", "1"])

    def test_says_whether_the_repository_can_be_read(self) -> None:
        can_read = self.run_shell(f"test -r {ROOT}/chapters").status == 0
        self.assertEqual(self.place.isolated(), not can_read)
        self.assertIn("CAN read" if can_read else "cannot read", self.place.describe())
        self.assertEqual(self.place.advice(), f"install bubblewrap, or make the repository unreadable for others: chmod 700 {ROOT}")


class BubblewrapTest(AnyLevel, unittest.TestCase):
    """Namespaces."""

    level = "bubblewrap"

    def test_sees_no_repository(self) -> None:
        self.assertNotEqual(self.run_shell(f"ls {ROOT}/chapters").status, 0)
        self.assertTrue(self.place.isolated())


class NoneTest(AnyLevel, unittest.TestCase):
    level = "none"

    def test_says_so(self) -> None:
        self.assertIn("not isolated", self.place.describe())
        self.assertEqual(self.place.advice(), "install bubblewrap, or run as root")
        self.assertFalse(self.place.isolated())


if __name__ == "__main__":
    unittest.main()
