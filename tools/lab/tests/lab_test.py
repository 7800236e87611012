#!/usr/bin/env python3
"""Tests of the commands of ./lab on a machine with all packages: what they build, run, test and print."""
import platform
import re
import subprocess
import unittest
import urllib.request

from lab_sandbox import CompleteSandbox


class UsageTest(CompleteSandbox):
    def test_help(self) -> None:
        cases = {("--help",): "./lab run", ("help",): "./lab run", ("run", "--help"): "--nodes COUNT", ("--yes", "run", "-h"): "--work",
                 ("test", "01", "--help"): "--all", ("--help", "race"): "--test", ("bench", "--gpus", "2", "--help"): "--limit SECONDS",
                 ("grade", "--help"): "./lab grade NN --help", ("run", "--nodes", "2", "--help"): "--nodes COUNT", ("new", "-h"): "NN_NAME"}
        for arguments, word in cases.items():
            with self.subTest(arguments):
                result = self.lab(*arguments)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn(word, result.stdout)
                self.assertIn("--backend", result.stdout)
        self.assertEqual(self.calls(), [])

    def test_nothing_asked(self) -> None:
        self.assert_refused(self.lab("--yes"), r"\./lab run", lines=35)

    def test_refusals(self) -> None:
        cases = {
            ("walk",): r"unknown command 'walk' \(",
            ("tset", "01"): r"unknown command 'tset'; did you mean test\?",
            ("bench", "03"): "no chapter '03'",
            ("bench", "--gpu", "2"): r"unrecognized arguments: --gpu \(\./lab bench --help ",
            ("bench", "--all"): "unrecognized arguments: --all",
            ("docs", "01"): "unrecognized arguments: 01",
            ("docs", "--all"): "unrecognized arguments: --all",
            ("docs", "--", "x"): "unrecognized arguments: x",
            ("docs", "--backend", "virtual"): "docs takes no --backend",
            ("run", "21"): "no chapter '21'; the chapters are: 01_first, 02_second",
            ("run", "0x1"): "no chapter '0x1'",
            ("run", "001"): "no chapter '001'",
            ("run", "first"): "no chapter 'first'",
            ("run", "../01_first"): "no chapter",
            ("test", "09"): "no chapter '09'",
            ("run", "--gpus", "2"): "unrecognized arguments: --gpus",
            ("--gpus", "run", "01"): "unrecognized arguments: --gpus",
            ("run", "--all"): "unrecognized arguments: --all",
            ("test", "01", "02"): "unrecognized arguments: 02",
            ("test", "--", "x"): "unrecognized arguments: x",
            ("race", "--test", "--", "x"): "race --test passes no arguments on: x",
            ("race", "01", "--x", "--test"): "race --test passes no arguments on: --x",
            ("race", "09"): "no chapter '09'",
            ("check", "--test", "--", "x"): "check --test passes no arguments on: x",
            ("check", "--backend", "cuda"): "accesses are checked on virtual GPUs only; on real ones compute-sanitizer does it",
            ("race", "--all"): "unrecognized arguments: --all",
            ("race", "--backend", "cuda"): "the race detector works on virtual GPUs only",
            ("run", "--test"): "unrecognized arguments: --test",
            ("doctor", "01"): "unrecognized arguments: 01",
            ("run", "--backend", "opencl"): "argument --backend: invalid choice: 'opencl'",
            ("plan", "--backend", "cuda"): "plan takes no --backend cuda",
            ("run", "--backend"): "argument --backend: expected one argument",
        }
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                self.assert_refused(self.lab(*arguments), sentence)
                self.assertEqual(self.calls(), [])


class PlanTest(CompleteSandbox):
    def test_built_for_virtual_gpus_and_told_everything(self) -> None:
        planner = self.root / "tools" / "results" / "plan.py"
        planner.parent.mkdir(exist_ok=True)
        planner.write_text("import sys\nif '--bad' in sys.argv: sys.exit(2)\nif sys.argv[1:2] == ['--programs']: print('01_first 02_second')\n"
                           "else: print(*(f'[{word}]' for word in sys.argv[1:]), sep='', end=''); sys.exit(2)\n")
        self.add_gpu()
        result = self.lab("plan", "--gpus", "4", "--json", "-")
        self.assertEqual((result.returncode, result.stdout), (2, "[--gpus][4][--json][-]"))
        calls = self.calls("cmake")
        self.assertIn("--preset virtual", calls[0])
        self.assertIn("--target 01_first 02_second", calls[1])
        self.assertEqual(self.lab("plan", "--help").stdout, "[--help]")
        self.assertEqual(self.lab("plan").stdout, "")
        calls = self.calls("cmake")
        self.assertEqual(self.lab("plan", "--bad").returncode, 2)
        self.assertEqual(self.calls("cmake"), calls)  # refused before anything is built


