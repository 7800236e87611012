#!/usr/bin/env python3
"""Tests of course/blank.py: the content of blanks, rejected markers, and that excerpts in pages show no markers."""
import pathlib
import contextlib
import io
import sys
import unittest
from typing import List
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from course import blank  # noqa: E402
from tools.pages import update_pages  # noqa: E402

SOURCE = """// Adds.
int add(int a, int b) {
  // [task sum: what is the sum?]
  // [blank] const int sum = 0;
  const int sum = a + b;  // both
  // [/task]
  return sum;
}
void hello() {
  // [task hello: what does a program say
  // that is polite?]
  say("hello");

  say("world");
  // [/task]
}
"""

BLANK = """// Adds.
int add(int a, int b) {
  // TASK sum: what is the sum?
  // Your code replaces what follows:
  const int sum = 0;
  return sum;
}
void hello() {
  // TASK hello: what does a program say
  // that is polite?
}
"""


class TextTest(unittest.TestCase):
    def test_all_regions(self) -> None:
        self.assertEqual(blank.blanked(SOURCE, "x.cuh"), BLANK)

    def test_one_region(self) -> None:
        text = blank.blanked(SOURCE, "x.cuh", ["sum"])
        self.assertIn("const int sum = 0;", text)
        self.assertNotIn("a + b", text)
        self.assertIn('say("hello");\n\n  say("world");\n}', text)
        self.assertNotIn("[", text)

    def test_without_markers(self) -> None:
        text = blank.without_markers(SOURCE, "x.cuh")
        self.assertNotIn("[", text)
        self.assertNotIn("const int sum = 0", text)
        self.assertNotIn("polite", text)
        self.assertEqual(text.replace("  const int sum = a + b;  // both\n", "").count("\n"), 9)

    def test_text_without_regions_stays(self) -> None:
        text = "int a[3];\n// see [task force] and // task: x\nint task;  // a [blank line]\n"
        self.assertEqual(blank.blanked(text, "x.cuh"), text)

    def test_several_stubs(self) -> None:
        text = SOURCE.replace("const int sum = 0;\n", "const int x = 0;\n  // [blank] const int sum = x;\n")
        self.assertIn("  const int x = 0;\n  const int sum = x;\n  return", blank.blanked(text, "x.cuh"))


class RefusalTest(unittest.TestCase):
    def test_each_refusal(self) -> None:
        cases = {
            "nested": (SOURCE.replace("  const int sum = a + b", "  // [task inner: why?]\n  const int sum = a + b"),
                       r"x\.cuh:5: tasks do not nest: 'sum' of line 3"),
            "never closed": (SOURCE.replace("world\");\n  // [/task]", "world\");"), r"x\.cuh:10: .*'hello' is never closed"),
            "closed twice": (SOURCE.replace("return sum;", "// [/task]"), r"x\.cuh:7: no task is open"),
            "same name": (SOURCE.replace("task hello", "task sum"), r"x\.cuh:10: there is already a task 'sum'"),
            "no name": (SOURCE.replace("task sum:", "task:"), r"x\.cuh:3: this is no marker"),
            "no question": (SOURCE.replace("sum: what is the sum?]", "sum]"), r"x\.cuh:3: this is no marker"),
            "named all": (SOURCE.replace("task sum", "task all"), r"x\.cuh:3: 'all' is no name"),
            "no bracket": (SOURCE.replace("that is polite?]", "that is polite?"), r"x\.cuh:10: .* no closing bracket"),
            "end of file": ("int a;\n// [task a: b\n", r"x\.cuh:2: .* no closing bracket"),
            "behind code": (SOURCE.replace("  say(\"world\");\n  // [/task]", "  say(\"world\");  // [/task]"),
                            r"x\.cuh:14: no known marker"),
            "opens behind code": ("int a;  // [task a: b?]\n// [/task]\n", r"x\.cuh:1: this is no marker"),
            "capitals": (SOURCE.replace("[task sum", "[Task sum"), r"x\.cuh:3: this is no marker"),
            "stub outside": ("// [blank] int a;\n", r"x\.cuh:1: no task is open"),
            "stub after code": (SOURCE.replace("  say(\"world\")", "  // [blank] x;\n  say(\"world\")"),
                                r"x\.cuh:14: a stub .* right below the question"),
            "empty": (SOURCE.replace("  const int sum = a + b;  // both\n", ""), r"x\.cuh:3: task 'sum' is empty"),
        }
        for name, (text, sentence) in cases.items():
            with self.subTest(name):
                for action in (blank.blanked, blank.without_markers):
                    with self.assertRaisesRegex(blank.TaskError, f"^{sentence}"):
                        action(text, "x.cuh")


class ProgramTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.chapter = self.write("01_sample/main.cu", "int main() {}\n").parent
        self.write("01_sample/sample.cuh", SOURCE)
        self.write("01_sample/README.md", "the solution\n")
        self.output = self.folder / "out" / "01_sample"

    def call(self, *arguments: str) -> List[str]:
        """Exit status, standard output and standard error of the program."""
        out, error = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["blank.py", *arguments]), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(error):
            try:
                status = blank.main()
            except SystemExit as exit_call:
                status = exit_call.code
        return [str(status), out.getvalue(), error.getvalue()]

    def test_sources_only(self) -> None:
        self.assertEqual(self.call(str(self.chapter), "-o", str(self.output)), ["0", "", ""])
        self.assertEqual(sorted(path.name for path in self.output.iterdir()), ["main.cu", "sample.cuh"])
        self.assertEqual((self.output / "sample.cuh").read_text(), BLANK)
        self.assertEqual((self.chapter / "sample.cuh").read_text(), SOURCE)

    def test_list(self) -> None:
        self.assertEqual(self.call(str(self.chapter), "--list")[:2],
                         ["0", "sum\twhat is the sum?\nhello\twhat does a program say that is polite?\n"])

    def test_only(self) -> None:
        self.call(str(self.chapter), "-o", str(self.output), "--only", "hello,sum")
        self.assertEqual((self.output / "sample.cuh").read_text(), BLANK)
        self.call(str(self.chapter), "-o", str(self.output), "--only", "hello", "--replace")
        self.assertIn("a + b", (self.output / "sample.cuh").read_text())

    def refused(self, sentence: str, *arguments: str) -> None:
        status, out, error = self.call(*arguments)
        self.assertEqual((status, out), ("1", ""))
        self.assertRegex(error, f"^blank.py: .*{sentence}")

    def test_refusals(self) -> None:
        chapter, output = str(self.chapter), str(self.output)
        self.refused("no task 'x'; its tasks are: sum, hello", chapter, "-o", output, "--only", "sum,x")
        self.refused("no task ''", chapter, "-o", output, "--only", "")
        self.assertFalse(self.output.exists())
        self.refused("has no main.cu", str(self.folder), "-o", output)
        for around in (self.chapter, self.folder):
            self.refused("is the chapter itself", chapter, "-o", str(around), "--replace")
        self.assertEqual(self.call(chapter)[0], "2")
        (self.chapter / "other.cuh").write_text(SOURCE)
        self.refused(r"sample.cuh:3: other.cuh already has a task 'sum'", chapter, "-o", output)
        (self.chapter / "other.cuh").unlink()
        (self.chapter / "sample.cuh").write_text("int a;\n")
        self.refused("no marked regions", chapter, "-o", output)
        self.assertEqual(self.call(chapter, "--list"), ["0", "", ""])

    def test_work_is_not_written_over(self) -> None:
        self.output.mkdir(parents=True)
        (self.output / "sample.cuh").write_text("my work\n")
        self.refused("already there", str(self.chapter), "-o", str(self.output))
        self.assertEqual((self.output / "sample.cuh").read_text(), "my work\n")
        self.assertEqual(self.call(str(self.chapter), "-o", str(self.output), "--replace")[0], "0")
        self.assertEqual((self.output / "sample.cuh").read_text(), BLANK)


class PagesTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("chapters/x.cuh", SOURCE)
        patch = mock.patch.object(update_pages, "REPOSITORY", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def test_excerpts_show_no_markers(self) -> None:
        text = update_pages.excerpt("chapters/x.cuh", "int add(")
        self.assertEqual(text, "```cpp\n// Adds.\nint add(int a, int b) {\n  const int sum = a + b;  // both\n"
                               "  return sum;\n}\n```\n")

    def test_link_to_line(self) -> None:
        def updated(text: str) -> str:
            return update_pages.updated(text, self.folder / "docs" / "articles" / "page.md", False, lambda *_: False)
        start = "a <!-- line chapters/x.cuh void hello( -->"
        link = "[x.cuh:9](../../chapters/x.cuh#L9)<!-- /line -->"
        for old in ("", "[x.cuh:8](../../chapters/x.cuh#L8)"):
            self.assertEqual(updated(f"{start}{old}<!-- /line -->, b"), f"{start}{link}, b")
        self.assertEqual(updated(f"{start}{link}; {start}{link}"), f"{start}{link}; {start}{link}")
        for file, text, sentence in (("x.cuh", "say(", "has 2 lines"), ("x.cuh", "nothing", "has 0 lines"),
                                     ("y.cuh", "a", "No such file")):
            with self.subTest(text), self.assertRaisesRegex(update_pages.PageError, sentence):
                updated(f"<!-- line chapters/{file} {text} --><!-- /line -->")

    def test_bad_markers(self) -> None:
        self.write("chapters/x.cuh", SOURCE.replace("// [/task]\n  return", "return"))
        with self.assertRaisesRegex(update_pages.PageError, "x.cuh:9: tasks do not nest"):
            update_pages.excerpt("chapters/x.cuh", "int add(")


class RepositoryTest(unittest.TestCase):
    def test_markers_of_all_chapters(self) -> None:
        tasks = {path.parent.name: blank.tasks_of(path.parent) for path in REPOSITORY.glob("chapters/*/main.cu")}
        self.assertIn("copy_in", tasks["01_column_split"])


if __name__ == "__main__":
    unittest.main()
