#!/usr/bin/env python3
"""Tests of hand-outs, hints, variations and planted errors that need no build: the content of each file, and what is
rejected."""
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Tuple
from unittest import mock

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tools" / "lab"), str(REPOSITORY)]
import command_line  # noqa: E402
from course import changes, handout, planted, tasks, try_work, variation, work  # noqa: E402

RING = "03_ring_all_gather"
KEY = b"a key of a course, long enough"


class WorkTest(unittest.TestCase):
    """Base: work/ is a folder of the test's own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="a class ")  # with a space
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve() / "work"  # ./try looks two folders above: not among all temporary ones
        self.folder.mkdir()
        patch = mock.patch.object(work, "FOLDER", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def call(self, *words: str) -> Tuple[int, str, str]:
        """Exit status, output and errors of ./lab."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = command_line.main(list(words))
        return status, out.getvalue(), err.getvalue()


class StartTest(WorkTest):
    def test_holds_questions_and_no_answers(self) -> None:
        for chapter in tasks.chapters_with_tasks():
            with self.subTest(chapter.name):
                folder = handout.start(chapter.name, "", "", "")
                self.assertEqual(folder, self.folder / chapter.name)
                page = (folder / "README.md").read_text(encoding="utf-8")
                rebuilt = {task.file for task in tasks.read_tasks(chapter).values() if task.kind == "rebuild"}
                for path in folder.glob("*.cuh"):
                    source = (chapter / path.name).read_text(encoding="utf-8").splitlines()
                    text = path.read_text(encoding="utf-8")
                    regions = tasks.blank.regions_of(source, path.name)
                    self.assertEqual(bool(regions), path.name in rebuilt)
                    for region in regions:
                        self.assertIn(f"// TASK {region.name}: ", text)
                        answer = "\n".join(source[region.content:region.closing])
                        self.assertNotIn(answer, text)
                        short = "\n".join(line.strip() for line in source[region.content:region.closing])
                        self.assertNotIn(short, "\n".join(line.strip() for line in page.splitlines()))
                    self.assertNotIn("// [task", text)
                for task in tasks.read_tasks(chapter).values():
                    self.assertEqual(task.kind != "exercise", f"## {task.name}: " in (folder / "TASKS.md").read_text(encoding="utf-8"))

    def test_links_of_the_page_lead_somewhere(self) -> None:
        folder = handout.start(RING, "", "", "")
        page = (folder / "README.md").read_text(encoding="utf-8")
        targets = [target for target in re.findall(r"\]\(([^)#\s]+)", page) if "://" not in target]
        self.assertGreater(len(targets), 10)
        for target in targets:
            self.assertTrue((folder / target.replace("%20", " ")).exists(), target)

    def test_never_overwrites(self) -> None:
        folder = handout.start(RING, "", "", "")
        (folder / "ring_all_gather.cuh").write_text("mine", encoding="utf-8")
        status, out, err = self.call("start", RING)
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, "is already there: it may hold somebody's work .*reset 03")
        self.assertEqual((folder / "ring_all_gather.cuh").read_text(encoding="utf-8"), "mine")

    def test_elsewhere(self) -> None:
        _, out, err = self.call("start", RING, f"--to={self.folder}/my own")
        self.assertEqual(err, "")
        self.assertTrue((self.folder / "my own" / RING / "try").stat().st_mode & 0o100)
        self.assertIn("call ./try", out)

    def test_refusals(self) -> None:
        for name, mode in (("key", 0o600), ("open", 0o640)):
            (self.folder / name).write_text("short", encoding="utf-8")
            (self.folder / name).chmod(mode)
        for words, sentence in (((RING, "--student=a;b"), "has other characters"), ((RING, "--key=x"), "needs --student"),
                                ((RING, "--student=a", f"--key={self.folder}/none"), "No such file"),
                                ((RING, "--student=a", f"--key={self.folder}/key"), "holds 5 bytes"),
                                ((RING, "--student=a", f"--key={self.folder}/open"), "can be read by others.*chmod 600"),
                                ((RING, f"--to={self.folder}/a;b"), "CMake cannot build")):
            with self.subTest(words):
                status, out, err = self.call("start", *words)
                self.assertEqual((status, out, len(err.splitlines())), (2, "", 1), err)
                self.assertRegex(err, sentence)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["key", "open"])

    def attempt(self, folder: pathlib.Path, *words: str, repository: str = "") -> Tuple[int, str, str]:
        """./try with these words."""
        environment = {**os.environ, "OVERLAP_REPOSITORY": repository}
        run = subprocess.run([str(folder / "try"), *words], capture_output=True, text=True, check=False, env=environment)
        return run.returncode, run.stdout, run.stderr

    def test_where_try_finds_the_repository(self) -> None:
        folder = handout.start(RING, "", "", f"{self.folder}/a b/c")
        self.assertLessEqual({path.name for path in folder.iterdir() if str(REPOSITORY) in path.read_text("utf-8")}, {"README.md"})
        self.assertEqual(self.attempt(folder, "--pack"),
                         (2, "", "the repository is not found: say where it is, once: ./try --repository FOLDER\n"))
        packed = (0, "ring_all_gather.handin.cuh\n", "")
        self.assertEqual(self.attempt(folder, "--pack", repository=str(REPOSITORY)), packed)
        (folder.parent / "overlap").symlink_to(REPOSITORY)
        self.assertEqual(self.attempt(folder, "--pack"), packed)
        (folder.parent / "overlap").unlink()
        self.assertEqual(self.attempt(folder, "--repository", str(REPOSITORY), "--pack"), packed)
        self.assertEqual(self.attempt(folder, "--pack"), packed)
        self.assertEqual(self.attempt(folder, "--repository", f"{folder}/none", "--pack")[0], 2)

    def test_hints_where_the_hand_out_is(self) -> None:
        folder = handout.start(RING, "", "", f"{self.folder}/elsewhere")
        text = (folder / "TASKS.md").read_text(encoding="utf-8")
        self.assertIn("`./try --hint TASK`", text)
        self.assertNotIn("./lab hint", text)
        for name in ("transfers", "transfer", "wait"):  # the task, and the header's names of its regions
            said = self.attempt(folder, "--hint", name, "--solution", repository=str(REPOSITORY))
            self.assertTrue(said[1].startswith("Pass a shard on, and wait for the next one\n"), said)
        for number in (1, 2):  # counted in this hand-out, not in others
            self.assertIn(f"Hint {number} of 3", self.attempt(folder, "--hint", "transfers", repository=str(REPOSITORY))[1])
        self.assertIn("./try --hint transfers --solution", self.attempt(folder, "--hint", "transfers", repository=str(REPOSITORY))[1])
        self.assertIn("Hint 1 of 3", self.call("hint", RING, "transfers")[1])

    def test_helpers_that_only_the_missing_code_calls(self) -> None:
        text = (handout.start("04_copy_engine", "", "", "") / "TASKS.md").read_text(encoding="utf-8")
        self.assertRegex(text, r"## Helpers\n(.*\n)+// overlap/gpu/gemm.hpp\n(///.*\n)+(.*\n){2}void matmul_row_major\(cublasHandle_t handle")
        self.assertNotIn("gemm_size(", text)

    def test_pack(self) -> None:
        folder = handout.start(RING, "ada", "", "")
        self.assertEqual(self.attempt(folder, "--pack", repository=str(REPOSITORY)), (0, "ring_all_gather-ada.handin.cuh\n", ""))
        self.assertEqual((folder / "ring_all_gather-ada.handin.cuh").read_bytes(), (folder / "ring_all_gather.cuh").read_bytes())