class RunTest(CompleteSandbox):
    def test_names_of_a_chapter(self) -> None:
        for name in ("01", "1", "01_first"):
            result = self.lab("run", name)
            self.assertEqual(result.returncode, 0)
            self.assertTrue(result.stdout.startswith("01_first:"))

    def test_builds_this_chapter_only(self) -> None:
        self.lab("run", "2")
        calls = self.calls("cmake")
        self.assertEqual(len(calls), 2)
        self.assertIn("--preset virtual", calls[0])
        self.assertIn("--target 02_second", calls[1])

    def test_arguments(self) -> None:
        self.program("01_first", 'printf "[%s]" "$@"')
        cases = {
            ("--gpus", "2"): "[--gpus][2]",
            ("--", "--gpus", "2"): "[--gpus][2]",
            ("--help",): "[--help]",
            ("a b", "*"): "[a b][*]",
            ("--backend", "virtual", "--n", "3", "--yes"): "[--n][3]",
            ("--n", "-1", "--json", "-", "01", "-h"): "[--n][-1][--json][-][01][--help]",
            ("--n", "3", "--", "--yes", "--"): "[--n][3][--yes][--]",
        }
        for arguments, expected in cases.items():
            with self.subTest(arguments):
                self.assertEqual(self.lab("run", "01", *arguments).stdout, expected)

    def test_only_the_program_writes_standard_output(self) -> None:
        result = self.lab("run", "01")
        self.assertEqual(result.stdout, f"01_first:\n{self.root}\n")
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("output of cmake", (self.root / "build/virtual/lab.log").read_text())

    def test_exit_status_is_the_programs(self) -> None:
        for status in (1, 2, 3, 77):
            self.program("01_first", f"exit {status}")
            self.assertEqual(self.lab("run", "01").returncode, status)

    def test_runs_in_the_callers_folder(self) -> None:
        self.assertEqual(self.lab("run", "01", cwd=self.sandbox).stdout.splitlines()[-1], str(self.sandbox))

    def test_through_a_link(self) -> None:
        link = self.bin / "linked"
        link.symlink_to(self.root / "lab")
        self.assertEqual(self.lab("run", "01", cwd=self.sandbox, program=link).returncode, 0)

    def test_build_failure_shows_the_end_of_the_output(self) -> None:
        self.mark("broken_01_first", "".join(f"line {i}\n" for i in range(100)))
        result = self.lab("run", "01")
        self.assert_refused(result, "building 01_first failed", lines=42)
        self.assertIn("line 99\n", result.stderr)
        self.assertNotIn("line 59\n", result.stderr)

    def test_build_failure_shows_what_the_compiler_says(self) -> None:
        said = "mine.cu: In function 'int main()':\nmine.cu:3:5: error: 'foo' was not declared\n    3 |     foo();\n"
        self.mark("broken_01_first", "-- Configuring done\n[1/3] Building CXX object x.cu.o\nFAILED: x.cu.o \n"
                  f"/usr/bin/python3 tools/compile.py /usr/bin/c++ -c x.cu\n{said}ninja: build stopped: subcommand failed.\n")
        result = self.lab("run", "01")
        self.assertTrue(result.stderr.endswith(f"output of cmake\n{said}lab: building 01_first failed\n"), result.stderr)

    def test_tour(self) -> None:
        self.program("02_second", "echo 'second: skipped: too few GPUs' >&2; exit 77")
        result = self.succeed("run")
        table = result.stdout.splitlines()[-3:]
        self.assertRegex(table[0], r"^chapter +status +seconds$")
        self.assertRegex(table[1], r"^01_first +ok +\d+\.\d *$")
        self.assertRegex(table[2], r"^02_second +skipped +\d+\.\d  second: skipped: too few GPUs$")

    def test_tour_fails_with_any_chapter(self) -> None:
        for status, word in {1: "wrong", 2: "failed .* exit status 2", 3: "failed", 139: "failed"}.items():
            with self.subTest(status):
                self.program("01_first", f"exit {status}")
                result = self.lab("run")
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stdout, rf"\n01_first +{word}")
                self.assertRegex(result.stdout, r"\n02_second +ok")

    def test_tour_with_a_chapter_that_does_not_build(self) -> None:
        self.lab("run")
        self.mark("broken_01_first")  # its old program still exists and must not run
        result = self.lab("run")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\n01_first +failed .*does not build")
        self.assertNotIn("01_first: ", result.stdout)


