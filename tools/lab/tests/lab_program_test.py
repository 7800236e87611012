#!/usr/bin/env python3
"""Tests of the programs that ./lab runs besides chapters (experiments, a program of the reader's own), of its commands for
authors, and of its table of commands."""
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from lab_sandbox import REPOSITORY, CompleteSandbox

sys.path[:0] = [str(REPOSITORY / "tools" / "lab"), str(REPOSITORY)]
import command_line  # noqa: E402


class ProgramTest(CompleteSandbox):
    def own(self, path: str, target: str) -> pathlib.Path:
        """A CUDA source below the sandbox; the program that a build makes of it prints its arguments."""
        source = self.sandbox / path
        source.parent.mkdir(exist_ok=True)
        source.touch()
        self.program(target, 'printf "[%s]" "$0" "$@"')
        return source

    def add_experiments(self) -> None:
        folder = self.root / "chapters/02_second/experiments"
        folder.mkdir()
        for name in ("transports", "copies"):
            (folder / f"{name}.cu").touch()
            self.program(f"02_{name}", f"echo {name} $*; exit $EXPERIMENT")


class OwnProgramTest(ProgramTest):
    def test_is_built_and_run(self) -> None:
        source = self.own("mine.cu", "own_mine")
        for path, folder in ((str(source), self.root), ("mine.cu", self.sandbox), ("../mine.cu", self.root)):
            with self.subTest(path):
                result = self.succeed("run", path, "--backend", "virtual", "x", cwd=folder)
                self.assertEqual(result.stdout, f"[{self.root}/build/virtual/own/mine][x]")
                configure, build = self.calls("cmake")[-2:]
                self.assertTrue(configure.endswith(f"--preset virtual -DOVERLAP_OWN_OPTIONS= -DOVERLAP_OWN_PROGRAM={source}"), configure)
                self.assertIn("--target own_mine", build)

    def test_words_of_the_compiler(self) -> None:
        source = self.own("mine.cu", "own_mine")
        more = source.with_name("more.cu")
        more.touch()
        result = self.lab("run", str(source), "a", "--", f"-I{self.root}", "-DN=4", "-fopenmp", str(more), "b", "-DM", "more.cu")
        self.assertEqual(result.stdout, f"[{self.root}/build/virtual/own/mine][a][b][-DM][more.cu]", result.stderr)
        self.assertIn(f" -DOVERLAP_OWN_OPTIONS=-I{self.root};-DN=4;-fopenmp;{more} ", self.calls("cmake")[-2])
        result = self.lab("run", str(source), "--", "-DN=4", "--", "-DM")
        self.assertEqual(result.stdout, f"[{self.root}/build/virtual/own/mine][-DM]", result.stderr)

    def test_names(self) -> None:
        source = self.own("größer (1)/my own.cu", "own_my_own")
        self.assertEqual(self.lab("run", str(source)).stdout, f"[{self.root}/build/virtual/own/my_own]")

    def test_with_the_race_detector(self) -> None:
        self.tool("setarch", 'shift 2; exec "$@"')
        result = self.lab("race", str(self.own("mine.cu", "own_mine")), "x")
        self.assertEqual(result.stdout, f"[{self.root}/build/race/own/mine][x]", result.stderr)
        self.assertIn("--preset race", self.calls("cmake")[0])

    def test_refusals(self) -> None:
        cases = {"nothing.cu": "there is no file 'nothing.cu'"}
        for odd in "\"#$&'*;<>?[\\]^`|":
            self.own(f"a{odd}b.cu", "own_mine")
            cases[f"../a{odd}b.cu"] = f"cannot build what has {re.escape(odd)} in its path: .*{re.escape(f'a{odd}b.cu')}$"
        for name, sentence in cases.items():
            with self.subTest(name):
                self.assert_refused(self.lab("run", name), sentence)
        for command in ("race", "watch"):
            self.assert_refused(self.lab(command, "nothing.cu"), "there is no file 'nothing.cu'")
        self.assert_refused(self.lab("test", "mine.cu"), "no chapter 'mine.cu'")
        self.assertEqual(self.calls(), [])