class ResetTest(WorkTest):
    def test_keeps_what_was_there(self) -> None:
        folder = handout.start(RING, "ada", "", "")
        header = folder / "ring_all_gather.cuh"
        first = header.read_text(encoding="utf-8")
        self.assertEqual(self.call("reset", RING)[1], "nothing has changed since the beginning\n")
        for number, text in ((1, "mine"), (2, "mine again")):
            header.write_text(text, encoding="utf-8")
            self.assertEqual(self.call("reset", RING)[1], f"ring_all_gather.cuh is kept in ring_all_gather.cuh.bak-{number}\n")
            self.assertEqual(header.read_text(encoding="utf-8"), first)
            self.assertEqual((folder / f"ring_all_gather.cuh.bak-{number}").read_text(encoding="utf-8"), text)
        header.unlink()
        self.assertEqual(self.call("reset", RING)[0], 0)
        self.assertEqual(header.read_text(encoding="utf-8"), first)

    def test_without_a_hand_out(self) -> None:
        status, _, err = self.call("reset", RING)
        self.assertEqual(status, 2)
        self.assertIn("./lab start 03 makes it", err)


class HintTest(WorkTest):
    def test_one_more_each_time(self) -> None:
        task = tasks.read_tasks(REPOSITORY / "chapters" / RING)["transfers"]
        for number in (1, 2, 3, 3):
            status, out, _ = self.call("hint", RING, "transfers")
            self.assertEqual(status, 0)
            self.assertIn(f"Hint {number} of 3\n\n{task.hints[number - 1]}\n", out)
            self.assertNotIn(task.solution, out)
        self.assertIn(task.solution, self.call("hint", RING, "transfers", "--solution")[1])

    def test_of_an_extension_what_changes(self) -> None:
        shown = self.call("hint", RING, "back_pressure", "--solution")[1]
        self.assertRegex(shown, r"\n--- a/chapters/03_ring_all_gather/ring_all_gather.cuh\n(.*\n)*\+  static constexpr int kSlots = 2;\n")
        self.assertNotIn("[task", shown)
        self.assertIn("its right neighbour's send", shown)
        student = next(f"s{number}" for number in range(40)
                       if variation.of_student(RING, f"s{number}", variation.PRACTICE_KEY).name == "right")
        handout.start(RING, student, "", "")
        self.assertRegex(self.call("hint", RING, "back_pressure", "--solution")[1], r"\+ .*its left neighbour's send")

    def test_exercises_by_number(self) -> None:
        for name in ("exercise_3", "3", "two_slots"):
            self.assertTrue(self.call("hint", RING, name, "--solution")[1].startswith("Two slots instead of P - 1\n"))

    def test_list_and_refusals(self) -> None:
        self.assertIn("transfers        rebuild", self.call("hint", RING)[1])
        self.assertRegex(self.call("hint", RING, "none")[2], "has no task 'none'; its tasks are: shards, ")
        self.assertRegex(self.call("hint", RING, "shrads")[2], "has no task 'shrads': did you mean shards\\?; its tasks are: ")
        self.assertRegex(self.call("hint", RING, "--solution")[2], "of which task")
        self.assertEqual(self.call("hint", RING, "none")[0], 2)

    def test_in_the_words_of_the_hand_out(self) -> None:
        right = variation.ways(RING)[1]
        student = next(name for name in map(str, range(60)) if variation.of_student(RING, name, variation.PRACTICE_KEY) == right)
        task = tasks.read_tasks(REPOSITORY / "chapters" / RING)["transfers"]
        self.assertNotEqual(right.apply(task.solution), task.solution)
        own = self.call("hint", RING, "transfers", "--solution")[1]
        elsewhere = str(self.folder / "elsewhere")
        handout.start(RING, student, "", elsewhere)
        self.assertEqual(self.call("hint", RING, "transfers", "--solution")[1], own)
        code = "\n".join(line for line in right.apply((REPOSITORY / "chapters" / RING / task.file).read_text(encoding="utf-8")).splitlines()
                         if "ncclSend" in line)
        self.assertIn("ncclSend", code)
        told = self.call("hint", RING, "transfers", "--solution", f"--to={elsewhere}")[1]
        self.assertIn(right.apply(task.solution), told)
        self.assertIn(code, told)
        self.assertEqual(self.call("hint", RING, "transfers", "--solution", f"--to={elsewhere}/{RING}")[1], told)
        handout.start(RING, student, "", "")
        self.assertEqual(self.call("hint", RING, "transfers", "--solution")[1], told)
        self.assertIn(right.apply(task.hints[0]), self.call("hint", RING, "transfers")[1])
        for chapter, folder in ((RING, "nowhere"), ("02_gather_then_multiply", f"elsewhere/{RING}")):
            self.assertEqual(self.call("hint", chapter, f"--to={self.folder}/{folder}")[0], 2)

    def test_where_nothing_can_be_written(self) -> None:
        (self.folder / "hints").write_text("a file where a folder should be", encoding="utf-8")
        self.assertIn("Hint 1 of 3", self.call("hint", RING, "transfers")[1])

    def test_a_broken_state(self) -> None:
        (self.folder / "hints").mkdir()
        for text in ("{", "[]", '{"transfers": "x"}', '{"transfers": -7}', '{"transfers": 99}'):
            (self.folder / "hints" / f"{RING}.json").write_text(text, encoding="utf-8")
            self.assertEqual(self.call("hint", RING, "transfers")[0], 0, text)


