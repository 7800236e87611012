#!/usr/bin/env python3
"""Tests of course/tasks.py: what it parses and rejects, and that the repository's tasks are complete."""
import pathlib
import re
import sys
import unittest
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from course import planted, tasks  # noqa: E402

HEADER = "// [task load: what?]\nint a;\n// [/task]\n// [task wait: when?]\nint b;\n// [/task]\n"
KEYS = {"kind": "rebuild", "file": "lesson.cuh", "regions": "load, wait", "minutes": "20", "difficulty": "2", "points": "10",
        "needs": "nothing", "variation": "none"}
SECTIONS = "\n## Task\n\nDo it.\n\n## Hint 1\n\nHow.\n\n## Hint 2\n\nWhere.\n\n## Solution\n\nSo.\n"


def text(sections: str = SECTIONS, **changes: Any) -> str:
    """The text of a task: KEYS with changes; None leaves a key out."""
    keys = {**KEYS, **changes}
    return "# A title\n\n" + "".join(f"{key}: {value}\n" for key, value in keys.items() if value is not None) + sections


def of_kind(kind: str, **changes: Any) -> str:
    """The text of a task of another kind."""
    return text(**{"kind": kind, "regions": None, "variation": None, **changes})


class ParseTest(unittest.TestCase):
    def refused(self, sentence: str, content: str, name: str = "load") -> None:
        with self.assertRaisesRegex(tasks.TaskError, sentence):
            tasks.parse(name, content)

    def test_a_task(self) -> None:
        task = tasks.parse("load", text())
        self.assertEqual((task.title, task.kind, task.regions, task.minutes, task.difficulty, task.points, task.hints),
                         ("A title", "rebuild", ["load", "wait"], 20, 2, 10, ["How.", "Where."]))
        self.assertEqual((task.text, task.solution, task.needs, task.variation), ("Do it.", "So.", "nothing", "none"))

    def test_missing_keys(self) -> None:
        for key in KEYS:
            self.refused(f"'{key}' is ('', none of|missing)" if key == "kind" else f"'{key}' is missing", text(**{key: None}))
        self.refused("'mutant' is missing", of_kind("find"))
        self.refused("'exercise' is missing", of_kind("exercise", file=None, points=None))

    def test_wrong_values(self) -> None:
        for key, value in (("points", 4), ("points", 101), ("points", "ten"), ("minutes", 0), ("minutes", 1000), ("difficulty", 4),
                           ("needs", "9 GPUs"), ("variation", "size"), ("kind", "riddle")):
            with self.subTest(key=key, value=value):
                self.refused(f"'{key}' is '{value}'", text(**{key: value}))
        self.refused("'mutant' is no key of the kind rebuild", text(mutant="a"))
        self.refused("'points' is there twice", text().replace("points: 10\n", "points: 10\npoints: 10\n"))
        self.refused("'regions' names no region", text(regions=" , "))
        self.refused("other characters", text(), "Load")
        self.refused("does not begin with '# Title'", "kind: find\n")

    def test_hints_and_sections(self) -> None:
        for sections in ("", SECTIONS.replace("## Hint 1\n\nHow.\n\n## Hint 2\n\nWhere.\n\n", ""),
                         SECTIONS.replace("## Hint 2\n\nWhere.\n\n", ""), SECTIONS.replace("Hint 2", "Hint 3"),
                         SECTIONS.replace("## Task\n\nDo it.\n", ""), SECTIONS.partition("## Solution")[0]):
            with self.subTest(sections):
                self.refused("its sections are not", text(sections))
        self.refused("'## Hint 2' is empty", text(SECTIONS.replace("Where.", "")))
        self.refused("'Words.' stands before", text("\nWords.\n" + SECTIONS))


class ChapterTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.chapter = self.folder / "chapters" / "03_ring"
        self.mutants = self.chapter / "mutants"
        self.write_here("lesson.cuh", HEADER)
        self.write_here("main.cu", "")
        self.write_here("README.md", "# 03\n\n## Exercises\n\n1. One.\n\n## Sources\n\n3. None.\n")
        self.task("both", text())
        self.task("one", of_kind("exercise", file=None, points=None, exercise=1))
        self.mutants.mkdir(parents=True)
        (self.mutants / "bad.mutant").touch()

    def write_here(self, name: str, content: str) -> None:
        self.write(self.chapter / name, content)

    def task(self, name: str, content: str) -> None:
        self.write_here(f"assignment/{name}.md", content)

    def refused(self, sentence: str) -> None:
        with self.assertRaisesRegex(tasks.TaskError, sentence):
            tasks.check_chapter(self.chapter)

    def test_is_whole(self) -> None:
        self.task("found", of_kind("find", mutant="bad"))
        self.assertEqual(list(tasks.check_chapter(self.chapter)), ["both", "found", "one"])
        self.assertEqual(tasks.chapters_with_tasks(self.folder), [self.chapter])

    def test_a_task_without_its_marker(self) -> None:
        self.task("both", text(regions="load, wait, more"))
        self.refused(r"both.md: lesson.cuh has no marker '// \[task more")

    def test_a_marker_without_its_task(self) -> None:
        self.task("both", text(regions="load"))
        self.refused("lesson.cuh: no task of 03_ring/assignment has the region wait")

    def test_a_marker_with_two_tasks(self) -> None:
        self.task("again", text(regions="wait"))
        self.refused("both.md: the region wait belongs to the task again, too")

    def test_the_wrong_file(self) -> None:
        self.write_here("other.cuh", "")
        self.task("both", text(file="other.cuh"))
        self.refused("the region load stands in lesson.cuh, not in other.cuh")

    def test_what_is_not_there(self) -> None:
        self.task("found", of_kind("find", mutant="none"))
        self.refused("found.md: there is no mutant none")
        self.task("found", of_kind("find", mutant="bad", file="gone.cuh"))
        self.refused("found.md: there is no file gone.cuh")

    def test_an_extension_has_a_patch(self) -> None:
        patch = "--- a/chapters/03_ring/lesson.cuh\n+++ b/chapters/03_ring/lesson.cuh\n@@ -5,2 +5,2 @@\n-int b;\n+int c;\n // [/task]\n"
        self.write_here("assignment/more.patch", patch)
        self.task("more", of_kind("extend"))
        self.assertEqual(tasks.check_chapter(self.chapter)["more"].code, "int a;\nint c;\n")
        self.write_here("assignment/more.patch", patch.replace("int b", "int d"))
        self.refused("more.patch: its changes at line 5 fit in 0 places .* python3 -I course/patches.py makes it anew")
        self.write_here("assignment/more.patch", patch.replace(" // [/task]", "-// [/task]"))
        self.refused("more.patch: lesson.cuh:4: task 'wait' is never closed")
        self.task("more", of_kind("extend", file="main.cu"))
        self.refused("more.patch: it changes chapters/03_ring/lesson.cuh, not main.cu")
        self.write_here("assignment/both.patch", patch)
        self.refused("both.md: a task has a solution both.patch if it is of the kind extend")
        (self.chapter / "assignment" / "both.patch").unlink()
        (self.chapter / "assignment" / "more.patch").unlink()
        self.refused("more.md: a task has a solution more.patch")

    def test_exercises(self) -> None:
        self.task("one", of_kind("exercise", file=None, points=None, exercise=2))
        self.refused("one.md: the page has no exercise 2")
        (self.chapter / "assignment" / "one.md").unlink()
        self.assertEqual(list(tasks.check_chapter(self.chapter)), ["both"])  # no exercise has a file
        self.write_here("README.md", "# 03\n\n## Exercises\n\n1. One.\n2. Two.\n")
        self.task("one", of_kind("exercise", file=None, points=None, exercise=2))
        self.refused("exercise 1 of the page has no file")
        self.write_here("README.md", "# 03\n\n## Exercises\n\n1. One.\n")
        for name in ("one", "two"):
            self.task(name, of_kind("exercise", file=None, points=None, exercise=1))
        self.refused("two tasks are the page's exercise 1")


class OurTasksTest(unittest.TestCase):
    def test_they_are_whole(self) -> None:
        found = tasks.chapters_with_tasks()
        self.assertTrue(found)
        for chapter in found:
            with self.subTest(chapter.name):
                kinds = [task.kind for task in tasks.check_chapter(chapter).values()]
                self.assertIn(kinds.count("rebuild"), range(2, 7))
                self.assertGreaterEqual(kinds.count("find"), 3)

    def test_no_run_has_an_option_twice(self) -> None:
        """Programs refuse that. (cases_test.py makes these runs.)"""
        for chapter in tasks.chapters_with_tasks():
            for words in planted.runs(chapter.name):
                options = [word for word in words if word.startswith("--")]
                self.assertEqual(len(options), len(set(options)), words)

    def test_the_teaching_guide_lists_them(self) -> None:
        page = (REPOSITORY / "docs" / "teaching.md").read_text(encoding="utf-8")
        self.assertIn(f"<!-- tasks -->\n{tasks.table()}<!-- /tasks -->", page)

    def test_the_teaching_guide_names_what_there_is(self) -> None:
        """The guide's courses and its table of misconceptions name existing tasks: NN: `name`."""
        page = (REPOSITORY / "docs" / "teaching.md").read_text(encoding="utf-8").split("<!-- /tasks -->")[1]
        found = {chapter.name[:2]: set(tasks.read_tasks(chapter)) for chapter in tasks.chapters_with_tasks()}
        named = [(number, name) for number, names in re.findall(r"\b(\d\d): ((?:`\w+`(?:, | and )?)+)", page)
                 for name in re.findall(r"`(\w+)`", names)]
        self.assertGreater(len(named), 30)
        for number, name in named:
            self.assertIn(name, found[number])

    def test_they_can_be_read(self) -> None:
        for chapter in tasks.chapters_with_tasks():
            for task in tasks.read_tasks(chapter).values():
                for part in (task.text, *task.hints, task.solution):
                    self.assertIsNone(re.search(r"TODO|TBD", part), task.name)


if __name__ == "__main__":
    unittest.main()
