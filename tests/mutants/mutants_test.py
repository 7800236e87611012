#!/usr/bin/env python3
"""Tests of the mutants' own tools: what tools/mutants.py refuses, and each way in which judge.py must fail."""
import contextlib
import io
import pathlib
import re
import sys
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import judge  # noqa: E402
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools import mutants  # noqa: E402
from tools.mutants import NoVerdict  # noqa: E402

GOOD = """why: wrong neighbour
file: 01_sample/sample.cuh
verdict: wrong result
arguments: --gpus 2 --only "a,b"
--- original
  int next = rank + 1;
--- mutant
  int next = rank + 2;
--- end
"""


class SampleTest(FolderTest):
    """With a chapter and a mutant file that fits it."""

    def setUp(self) -> None:
        super().setUp()
        self.chapters = self.folder / "chapters"
        self.write("chapters/01_sample/main.cu", "int main() {}\n")
        self.write("chapters/01_sample/sample.cuh", "a\n  int next = rank + 1;\nb\n")
        self.file = self.write("01_sample/mutants/wrong_neighbour.mutant", GOOD)


class MutantTest(SampleTest):
    def make(self, text: str = GOOD) -> pathlib.Path:
        self.file.write_text(text)
        output = self.folder / "copy"
        mutants.make_tree(mutants.read_mutant(self.file), self.chapters, output)
        return output

    def assert_refused(self, text: str, sentence: str) -> None:
        with self.assertRaisesRegex(mutants.MutantError, sentence):
            self.make(text)
        self.assertFalse((self.folder / "copy").exists())

    def test_reads_all_fields(self) -> None:
        mutant = mutants.read_mutant(self.file)
        self.assertEqual(mutant.why, "wrong neighbour")
        self.assertEqual(mutant.chapter, "01_sample")
        self.assertEqual(mutant.arguments, ["--gpus", "2", "--only", "a,b"])
        self.assertEqual(mutant.original, "  int next = rank + 1;")

    def test_may_name_a_test_that_runs_in_the_programs_place(self) -> None:
        self.assertEqual(mutants.read_mutant(self.file).test, "")
        self.make(GOOD.replace("arguments:", "test: 01_sample_sizes_test.cu\narguments:"))
        self.assertEqual(mutants.read_mutant(self.file).test, "01_sample_sizes_test.cu")

    def test_may_name_an_experiment(self) -> None:
        (self.chapters / "01_sample" / "experiments").mkdir()
        (self.chapters / "01_sample" / "experiments" / "sizes.cu").write_text("  int other;\n  int next = rank + 1;\n")
        text = GOOD.replace("sample.cuh", "experiments/sizes.cu").replace("arguments:", "program: 01_sizes\narguments:")
        copy = self.make(text) / "01_sample" / "experiments" / "sizes.cu"
        self.assertEqual(copy.read_text(), "  int other;\n  int next = rank + 2;\n")

    def test_changes_that_text_only(self) -> None:
        output = self.make()
        self.assertEqual((output / "01_sample" / "sample.cuh").read_text(), "a\n  int next = rank + 2;\nb\n")
        self.assertEqual((output / "01_sample" / "main.cu").read_text(), "int main() {}\n")
        self.assertIn("rank + 1", (self.chapters / "01_sample" / "sample.cuh").read_text())

    def test_replaces_an_older_copy(self) -> None:
        (self.make() / "left_over").touch()
        self.assertFalse((self.make() / "left_over").exists())

    def test_part_of_a_line(self) -> None:
        text = GOOD.replace("  int next = rank + 1;", "rank + 1").replace("  int next = rank + 2;", "rank - 1")
        output = self.make(text)
        self.assertEqual((output / "01_sample" / "sample.cuh").read_text(), "a\n  int next = rank - 1;\nb\n")

    def test_several_lines(self) -> None:
        output = self.make(GOOD.replace("rank + 1;\n", "rank + 1;\nb\n").replace("rank + 2;\n", "rank;\nc\n"))
        self.assertEqual((output / "01_sample" / "sample.cuh").read_text(), "a\n  int next = rank;\nc\n")

    def test_may_delete_text(self) -> None:
        """No empty line stays where a line was; what is left of a line stays."""
        for original, source, changed in (("  int next = rank + 1;", "a\n  int next = rank + 1;\nb\n", "a\nb\n"),
                                          ("int next = rank + 1;", "a\n  int next = rank + 1;  \n\nb\n", "a\n\nb\n"),
                                          ("a\n  int next = rank + 1;", "a\n  int next = rank + 1;\nb\n", "b\n"),
                                          ("  int next = rank + 1;", "a\n  int next = rank + 1;", "a\n"),
                                          (" + 1", "a\n  int next = rank + 1;\n", "a\n  int next = rank;\n"),
                                          ("int next = rank + 1;", "a\n  int next = rank + 1;  // b\n", "a\n    // b\n")):
            with self.subTest(original=original, source=source):
                (self.chapters / "01_sample" / "sample.cuh").write_text(source)
                text = GOOD.replace("  int next = rank + 2;\n", "").replace("  int next = rank + 1;", original)
                self.assertEqual((self.make(text) / "01_sample" / "sample.cuh").read_text(), changed)

    def test_may_put_an_empty_line_in_the_place_of_text(self) -> None:
        output = self.make(GOOD.replace("  int next = rank + 2;\n", "\nb\n"))
        self.assertEqual((output / "01_sample" / "sample.cuh").read_text(), "a\n\nb\nb\n")

    def test_copies_what_is_compiled_and_nothing_else(self) -> None:
        (self.chapters / "01_sample" / "experiments").mkdir()
        for name in ("other.cuh", "README.md", "experiments/sizes.cu", "experiments/other.cu"):
            (self.chapters / "01_sample" / name).touch()

        def copied(output: pathlib.Path) -> list:
            return sorted(str(path.relative_to(output)) for path in output.rglob("*.*"))
        files = ["01_sample/main.cu", "01_sample/sample.cuh"]
        self.assertEqual(copied(self.make()), files)
        text = GOOD.replace("arguments:", "program: 01_sizes\narguments:")
        self.assertEqual(copied(self.make(text)), ["01_sample/experiments/sizes.cu", *files])

    def test_leaves_out_the_variants_that_do_not_run(self) -> None:
        source = ("  table.add(\"a\", algorithm<A<T, B>>(f(1)), plan());\n"
                  "  if (more) table.add(\n      \"c\", [](auto x) { x.run(g()); });\n"
                  "  bench.add(\"b\", algorithm<D>(), problem);  // last\n"
                  "  table.add(kName, algorithm<E>());\n  table.add_own(\"e\");\n")
        lines = source.splitlines()
        self.assertEqual(mutants.chosen_only(["--gpus", "2"], source), source)
        self.assertEqual(mutants.chosen_only(["--only", "a,c,b"], source), source)
        self.assertEqual(mutants.chosen_only(["--only", "a,b"], source).splitlines(),
                         [lines[0], "  if (more) ", ";", *lines[3:]])
        self.assertEqual(mutants.chosen_only(["--only", "c", "--gpus", "2"], source).splitlines(),
                         ["  ;", *lines[1:3], "  ;  // last", *lines[4:]])
        (self.chapters / "01_sample" / "main.cu").write_text(source)
        self.assertEqual((self.make() / "01_sample" / "main.cu").read_text(), mutants.chosen_only(["--only", "a,b"], source))

    def test_original_not_found(self) -> None:
        self.assert_refused(GOOD.replace("rank + 1", "rank - 1"), "occurs 0 times")

    def test_original_found_twice(self) -> None:
        (self.chapters / "01_sample" / "sample.cuh").write_text("  int next = rank + 1;\n" * 2)
        self.assert_refused(GOOD, "occurs 2 times")

    def test_bad_files(self) -> None:
        cases = {
            "no why": (GOOD.replace("why: wrong neighbour\n", ""), "no line 'why"),
            "empty why": (GOOD.replace("wrong neighbour", ""), "'why: ' is not one of"),
            "unknown key": ("who: me\n" + GOOD, "'who: me' is not one of"),
            "key twice": ("why: again\n" + GOOD, "once"),
            "unknown verdict": (GOOD.replace("wrong result", "bad"), "verdict 'bad' is none of"),
            "no end": (GOOD.replace("--- end\n", ""), "must be there"),
            "two originals": (GOOD + "--- original\n", "must be there"),
            "wrong order": (GOOD.replace("--- mutant", "-").replace("--- original", "--- mutant")
                            .replace("-\n", "--- original\n"), "must be there"),
            "text at the end": (GOOD + "more\n", "after '--- end'"),
            "no change": (GOOD.replace("rank + 2", "rank + 1"), "the same text"),
            "empty original": (GOOD.replace("  int next = rank + 1;\n", ""), "original is empty"),
            "race without report": (GOOD.replace("wrong result", "race"), "no line 'report"),
            "report without race": ("report: a\n" + GOOD, "verdicts race and scope only"),
            "its file without race": ("report_file: a\n" + GOOD, "verdicts race and scope only"),
            "two programs": ("test: a\nprogram: 01_b\n" + GOOD, "only one of them runs"),
            "no such file": (GOOD.replace("sample.cuh", "other.cuh"), "does not exist"),
        }
        for name, (text, sentence) in cases.items():
            with self.subTest(name):
                self.assert_refused(text, sentence)

    def test_reported_place(self) -> None:
        race = GOOD.replace("verdict: wrong result", "verdict: race\nreport: rank + 2")
        source = (self.chapters / "01_sample" / "sample.cuh").read_text()

        def place(text: str) -> str:
            self.file.write_text(text)
            return mutants.reported_place(mutants.read_mutant(self.file), source)
        self.assertEqual(place(race), "sample.cuh:2")
        self.assertEqual(place(race.replace("report: rank + 2", "report: b")), "sample.cuh:3")
        # In a file that does not change: its line as it is.
        elsewhere = race.replace("report: rank + 2", "report: b\nreport_file: x/other.cuh")
        self.assertEqual(place(elsewhere), f"other.cuh:{source[:source.index('b')].count(chr(10)) + 1}")
        for text, count in {"rank + 1": 0, "a": 2}.items():  # 'a' is in 'rank' too
            with self.subTest(text), self.assertRaisesRegex(mutants.MutantError, f"occurs {count} times"):
                place(race.replace("report: rank + 2", f"report: {text}"))

    def test_no_such_chapter(self) -> None:
        (self.chapters / "01_sample" / "main.cu").unlink()
        self.assert_refused(GOOD, "no chapter 01_sample")

    def test_command_line(self) -> None:
        arguments = ["mutants.py", str(self.file), str(self.chapters), str(self.folder / "copy")]
        with mock.patch.object(sys, "argv", arguments):
            self.assertEqual(mutants.main(), 0)
            self.file.write_text(GOOD.replace("rank + 1", "nothing"))
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                self.assertEqual(mutants.main(), 1)
        self.assertIn("occurs 0 times", errors.getvalue())