class VariationTest(WorkTest):
    def test_depends_on_the_student_the_chapter_and_the_key(self) -> None:
        names = [variation.of_student(RING, f"s{number}", KEY).name for number in range(40)]
        self.assertEqual(set(names), {"left", "right"})
        self.assertEqual(names, [variation.of_student(RING, f"s{number}", KEY).name for number in range(40)])
        self.assertNotEqual(names, [variation.of_student(RING, f"s{number}", KEY + b"x").name for number in range(40)])
        self.assertNotEqual(names, [variation.of_student("04_copy_engine", f"s{number}", KEY).name for number in range(40)])
        self.assertEqual(variation.of_student(RING, "", KEY).name, "left")

    def test_replaces_what_it_names_both_ways(self) -> None:
        way = variation.Variation("direction", "right", [("the left", "the right"), ("previous()", "next()")])
        self.assertEqual(way.apply("to the left, from the right: previous(), next(); the lefthand is right"),
                         "to the right, from the left: next(), previous(); the lefthand is right")
        self.assertEqual(way.apply(way.apply("the left previous()")), "the left previous()")

    def test_all_pairs_are_needed(self) -> None:
        """Each pair changes something in the header, the page or the tasks."""
        for chapter in tasks.chapters_with_tasks():
            texts = "\n".join(path.read_text(encoding="utf-8") for path in
                              [*chapter.glob("*.cuh"), chapter / "README.md", *chapter.glob("assignment/*.md")])
            for way in variation.ways(chapter.name):
                for pair in way.pairs:
                    alone = variation.Variation(way.kind, way.name, [pair])
                    self.assertNotEqual(alone.apply(texts), texts, f"{chapter.name}: {pair}")

    def test_tasks_that_vary_do(self) -> None:
        """A rebuild task has a variation exactly if its chapter has one of that kind, which changes the task's regions."""
        for chapter in tasks.chapters_with_tasks():
            others = [way for way in variation.ways(chapter.name) if way.pairs]
            for task in tasks.read_tasks(chapter).values():
                if task.variation != "none":
                    self.assertIn(task.variation, [way.kind for way in others], task.name)

    def test_the_hand_out_says_it_that_way(self) -> None:
        student = next(f"s{number}" for number in range(40)
                       if variation.of_student(RING, f"s{number}", variation.PRACTICE_KEY).name == "right")
        folder = handout.start(RING, student, "", "")
        self.assertEqual(json.loads((folder / work.RECORD).read_text(encoding="utf-8"))["variation"], "right")
        for name in ("TASKS.md", "README.md", "ring_all_gather.cuh"):
            text = (folder / name).read_text(encoding="utf-8")
            self.assertIsNotNone(re.search(r"to\s+(///? )?the right", text), name)
            self.assertIsNone(re.search(r"one rank to the left|send a shard to the left|to the left neighbour", text), name)

    def test_whose_data_come_first(self) -> None:
        def copy(time: float, what: str) -> dict:
            return {"ph": "X", "name": "copy", "pid": 1, "ts": time, "args": {"what": what}}

        events = [copy(0, "copy 576 B GPU 0 -> GPU 0"), copy(9, "copy 576 B GPU 2 -> GPU 0"), copy(3, "copy 1.2 KiB GPU 1 -> GPU 0"),
                  copy(3, "copy 576 B GPU 2 -> GPU 1"), copy(3, "copy 576 B GPU 0 -> GPU 2"), copy(1, "gemm 4 x 5")]
        found = try_work.first_sources({"traceEvents": events})
        self.assertEqual(found, {0: 1, 1: 2, 2: 0})
        self.assertEqual(try_work.wrong_sources(found, "next", 3), "")
        self.assertRegex(try_work.wrong_sources(found, "previous", 3), "^rank 0 begins with rank 1; ")
        self.assertRegex(try_work.wrong_sources({0: 1}, "next", 3), "^rank 1 takes nothing; ")

    def test_to_whom_data_go(self) -> None:
        events = [{"ph": "M", "name": "process_labels", "pid": gpu, "args": {"gpu": gpu}} for gpu in range(3)]
        events += [{"ph": "X", "name": "copy", "pid": gpu, "args": {"what": f"copy 1.{gpu} KiB GPU {gpu} -> GPU {(gpu + 1) % 3}"}}
                   for gpu in range(3)]
        found = try_work.links_of({"traceEvents": events})
        self.assertEqual(try_work.wrong_links(found, "next", 3), "")
        self.assertRegex(try_work.wrong_links(found, "previous", 3), "^rank 0 sends to rank 1; ")

    def test_an_illegal_access_is_no_race(self) -> None:
        record = {"chapter": RING, "sizes": {"m": 7}}
        illegal = "rank 0: cudaErrorIllegalAddress: accessed memory that is not allocated at a.cuh:57"
        for what, said, verdict in ((try_work.RACES, illegal, "not judged: an illegal access"),
                                    (try_work.RACES, "virtual GPUs: data race in byte 0", "NO"), (try_work.ACCESSES, illegal, "NO")):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                try_work.free_of(what, try_work.Report(), ["sh", "-c", f"echo '{said}'; exit 3"], record)
            self.assertRegex(printed.getvalue(), rf"^free of {what} +{verdict}\n    {said}\n$")

    def test_sizes_are_uneven(self) -> None:
        for number in range(30):
            sizes = variation.sizes("dense", f"s{number}", KEY)
            self.assertTrue(all(sizes[name] % gpus for name in ("m", "n") for gpus in (2, 3, 4)), sizes)

    def test_a_broken_file(self) -> None:
        root = self.folder
        (root / "chapters/03_x/assignment").mkdir(parents=True)
        for text in ("{", "{}", '{"direction": {}}', '{"a": {"own": "b", "c": {}}}'):
            (root / "chapters/03_x/assignment/variation.json").write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(work.WorkError, "variation.json cannot be read"):
                variation.ways("03_x", root)