class TestTest(CompleteSandbox):
    def ctest(self, *arguments: str) -> str:
        self.assertEqual(self.lab("test", *arguments).returncode, 0)
        call = self.calls("ctest")[-1]
        self.assertIn("--no-tests=error", call)
        return call

    def test_what_is_built_and_which_tests_run(self) -> None:
        for arguments, chosen, target, settings in (
                ((), "-LE ^(slow|full|chapter_only)", "quick", "MUTANTS=OFF -DOVERLAP_FULL=OFF"),
                (("2",), "-L chapter_02$ -LE ^(slow|full) ", "chapter_02", "MUTANTS=OFF -DOVERLAP_FULL=OFF"),
                (("01", "--slow"), "-L chapter_01$ -L ^(slow) ", "chapter_01", "MUTANTS=ON -DOVERLAP_FULL=OFF"),
                (("--slow",), "-L ^(slow|chapter_only) ", "all", "MUTANTS=ON -DOVERLAP_FULL=OFF"),
                (("--full",), "-L ^full", "all", "MUTANTS=OFF -DOVERLAP_FULL=ON"),
                (("--all",), "", "all", "MUTANTS=ON -DOVERLAP_FULL=ON")):
            with self.subTest(arguments):
                call = self.ctest(*arguments)
                self.assertIn(chosen, call)
                self.assertEqual("-L" in call, bool(chosen))
                configure, build = self.calls("cmake")[-2:]
                self.assertTrue(configure.endswith(f"-DBUILD_TESTING=ON -DOVERLAP_{settings}"), configure)
                self.assertIn(f"--target {target} ", build)

    def test_real_gpus_run_three_tests_at_a_time(self) -> None:
        self.add_gpu()
        self.assertIn("-j 3", self.ctest())
        self.tool("nproc", "echo 7")
        self.assertIn("-j 7", self.ctest("--backend", "virtual"))

    def test_failing_tests(self) -> None:
        self.mark("ctest_status", "8")
        self.assertEqual(self.lab("test").returncode, 1)


