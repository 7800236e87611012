#!/usr/bin/env python3
"""Adds a chapter to a copy of the repository (tools/new_chapter.py): no other file changes, every listing shows it, and it
builds, computes right results, and is tested. Then adds an experiment to it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, Set

from support import REPOSITORY, repository_files
NAME, NUMBER, HEADER = "29_my_idea", "29", "my_idea"
ADDED = {f"chapters/{NAME}/chapter.json", f"chapters/{NAME}/{HEADER}.cuh", f"chapters/{NAME}/main.cu", f"chapters/{NAME}/README.md",
         f"chapters/{NAME}/tests/{NAME[3:]}_test.cu", f"chapters/{NAME}/tests/{NAME[3:]}_program.py",
         f"chapters/{NAME}/mutants/rows_of_the_first_rank.mutant"}
EXPERIMENT = "29_sizes"


class NewChapterTest(unittest.TestCase):
    folder: pathlib.Path
    before: Dict[str, bytes]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name).resolve() / "repository"
        for path in repository_files():
            copy = cls.folder / path.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        if (REPOSITORY / ".deps").is_dir():
            (cls.folder / ".deps").symlink_to((REPOSITORY / ".deps").resolve())
        cls.before = cls.contents()
        made = cls.run_in_copy(sys.executable, "tools/new_chapter.py", NAME)
        assert made.returncode == 0 and made.stderr == "", made.stderr
        cls.after, cls.printed = cls.contents(), set(made.stdout.splitlines())
        cls.add_experiment()

    @classmethod
    def contents(cls) -> Dict[str, bytes]:
        """All files of the copy, except Python's caches."""
        return {path.relative_to(cls.folder).as_posix(): path.read_bytes() for path in cls.folder.rglob("*")
                if path.is_file() and not {".deps", "__pycache__"} & set(path.relative_to(cls.folder).parts)}

    @classmethod
    def add_experiment(cls) -> None:
        """Adds the chapter's program again under an experiment's name, and a mutant of it."""
        chapter = cls.folder / "chapters" / NAME
        (chapter / "experiments").mkdir()
        text = (chapter / "main.cu").read_text(encoding="utf-8")
        (chapter / "experiments" / "sizes.cu").write_text(text.replace(f'.name = "{NAME}"', f'.name = "{EXPERIMENT}"'))
        manifest = json.loads((chapter / "chapter.json").read_text(encoding="utf-8"))
        manifest["experiments"] = [{"name": "sizes", "idea": "all sizes", "measure": {"usual": ["--m 100*P", "--m 200*P"]}}]
        (chapter / "chapter.json").write_text(json.dumps(manifest))
        mutants = cls.folder / "chapters" / NAME / "mutants"
        text = (mutants / "rows_of_the_first_rank.mutant").read_text(encoding="utf-8")
        (mutants / "of_the_experiment.mutant").write_text(f"program: {EXPERIMENT}\n{text}")

    @classmethod
    def run_in_copy(cls, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, cwd=cls.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "OVERLAP_TURNS": "", **more})  # whoever's turn it is, all of it is tested

    def right(self, *command: str) -> str:
        """The output of a command that must succeed."""
        result = self.run_in_copy(*command)
        self.assertEqual(result.returncode, 0, result.stdout[-5000:] + result.stderr)
        return result.stdout

    def listed_tests(self, preset: str) -> Dict[str, Dict[str, Any]]:
        """CTest's tests in a build of the copy, by name."""
        listed = json.loads(self.right("ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"))
        return {test["name"]: {each["name"]: each["value"] for each in test["properties"]} for test in listed["tests"]}

    def test_no_other_file_changes(self) -> None:
        self.assertEqual({name for name in self.after if self.before.get(name) != self.after[name]}, ADDED)
        self.assertEqual(set(self.before) - set(self.after), set())
        self.assertEqual(self.printed, ADDED)

    def test_its_files_keep_the_repositorys_rules(self) -> None:
        for test in ("tests/programs/chapters_test.py", "tools/pages/tests/links_test.py", "tests/programs/policy_test.py"):
            self.right(sys.executable, test)
        page = self.after[f"chapters/{NAME}/README.md"].decode()
        self.assertTrue(page.startswith("# 29 My idea\n"))
        self.assertIn("```cpp\n// ---- Step 1: every rank's rows of A to all ranks", page)
        make = "import sys; sys.path.insert(0, '.'); from tools.pages.page_limits import *; print(*bad_chapter_page(open(sys.argv[1]).read()))"
        self.assertEqual(self.right(sys.executable, "-c", make, f"chapters/{NAME}/README.md"), "\n")
        for name in ADDED:
            self.assertNotRegex(self.after[name].decode(), r"\bNN|new_chapter|NewChapter|New chapter", name)

    def test_a_name_that_cannot_be(self) -> None:
        for name, sentence in (("29_other", "there is a chapter 29 already: 29_my_idea"), ("2_x", "'2_x' is no name of a chapter"),
                               ("22_Big", "'22_Big' is no name"), ("22_9x", "'22_9x' is no name"),
                               ("00_zero", "'00_zero' would come before the first chapter")):
            result = self.run_in_copy(sys.executable, "tools/new_chapter.py", name)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, f"^new_chapter.py: {sentence}.*\n$")

    def test_lists_of_chapters(self) -> None:
        # The tour runs the chapters that ./lab knows; ./lab lists them when asked for a missing one.
        self.assertRegex(self.run_in_copy("./lab", "run", "99").stderr, rf"the chapters are: .*\b{NAME}\b")
        make = "import sys; sys.path.insert(0, 'tools'); from chapters import all_chapters; print(list(all_chapters().values())[-1])"
        self.assertRegex(self.right(sys.executable, "-c", make), rf"{NAME}.*\b{EXPERIMENT}\b")
        make = "import sys; sys.path.insert(0, '.'); from tools.pages import update_pages; print(update_pages.generate('ladder', 'kernels'))"
        self.assertRegex(self.right(sys.executable, "-c", make),
                         rf"\| \[`{NAME}`\]\(chapters/{NAME}/README.md\) \| my idea \|  \| not run \|")
        make = f"import sys; sys.path.insert(0, '.'); from tools.results.bench_plans import plans; print(plans('{EXPERIMENT}', [2]))"
        self.assertEqual(self.right(sys.executable, "-c", make).strip(), "[['--gpus', '2', '--m', '200'], ['--gpus', '2', '--m', '400']]")

    @unittest.skipUnless(shutil.which("doxygen") and shutil.which("mkdocs"), "Doxygen and MkDocs are not here")
    def test_the_site_has_its_page(self) -> None:
        self.right(sys.executable, "tools/pages/build_site.py", "build/docs")
        html = self.folder / "build" / "docs" / "html"
        self.assertIn("My idea", (html / "chapters" / NAME / "index.html").read_text(encoding="utf-8"))
        self.assertIn(f"chapters/{NAME}/index.html", (html / "index.html").read_text(encoding="utf-8"))

    def test_the_race_suite_has_it(self) -> None:
        self.right("cmake", "--preset", "race", "-DBUILD_TESTING=ON")
        tests = self.listed_tests("race")

        def of(program: str) -> Set[str]:
            return {name.split(".")[-1] for name in tests if name.startswith(f"race.{program}.")}
        self.assertEqual(of(NAME), of("02_gather_then_multiply"))
        self.assertEqual(of(EXPERIMENT), {"2_gpus", "3_gpus"})
        self.assertIn("chapter_29", tests[f"race.{NAME}.3_gpus"]["LABELS"])

    def test_it_builds_and_is_right_and_is_tested(self) -> None:
        # Without optimisation, which halves the compile time; the sizes are small.
        self.right("cmake", "--preset", "virtual", "-DBUILD_TESTING=ON", "-DOVERLAP_MUTANTS=ON", "-DOVERLAP_FULL=ON",
                   "-DCMAKE_BUILD_TYPE=None")
        own = [name for name, properties in self.listed_tests("virtual").items() if "chapter_29" in properties.get("LABELS", ())]
        self.assertLessEqual({f"program.{NAME}", f"program.{EXPERIMENT}", f"{NAME}_test.1", f"{NAME}_test.slow.1",
                              f"blanks.{NAME}.all", f"blanks.{NAME}.broadcast", f"mutants.{NUMBER}.rows_of_the_first_rank",
                              f"mutants.{NUMBER}.of_the_experiment"}, set(own))
        self.right("cmake", "--build", "build/virtual", "--target", f"chapter_{NUMBER}")
        for gpus in "123":
            text = self.right(f"build/virtual/bin/{NAME}", "--gpus", gpus, "--m", "33", "--n", "37", "--k", "19")
            self.assertIn("all 1221 elements are right: my_idea\n", text)
        # `./lab test 21 --all` needs only the chapter's target.
        text = self.right("ctest", "--test-dir", "build/virtual", "-L", "chapter_29$", "--no-tests=error", "-j", str(os.cpu_count()))
        for name in own:
            self.assertRegex(text, rf"{re.escape(name)} \.* +Passed", text)
        bench = self.run_in_copy(sys.executable, "tools/results/bench.py", "--backend=virtual", NAME, EXPERIMENT)
        self.assertEqual(bench.returncode, 0, bench.stderr)
        self.assertRegex(bench.stdout, r"(?m)^29 my_idea \* ")


if __name__ == "__main__":
    unittest.main()