class PlantedTest(WorkTest):
    def test_each_can_be_planted(self) -> None:
        for chapter in tasks.chapters_with_tasks():
            for name, error in planted.errors_of(chapter.name).items():
                with self.subTest(chapter=chapter.name, error=name):
                    mutant = error.mutant
                    self.assertEqual((mutant.test, mutant.program, mutant.file), ("", "", f"{chapter.name}/{error.task.file}"))
                    self.assertTrue(error.plant())
                    self.assertFalse(error.plant())
                    text = error.header.read_text(encoding="utf-8")
                    self.assertNotRegex(text, r"// \[(task|/task|blank)")
                    first, last = error.lines()
                    self.assertTrue(1 <= first <= last <= len(text.splitlines()))
                    shown = planted.numbered(error, text)
                    for line in range(first, last + 1):
                        self.assertRegex(shown, rf"(?m)^ *{line}  ")

    def test_keeps_what_was_changed(self) -> None:
        error = planted.choose(RING, "")
        self.assertEqual(error.plant_again(), "")
        self.assertEqual(error.plant_again(), "")
        error.header.write_text("mine", encoding="utf-8")
        kept = pathlib.Path(error.plant_again())
        self.assertEqual((kept.name, kept.read_text(encoding="utf-8")), ("ring_all_gather.cuh.bak-1", "mine"))
        self.assertEqual(error.header.read_text(encoding="utf-8"), error.broken)

    def test_lines_of_a_report(self) -> None:
        error = planted.choose(RING, "")
        error.plant()
        self.assertEqual(planted.quoted(error, "made at ring_all_gather.cuh:9, ring_all_gather.cuh:99999, other.cuh:3"),
                         f"ring_all_gather.cuh:9  {error.broken.splitlines()[8].strip()}")

    def test_which_one(self) -> None:
        self.assertEqual(planted.choose(RING, "").task.name, "too_early")
        for name in ("silence", "send_and_receive_not_grouped"):
            self.assertEqual(planted.choose(RING, name).task.name, "silence")
        with self.assertRaisesRegex(work.WorkError, "no planted error 'x'; its errors are: too_early, odd_sizes, silence"):
            planted.choose(RING, "x")

    def test_a_cure_is_run_on_all_numbers_of_gpus(self) -> None:
        runs = planted.cases(planted.choose(RING, ""))
        self.assertEqual([run[run.index("--gpus") + 1] for run in runs], ["3", "1", "2", "3", "4"])

    def test_what_a_program_says_is_cut(self) -> None:
        status, text = planted.said([sys.executable, "-c", "print('x' * 999); [print(i) for i in range(99)]; raise SystemExit(3)"])
        self.assertEqual((status, len(text.splitlines()), len(text.splitlines()[0])), (3, planted.LINES, planted.WIDTH))
        self.assertEqual(text.splitlines()[-2:], ["...", "98"])  # the reason of the failure is last
        sentence = f"13: rank 0: {'call: ' * 20}kernel '{'name ' * 30}' accessed memory that is not allocated at a.cuh:57: 8 bytes behind"
        self.assertEqual(planted.said(["echo", sentence])[1], sentence)
        cut = planted.said(["echo", sentence.replace("name ", "name " * 10)])[1]
        self.assertRegex(cut, r"^13: rank 0: .* \.\.\. .* at a\.cuh:57: 8 bytes behind$")
        self.assertEqual(planted.said(["sleep", "5"], 0.1), (124, "it did not end within 0.1 s"))


class DiffTest(WorkTest):
    def test_calls_that_come_and_go(self) -> None:
        status, out, _ = self.call("diff", "04_copy_engine")
        self.assertEqual(status, 0)
        self.assertRegex(out, "new calls: .*cuStreamWriteValue32")
        self.assertRegex(out, "calls that are gone: ncclGroupStart")

    def test_every_chapter(self) -> None:
        for chapter in tasks.chapters_with_tasks():
            self.assertEqual(self.call("diff", chapter.name)[0], 0)
        self.assertIn("builds on no chapter", self.call("diff", "01_column_split")[1])

    def test_alike_headers_are_compared_line_by_line(self) -> None:
        for name, text in (("a", "int f() {\n  return 1;\n}\nint g() {\n  return 2;\n}\n"),
                           ("b", "int f() {\n  return 1;\n}\nint g() {\n  return 3;\n}\n")):
            (self.folder / name).mkdir()
            (self.folder / name / "x.cuh").write_text(text, encoding="utf-8")
        lines = list(changes.compared(self.folder / "b", self.folder / "a", False))
        self.assertIn("-  return 2;", lines)
        self.assertIn("+  return 3;", lines)


if __name__ == "__main__":
    os.umask(0o022)
    unittest.main()
