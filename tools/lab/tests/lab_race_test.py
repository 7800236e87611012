#!/usr/bin/env python3
"""Tests of ./lab race on a machine that has all it needs."""
import unittest

from lab_sandbox import CompleteSandbox


class RaceTest(CompleteSandbox):
    def setUp(self) -> None:
        super().setUp()
        self.tool("setarch", 'shift 2; STARTED=yes exec "$@"')  # setarch ARCHITECTURE -R COMMAND...
        self.program("planted_programs", "exit 0")

    def test_builds_and_starts_the_race_build(self) -> None:
        self.program("01_first", 'printf "[%s]" "$STARTED" "$@"')
        result = self.succeed("race", "1", "--gpus", "2", "--", "--test")
        self.assertEqual(result.stdout, "[yes][--gpus][2][--test]")
        self.assertRegex(result.stderr.splitlines()[-1], "^lab: no race and no deadlock was reported in 4 runs")
        calls = self.calls("cmake")
        self.assertIn("--preset race", calls[0])
        self.assertIn("build/race --target 01_first", calls[1])

    def test_separates_blocks_in_several_runs(self) -> None:
        program = 'echo "[$VGPU_SEPARATING_BIT]"; echo %d >"${VGPU_LARGEST_GRID:-/dev/null}"; ' \
                  'echo "$VGPU_SEPARATING_BIT" >>"$HOME/runs"; [ "$VGPU_SEPARATING_BIT" != "%s" ] || exit 3'
        for blocks, racing, status, runs, said in ((1, "", 0, 4, "no race and no deadlock was reported in 4 runs"),
                                                   (17, "", 0, 5, "no race .* in 5 runs that separate the kernels' blocks"),
                                                   (64, "", 0, 6, "no race .* in 6 runs that .*"),
                                                   (65, "", 0, 6, "not separated: .* a multiple of 64 .*"),
                                                   (8, "1", 3, 2, "this was run 2, with VGPU_SEPARATING_BIT=1")):
            with self.subTest(blocks=blocks, racing=racing):
                (self.root / "runs").unlink(missing_ok=True)
                self.program("01_first", f"HOME={self.root}; " + program % (blocks, racing))
                result = self.lab("race", "1")
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertEqual(result.stdout, "[0]\n")
                self.assertEqual((self.root / "runs").read_text(encoding="utf-8").split(), [str(run) for run in range(runs)])
                self.assertRegex(result.stderr.splitlines()[-1], f"^lab: {said}$")

    def test_all_runs_read_the_same_input(self) -> None:
        own = self.root / "mine.cu"
        own.write_text("")
        self.program("own_mine", '[ "$(head -c 6)" = 2\ 3\ 4\  ]')
        for piped in ("2 3 4 ", "2 3 4 " + "5 " * 100000):  # the program leaves most of it unread
            result = self.succeed("race", str(own), piped=piped)
            self.assertRegex(result.stderr.splitlines()[-1], "^lab: no race and no deadlock was reported in 4 runs")

    def test_leaves_the_input_to_a_script_that_checks_chapters(self) -> None:
        self.program("01_first", "exit 0")
        loop = self.script(self.folder / "loop", f"""while read chapter; do "{self.root}/lab" race $chapter; done""")
        result = self.lab(program=loop, piped="1\n01\n")
        self.assertEqual(result.stderr.count("no race and no deadlock was reported"), 2, result.stderr)

    def test_one_order_and_what_takes_long_are_run_once(self) -> None:
        for script, arguments in (("/bin/sleep 2.1", []), ("exit 0", ["--schedule", "3"])):
            self.program("01_first", script)
            self.assertEqual(self.lab("race", "1", *arguments).stderr.splitlines()[-1], "lab: no race and no deadlock was reported")

    def test_virtual_gpus_even_where_real_ones_answer(self) -> None:
        self.add_gpu()
        self.assertEqual(self.lab("race", "01").returncode, 0)
        self.assertIn("--preset race", self.calls("cmake")[0])

    def test_exit_status_is_the_programs(self) -> None:
        for status in (1, 2, 3, 77):
            self.program("01_first", f"echo report >&2; exit {status}")
            result = self.lab("race", "01")
            self.assertEqual(result.returncode, status)
            self.assertEqual(result.stderr.splitlines()[-1], "report")

    def test_tour(self) -> None:
        cases = {"exit 0": (0, "ok"), "exit 3": (3, "failed .* race, deadlock or wrong access"), "exit 1": (1, "wrong"),
                 "exit 77": (0, "skipped")}
        for script, (status, word) in cases.items():
            with self.subTest(script):
                self.program("01_first", script)
                result = self.lab("race")
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertRegex(result.stdout, rf"\n01_first +{word}")
                self.assertRegex(result.stdout, r"\n02_second +ok")

    def test_tour_that_ran_nothing_is_no_success(self) -> None:
        for name in ("01_first", "02_second"):
            self.program(name, "echo ThreadSanitizer: unexpected memory mapping >&2; exit 66")
        self.tool("setarch", "exit 1")
        self.tool("cat", 'case $1 in /proc/*) echo 28 ;; *) exec /bin/cat "$@" ;; esac')
        result = self.lab("race")
        self.assertEqual(result.returncode, 77)
        self.assertEqual(result.stdout.count("skipped: the race detector cannot start here"), 2)

    def test_skipped_where_the_detector_cannot_start(self) -> None:
        self.tool("setarch", "echo 'setarch: failed to set personality' >&2; exit 1")
        self.tool("cat", 'case $1 in /proc/*) echo 32 ;; *) exec /bin/cat "$@" ;; esac')
        for arguments in (["01"], [], ["--test"]):
            with self.subTest(arguments):
                result = self.lab("race", *arguments)
                self.assertEqual(result.returncode, 77)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr.splitlines()[-1], "^lab: skipped: .*seccomp=unconfined.*mmap_rnd_bits=28")
        self.assertEqual(self.calls("ctest"), [])
        self.assertRegex(self.lab("doctor").stdout, "race detector +the race detector cannot start here: ")

    def test_own_tests(self) -> None:
        for arguments in (["race", "--test"], ["race", "1", "--test"], ["race", "--test", "01"]):
            with self.subTest(arguments):
                self.assertEqual(self.lab(*arguments).returncode, 0)
                call = self.calls("ctest")[-1]
                self.assertIn("build/race ", call)
                self.assertIn("--no-tests=error", call)
                self.assertEqual("-L chapter_01$" in call, len(arguments) == 3)
                self.assertNotIn("slow", call)
                self.assertIn("-LE ^full", call)
        configured = [call for call in self.calls("cmake") if "--preset" in call]
        plain = self.root / "build" / "virtual"
        self.assertIn("--preset race -DBUILD_TESTING=ON -DOVERLAP_MUTANTS=ON "
                      f"-DOVERLAP_PLAIN_BUILD={plain}", configured[-1])
        # The build without the detector, which the test compares with, is built first.
        self.assertIn("build/virtual --target 01_first", "".join(self.calls("cmake")))
        self.mark("ctest_status", "8")
        self.assertEqual(self.lab("race", "--test").returncode, 1)

    def test_doctor(self) -> None:
        self.assertRegex(self.lab("doctor").stdout, "race detector +can run")


if __name__ == "__main__":
    unittest.main()