class ExperimentTest(ProgramTest):
    def setUp(self) -> None:
        super().setUp()
        self.add_experiments()

    def test_runs(self) -> None:
        for name in ("02/transports", "2/transports", "02_second/transports"):
            result = self.lab("run", name, "--gpus", "2", EXPERIMENT="0")
            self.assertEqual((result.returncode, result.stdout), (0, "transports --gpus 2\n"), result.stderr)
            self.assertIn("--target 02_transports", self.calls("cmake")[-1])
        self.assertEqual(self.lab("run", "02/copies", EXPERIMENT="3").returncode, 3)

    def test_with_the_race_detector(self) -> None:
        self.tool("setarch", 'shift 2; exec "$@"')
        self.assertEqual(self.lab("race", "2/copies", EXPERIMENT="0").stdout, "copies\n")

    def test_refusals(self) -> None:
        cases = {"2/nothing": "02_second has no experiment 'nothing'; its experiments are: copies, transports$",
                 "1/transports": "01_first has no experiment 'transports'; its experiments are: none$",
                 "2/": "02_second has no experiment ''; its",
                 "01_frist": "there is no chapter '01_frist': did you mean 01_first\\?; the chapters are: 01_first, 02_second$",
                 "7/copies": "there is no chapter '7'; the chapters are: 01_first, 02_second$"}
        for name, sentence in cases.items():
            with self.subTest(name):
                self.assert_refused(self.lab("run", name), sentence)
        self.assertEqual(self.calls(), [])

    def test_the_chapter_names_them(self) -> None:
        result = self.lab("run", "02")
        self.assertEqual(result.stdout, f"02_second:\n{self.root}\n")
        self.assertEqual(result.stderr.splitlines()[-1], "lab: experiments: ./lab run 02/copies, 02/transports")
        self.assertNotIn("experiments", self.lab("run", "01").stderr)
        for status in (1, 77):
            self.program("02_second", f"echo reason >&2; exit {status}")
            result = self.lab("run", "02")
            self.assertEqual((result.returncode, result.stderr.splitlines()[-1]), (status, "reason"))

    def test_the_tour_leaves_them_out(self) -> None:
        result = self.succeed("run", EXPERIMENT="1")
        self.assertNotIn("copies", result.stdout + result.stderr + "".join(self.calls()))


class RefusedTest(ProgramTest):
    def test_no_name(self) -> None:
        for command in ("run", "test", "race", "bench", "watch"):
            with self.subTest(command):
                self.assert_refused(self.lab(command, ""), "no chapter ''")
        self.assertEqual(self.calls(), [])

    def test_a_folder_that_cannot_be_made(self) -> None:
        (self.root / "build").touch()
        for command in (["run", "01"], ["test"], ["docs"], ["run", "--", "x"]):
            with self.subTest(command):
                result = self.lab(*command)
                self.assertRegex(result.stderr, r"^lab: build/\w+ cannot be made: Not a directory\n")
                self.assertEqual(result.returncode, 1 if command[-1] == "x" else 2)  # the tour reports it for each chapter

    def test_a_log_that_cannot_be_written(self) -> None:
        (self.root / "build/virtual/lab.log").mkdir(parents=True)
        self.assert_refused(self.lab("run", "01"), "^lab: build/virtual/lab.log cannot be written: Is a "
                            "directory; run what is built by its path, in build/virtual/bin$")

    def test_a_log_of_the_installation_that_cannot_be_written(self) -> None:
        (self.bin / "ninja").unlink()
        self.add_apt()
        (self.root / "build/setup.log").mkdir(parents=True)
        self.assert_refused(self.lab("run", "01"), "lab: .*/build/setup.log cannot be written")
        (self.root / "build/setup.log").rmdir()
        (self.root / "build").rmdir()
        (self.root / "build").touch()
        self.assert_refused(self.lab("run", "01"), "lab: .*/build cannot be made")

    def test_a_working_folder_that_is_gone(self) -> None:
        gone = self.sandbox / "gone"
        gone.mkdir()
        command = f'rmdir "{gone}" && exec "{self.root}/lab" run 01'
        variables = {**self.variables(), "PATH": f"{self.bin}:{os.defpath}"}
        result = subprocess.run(["bash", "-c", command], cwd=gone, env=variables, capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr.splitlines()[-1], f"lab: the working folder does not exist any more: {gone}")