class BackendTest(CompleteSandbox):
    def backend_used(self, *arguments: str) -> str:
        self.assertEqual(self.lab("run", "01", *arguments).returncode, 0)
        return self.calls("cmake")[-2].split("--preset ")[1]

    def test_real_gpus_if_they_answer(self) -> None:
        self.add_gpu()
        self.assertEqual(self.backend_used(), "cuda")
        self.assertEqual(self.backend_used("--backend", "virtual"), "virtual")

    def test_anything_missing_means_virtual(self) -> None:
        breaks = {
            "no nvcc": lambda: (self.bin / "nvcc").unlink(),
            "old nvcc": lambda: self.tool("nvcc", "echo release 11.8, V11.8.1"),
            "no driver": lambda: (self.sandbox / "libcuda").unlink(),
            "no nvidia-smi": lambda: (self.bin / "nvidia-smi").unlink(),
            "no device": lambda: self.tool("nvidia-smi", "echo No devices found; exit 6"),
        }
        for name, take_away in breaks.items():
            with self.subTest(name):
                self.add_gpu()
                take_away()
                self.assertEqual(self.backend_used(), "virtual")

    def test_cuda_without_nvcc(self) -> None:
        self.assert_refused(self.lab("run", "01", "--backend", "cuda"), "nvcc is not here")

    def test_cuda_with_old_nvcc(self) -> None:
        self.tool("nvcc", "echo release 11.8, V11.8.1")
        self.assert_refused(self.lab("test", "--backend", "cuda"), "nvcc 11.8 is too old: CUDA 12.4")

    def test_cuda_without_gpu_builds_and_skips(self) -> None:
        self.add_gpu()
        self.tool("nvidia-smi", "exit 9")
        for command in (["run", "01"], ["run"], ["test"]):
            with self.subTest(command):
                before = len(self.calls("cmake"))
                result = self.lab(*command, "--backend=cuda")
                self.assertEqual(result.returncode, 77, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(result.stderr.splitlines()[-1], "lab: skipped: no GPU answers (nvidia-smi -L)")
                self.assertGreater(len(self.calls("cmake")), before)
        self.assertEqual(self.calls("ctest"), [])


class DocsTest(CompleteSandbox):
    def test_builds_and_says_where(self) -> None:
        self.add_gpu()
        result = self.succeed("docs", cwd=self.sandbox)
        self.assertEqual(result.stdout, f"{self.root}/build/docs/html/index.html\n")
        self.assertEqual(result.stderr, "lab: building the documentation\n")
        self.assertEqual(self.calls("cmake"), [])

    def test_serves_it_on_this_computer_alone(self) -> None:
        page = self.root / "build" / "docs" / "html" / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text("<p>first page")
        command = [str(self.root / "lab"), "docs", "--serve"]
        with subprocess.Popen(command, env=self.variables(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                said = [process.stdout.readline() for _ in range(2)]
                address = re.search(r"http://127\.0\.0\.1:\d+/", said[1])
                self.assertIsNotNone(address, said)
                with urllib.request.urlopen(address.group(), timeout=10) as answer:
                    self.assertEqual(answer.read(), b"<p>first page")
            finally:
                process.terminate()

    def test_failure_shows_the_warnings(self) -> None:
        (self.root / "tools" / "pages" / "build_site.py").write_text("import sys\nsys.exit('stream.hpp:3: Compound X is not documented.')\n")
        self.assert_refused(self.lab("docs"), "Compound X is not documented(.|\n)*building the documentation failed", lines=3)


class DoctorTest(CompleteSandbox):
    def test_virtual(self) -> None:
        result = self.succeed("doctor")
        for line in (r"g\+\+ +12\.2\.0", r"cmake +3\.25\.1", r"ninja +1\.11\.1", rf"python3 +{re.escape(platform.python_version())}",
                     r"mkdocs +1\.4\.2", "nvcc +not here", r"MPI +not here \(.*libopenmpi-dev", "GPUs +none answers", "missing +nothing",
                     r"backend +virtual \(.*nvcc is not here", "skipped +real times", "GPU table"):
            self.assertRegex(result.stdout, line)

    def test_real_gpus(self) -> None:
        self.add_gpu()
        result = self.succeed("doctor")
        for line in ("GPUs +GPU 0: NVIDIA H200", r"nvcc +12\.4 \(", "backend +cuda", "skipped .*more than 1 GPUs"):
            self.assertRegex(result.stdout, line)
        self.assertIn("--target doctor", self.calls("cmake")[1])

    def test_mpi(self) -> None:
        self.tool("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
        self.tool("mpicxx", "")
        self.assertRegex(self.lab("doctor").stdout, r"MPI +4\.1\.4\n")

    def test_optional_package(self) -> None:
        self.assertNotIn("optional", self.lab("doctor").stdout)
        (self.sandbox / "usr/lib/x86_64-linux-gnu/libopenblas.so").unlink()
        result = self.succeed("doctor")
        self.assertRegex(result.stdout, "missing +nothing\noptional +libopenblas-dev would make cuBLAS ")

    def test_wrong_copy(self) -> None:
        self.program("doctor", "exit 1")
        self.assertEqual(self.lab("doctor").returncode, 1)

    def test_installs_nothing(self) -> None:
        self.add_apt()
        (self.bin / "cmake").unlink()
        result = self.lab("doctor", "--yes")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing can run before these packages are installed: cmake", result.stderr)
        self.assertRegex(result.stdout, "install with +apt-get install .* cmake ")
        self.assertRegex(result.stdout, "cmake +not here")
        self.assertEqual(self.calls(), [])

    def test_what_only_the_tests_need_is_not_said_to_come_with_a_run(self) -> None:
        (self.sandbox / "usr/lib/x86_64-linux-gnu/cmake/GTest/GTestConfig.cmake").unlink()
        result = self.succeed("doctor")
        self.assertRegex(result.stdout, r"install with +apt-get .* libgtest-dev \(./lab run and ./lab test each install theirs\)\n")

    def test_too_old(self) -> None:
        self.tool("cmake", "echo cmake version 3.22.1")
        result = self.lab("doctor")
        self.assertEqual(result.returncode, 2)
        self.assertIn("3.22.1 is too old", result.stderr)


if __name__ == "__main__":
    unittest.main()