class JudgeTest(SampleTest):
    def judge(self, mutant_script: str, script: str = "exit 0", verdict: str = "wrong result",
              limit: float = 20) -> str:
        return judge.judge([verdict], self.script("original", script), self.script("changed", mutant_script),
                           ["--gpus", "2"], limit)

    def test_each_verdict_is_accepted(self) -> None:
        for verdict, script in {"wrong result": "echo row 3; exit 1",
                                "illegal access": "echo 'call: cudaErrorIllegalAddress (...)' >&2; exit 2",
                                "failed kernel": "echo 'call: cudaErrorLaunchFailure (...)' >&2; exit 3",
                                "scope": "echo 'GPU 1: what another GPU writes is read at system scope' >&2; exit 3",
                                "race": "echo 'virtual GPUs: data race in ...' >&2; exit 3",
                                "deadlock": "echo 'Deadlock: all streams wait' >&2; exit 3"}.items():
            with self.subTest(verdict):
                self.assertTrue(self.judge(script, verdict=verdict))

    def test_the_check_build_names_the_byte(self) -> None:
        sentence = "virtual GPUs: kernel 'k' writes 4 bytes at a.cu:12: %s a cudaMalloc of 8 bytes"
        for where in ("0 bytes behind", "4 bytes before", "inside freed memory,"):
            self.assertTrue(self.judge(f'echo "{sentence % where}"; exit 3', verdict="illegal access"))
        unwritten = "virtual GPUs: kernel 'k' reads 4 bytes at a.cu:12 that nothing has written: byte 4 of a cudaMalloc of 8 bytes"
        self.assertTrue(self.judge(f'echo "{unwritten}"; exit 3', verdict="illegal access"))
        for other in (sentence % "beside", unwritten.replace(" at a.cu:12", "")):
            with self.assertRaisesRegex(NoVerdict, "no race and no deadlock"):
                self.judge(f'echo "{other}"; exit 3', verdict="illegal access")

    def test_both_programs_get_the_arguments(self) -> None:
        check = '[ "$*" = "--gpus 2" ]'
        self.judge(f"{check} && exit 1; exit 0", script=f"{check} || exit 1")

    def test_each_failure(self) -> None:
        cases = {
            "not noticed": (dict(mutant_script="exit 0"), "verdict is 'not noticed', not 'wrong result'"),
            "another verdict": (dict(mutant_script="echo data race; exit 3"), "verdict is 'race', not 'wrong result'"),
            "wrong, not race": (dict(mutant_script="exit 1", verdict="race"), "verdict is 'wrong result', not 'race'"),
            "no report": (dict(mutant_script="exit 3", verdict="race"), "no race and no deadlock"),
            "trace is no race": (dict(mutant_script="echo trace; exit 3", verdict="race"), "no race and no deadlock"),
            "race of its own": (dict(mutant_script="echo a race; exit 3", verdict="race"), "no race and no deadlock"),
            "two reports": (dict(mutant_script="echo data race, deadlock; exit 3", verdict="race"),
                            "race and of deadlock"),
            "failed call": (dict(mutant_script="exit 2"), "exit status 2 is no verdict"),
            "skipped": (dict(mutant_script="exit 77"), "exit status 77 is no verdict"),
            "crash": (dict(mutant_script="kill -SEGV $$"), "ended by signal 11"),
            "time-out": (dict(mutant_script="exec sleep 20", limit=0.3), "changed did not end within 0.3 s"),
            "original is wrong": (dict(mutant_script="exit 1", script="exit 1"), "unchanged program exits with 1"),
            "original is skipped": (dict(mutant_script="exit 1", script="exit 77"), "unchanged program exits with 77"),
            "original hangs": (dict(mutant_script="exit 1", script="exec sleep 20", limit=0.3), "original did not end"),
        }
        for name, (arguments, sentence) in cases.items():
            with self.subTest(name), self.assertRaisesRegex(NoVerdict, sentence):
                self.judge(**arguments)

    def test_one_of_several_verdicts(self) -> None:
        several = ["wrong result", "deadlock"]
        programs = [self.script("original", "exit 0"), self.script("changed", "echo deadlock; exit 3")]
        self.assertTrue(judge.judge(several, *programs, [], 20))
        with self.assertRaisesRegex(NoVerdict, "verdict is 'race', not 'wrong result or deadlock'"):
            judge.judge(several, programs[0], self.script("race", "echo data race; exit 3"), [], 20)

    def test_place(self) -> None:
        def call(report: str) -> str:
            return judge.judge(["race"], self.script("original", "exit 0"),
                               self.script("changed", f"echo 'data race: {report}'; exit 3"), [], 20, "x.cuh:12")
        self.assertTrue(call("write at x.cuh:12, read at x.cuh:3"))
        for report in ("x.cuh", "at x.cuh:121", "at x.cuh:1", "at max.cuh:12", "at a.x.cuh:12", "at x_cuh:12"):
            with self.subTest(report), self.assertRaisesRegex(NoVerdict, "does not name x.cuh:12"):
                call(report)

    def test_start(self) -> None:
        start = self.script("start", 'STARTED=yes exec "$@"')
        arguments = (["race"], self.script("original", '[ "$STARTED" = yes ]'),
                     self.script("changed", 'echo "data race"; exit $([ "$STARTED" = yes ] && echo 3)'), [], 20)
        self.assertTrue(judge.judge(*arguments, start=[str(start)]))
        with self.assertRaisesRegex(NoVerdict, "unchanged program exits with 1"):
            judge.judge(*arguments)

    def test_missing_program(self) -> None:
        with self.assertRaisesRegex(NoVerdict, "cannot be started"):
            mutants.run(self.folder / "nothing", [], 5)

    def test_command_line(self) -> None:
        def call(script: str, *words: str) -> int:
            programs = [str(self.script("original", "exit 0")), str(self.script("changed", script))]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return judge.main([*words, *programs])
        for words in (("mutant", str(self.file)), ("blank", "wrong result,deadlock")):
            self.assertEqual(call("exit 1", *words), 0)
            self.assertEqual(call("exit 0", *words), 1)
        self.assertEqual(call("echo deadlock; exit 3", "blank", "wrong result,deadlock"), 0)