class WriterTest(ProgramTest):
    def tool_of_the_repository(self, name: str) -> None:
        self.script(self.root / "tools" / name, 'echo "$0" "$@"')
        if name.endswith(".py"):
            (self.root / "tools" / name).write_text("import sys\nprint(*sys.argv)\n", encoding="utf-8")

    def test_leave_it_to_a_tool(self) -> None:
        self.pages_show()
        cases = {("new", "15_more"): "new_chapter.py 15_more", ("pages",): "pages/update_pages.py",
                 ("pages", "--check"): "pages/update_pages.py --check", ("pages", "--measured"): "pages/update_pages.py --measured",
                 ("format",): "check_format --fix", ("format", "--check"): "check_format"}
        for arguments, expected in cases.items():
            with self.subTest(arguments):
                self.tool_of_the_repository(expected.split()[0])
                result = self.lab(*arguments, cwd=self.sandbox)
                self.assertEqual((result.returncode, result.stdout), (0, f"{self.root}/tools/{expected}\n"), result.stderr)

    def pages_show(self, *targets: str, status: int = 0) -> None:
        """Sets the mutants that tools/pages/mutant_blocks.py finds in pages."""
        text = f"import sys\nassert sys.argv[1:] == ['--targets']\nprint({chr(10).join(targets)!r})\nsys.exit({status})\n"
        (self.root / "tools" / "pages" / "mutant_blocks.py").write_text(text, encoding="utf-8")

    def test_pages_builds_the_mutants_that_they_show(self) -> None:
        self.tool_of_the_repository("pages/update_pages.py")
        self.pages_show("race mutant_a", "virtual mutant_b")
        for name in ("mutant_a", "mutant_b"):
            self.program(name, "exit 1")
        self.assertEqual(self.lab("pages", "--check").returncode, 0)
        self.assertEqual(self.calls("cmake"), [])
        self.assertEqual(self.lab("pages").stdout, f"{self.root}/tools/pages/update_pages.py\n")
        built = [call for call in self.calls("cmake") if "--build" in call]
        self.assertRegex(" ".join(built), r"build/race --target mutant_a .* .*build/virtual --target mutant_b ")
        self.assertTrue(all("-DOVERLAP_MUTANTS=ON" in call for call in self.calls("cmake") if "--preset" in call))
        self.mark("broken_mutant_b", "an error\n")
        result = self.lab("pages")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, "an error\nlab: building mutant_b failed")
        self.pages_show(status=2)
        self.assertEqual((self.lab("pages").returncode, self.lab("pages").stdout), (2, ""))

    def test_refusals(self) -> None:
        cases = {("new",): r"arguments are required: NN_NAME \(\./lab new --help ", ("watch",): "are required: PROGRAM",
                 ("new", "a", "b"): "unrecognized arguments: b", ("pages", "--all"): "unrecognized arguments: --all",
                 ("format", "x"): "unrecognized arguments: x", ("watch", "--gpus"): "are required: PROGRAM"}
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                self.assert_refused(self.lab(*arguments), sentence)

    def test_watch(self) -> None:
        self.program("01_first", 'echo "runs $*"; exit 3')
        watch = subprocess.Popen([self.root / "lab", "watch", "1", "--backend=virtual", "--n", "2"], text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.variables())
        self.addCleanup(watch.__exit__, None, None, None)
        self.addCleanup(watch.terminate)
        assert watch.stdout is not None and watch.stderr is not None
        self.assertEqual(watch.stdout.readline(), "runs --n 2\n")
        main = self.root / "chapters/01_first/main.cu"
        broken = self.sandbox / "broken_01_first"
        self.until_it_waits(watch)
        broken.write_text("an error\n", encoding="utf-8")
        os.utime(main, ns=(1, 1))
        self.assertIn("an error\nlab: building 01_first failed\n", self.until_it_waits(watch))
        broken.unlink()
        header = self.root / "chapters/01_first/new.cuh"
        header.touch()
        self.assertEqual(watch.stdout.readline(), "runs --n 2\n")
        self.assertIn("lab: exit status 3\n", self.until_it_waits(watch))
        before = len(self.calls())
        time.sleep(1)
        self.assertEqual(len(self.calls()), before)
        watch.terminate()
        self.assertEqual(watch.wait(timeout=20), -15)

    def until_it_waits(self, watch: "subprocess.Popen[str]") -> str:
        said = ""
        assert watch.stderr is not None
        while "waiting for a source to be saved" not in said:
            line = watch.stderr.readline()
            self.assertTrue(line, said)
            said += line
        return said


class WorkTest(ProgramTest):
    """--work: the program with the header of a hand-out, and the arguments of the teaching commands."""

    def hand_out(self) -> pathlib.Path:
        folder = self.root / "work" / "01_first"
        folder.mkdir(parents=True)
        (folder / ".handout.json").write_text('{"chapter": "01_first"}', encoding="utf-8")
        self.script(self.root / "build/virtual/work/01_first", 'echo "work $*"')
        self.script(self.root / "build/virtual/work/01_first_test", 'echo "tests $*"; exit $TESTS')
        for target in ("work_01_first", "work_01_first_test"):
            self.program(target, "exit 1")
        return folder

    def test_run(self) -> None:
        folder = self.hand_out()
        for words in (("run", "01", "--work", "--n", "2"), ("run", "--work", "1", "--n", "2")):
            result = self.lab(*words)
            self.assertEqual((result.returncode, result.stdout), (0, "work --n 2\n"), result.stderr)
            configure, build = self.calls("cmake")[-2:]
            self.assertTrue(configure.endswith(f"-DOVERLAP_WORK={folder}"), configure)
            self.assertIn("--target work_01_first", build)

    def test_test(self) -> None:
        self.hand_out()
        for status in (0, 1):
            result = self.lab("test", "01", "--work", TESTS=str(status))
            self.assertEqual((result.returncode, result.stdout), (status, "tests --gtest_brief=1\n"), result.stderr)
        self.assertEqual(self.calls("ctest"), [])

    def test_refusals(self) -> None:
        for words, sentence in ((("run", "01", "--work"), r"no hand-out in work/01_first: \./lab start 01 makes it$"),
                                (("run", "--work"), "run --work needs a chapter"), (("test", "--work"), "test --work needs a chapter"),
                                (("race", "--work"), "race --work needs a chapter"), (("start",), "required: NN"),
                                (("start", "01", "--to"), "argument --to: expected one argument"),
                                (("hint", "01", "a", "b"), "unrecognized arguments: b"), (("start", "01", "a"), "unrecognized arguments: a")):
            with self.subTest(words):
                self.assert_refused(self.lab(*words), sentence)
        self.assertEqual(self.calls("cmake"), [])

    def test_words_of_the_grader(self) -> None:
        (self.root / "course/grade/__main__.py").write_text("import sys\nprint(sys.argv[1:])\n", encoding="utf-8")
        for words, expected in ((("grade", "01", "--submissions", "a b", "--csv=x", "--unsafe"),
                                 ["01_first", "--submissions", "a b", "--csv=x", "--unsafe"]),
                                (("grade", "1", "--help"), ["01_first", "--help"])):
            with self.subTest(words):
                self.assertEqual(self.lab(*words).stdout, f"{expected}\n")