class RepositoryTest(unittest.TestCase):
    """The mutants that are here fit the chapters that are here; building them is a slow test."""

    def test_all_mutants_apply(self) -> None:
        files = sorted(HERE.parents[1].glob("chapters/*/mutants/*.mutant"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.name):
                mutant = mutants.read_mutant(path)
                source = REPOSITORY / "chapters" / mutant.file
                mutants.apply_mutant(mutant, source.read_text(encoding="utf-8"))
                if mutant.report:
                    named = REPOSITORY / "chapters" / mutant.report_file
                    mutants.reported_place(mutant, named.read_text(encoding="utf-8"))
                if mutant.test:
                    self.filter_finds_a_case(mutant)

    def filter_finds_a_case(self, mutant: mutants.Mutant) -> None:
        """A filter that names no case of its file runs no test, which looks like a mutant that nobody notices."""
        tests = (REPOSITORY / "chapters" / mutant.chapter / "tests" / mutant.test).read_text(encoding="utf-8")
        for word in mutant.arguments:
            if word.startswith("--gtest_filter="):
                for name in re.findall(r"[A-Za-z]\w+", word.partition("=")[2]):
                    self.assertRegex(tests, rf"\b{name}\b", mutant.test)


if __name__ == "__main__":
    unittest.main()