class TableTest(ProgramTest):
    TEXT = (REPOSITORY / "tools/lab/commands.txt").read_text(encoding="utf-8")
    NAMES = re.findall(r"^\./lab (\w+)", TEXT, re.MULTILINE)

    def test_each_command_is_as_the_overview_says(self) -> None:
        modules = {path.stem for path in (REPOSITORY / "tools/lab/commands").glob("*.py")} - {"__init__"}
        self.assertEqual(sorted(self.NAMES), sorted(modules))
        for name, words, text in re.findall(r"^\./lab (\w+)(.*?)  +(.*)$", self.TEXT, re.MULTILINE):
            with self.subTest(name):
                usage, description, rest = command_line.parser_of(name).format_help().split("\n\n", 2)
                self.assertEqual(" ".join(description.split()), text)
                operands = re.sub(r" \[-.*?\]", "", " ".join(usage.split()))
                self.assertEqual(operands, f"usage: ./lab {name}{words}".replace(" [ARGS...]", ""))
                self.assertEqual("ARGS" in words, "All other words are passed to" in rest)

    def test_the_front_page_lists_them(self) -> None:
        page = (REPOSITORY / "README.md").read_text(encoding="utf-8")
        self.assertIn("<!-- commands -->\n```\n" + self.TEXT.split("\n\n")[0] + "\n```\n<!-- /commands -->", page)

    def test_help_needs_no_python(self) -> None:
        self.assertEqual(self.lab("--help").stdout, self.TEXT)
        (self.bin / "python3").unlink()
        for arguments in (["--help"], ["run", "--help"], ["help"]):
            result = self.lab(*arguments)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, self.TEXT, ""))

    def test_refusals_without_python(self) -> None:
        (self.bin / "python3").unlink()
        self.add_apt()
        self.assert_refused(self.lab("walk"), "unknown command 'walk'")
        self.assert_refused(self.lab("run", "--backend", "x"), "--backend is 'x'")
        self.assertEqual(self.lab().returncode, 2)
        result = self.lab("doctor")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing can run before these packages are installed: python3", result.stderr)
        self.assertRegex(result.stdout, "python3 +not here")
        self.assertEqual(self.calls(), [])

    def test_tests_need_google_test_at_once(self) -> None:
        for arguments in (["test"], ["race", "--test"]):
            with self.subTest(arguments):
                self.setUp()
                for name in ("bin/python3", "lib/x86_64-linux-gnu/cmake/GTest/GTestConfig.cmake"):
                    (self.sandbox / "usr" / name).unlink()
                self.add_apt()
                self.program("planted_programs", "exit 0")
                self.lab(*arguments)
                self.assertEqual(self.calls("apt-get"),
                                 ["apt-get install -y --no-install-recommends python3 libgtest-dev"])
                self.assertTrue(self.calls("ctest") or arguments[0] == "race")

    def test_nothing_of_the_users_python_leaks_in(self) -> None:
        for name in ("argparse", "build", "process", "subprocess"):
            (self.sandbox / f"{name}.py").write_text("raise SystemExit('leaked')\n", encoding="utf-8")
        self.succeed("run", "01", cwd=self.sandbox, PYTHONPATH=str(self.sandbox), PYTHONSTARTUP="x", PYTHONHOME="")

    def test_completion(self) -> None:
        script = subprocess.run([REPOSITORY / "lab", "completion"], capture_output=True, text=True, check=True).stdout
        cases = {"": [*self.NAMES, "--help", "--backend", "--yes"], "te": ["test"], "test 04": ["04_copy_engine"],
                 "run 04": ["04_copy_engine", "04/transports"], "run 04/t": ["04/transports"],
                 "test --": ["--all", "--full", "--slow", "--work", "--backend", "--yes"],
                 "bench --g": ["--gpus"], "docs 0": [], "notebook 0": []}
        for typed, expected in cases.items():
            with self.subTest(typed):
                words = ["./lab", *typed.split(" ")]
                quoted = " ".join(f"'{word}'" for word in words)
                call = (f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
                        "_overlap_lab\nprintf '%s\\n' \"${COMPREPLY[@]}\"")
                run = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=True)
                self.assertEqual(sorted(run.stdout.split()), sorted(expected), run.stderr)


if __name__ == "__main__":
    unittest.main()
