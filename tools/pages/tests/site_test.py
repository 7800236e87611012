#!/usr/bin/env python3
"""Tests of the documentation site's own steps, without Doxygen and MkDocs (./lab docs builds the whole site): the staged pages
and the targets of their links."""
import sys
import pathlib
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.pages import build_site  # noqa: E402
from tools import chapters  # noqa: E402

NOTEBOOK = """{"cells": [
{"cell_type": "markdown", "source": ["# Title\\n", "[a](../tools)"]},
{"cell_type": "code", "source": ["f()"], "outputs": [{"text": ["1\\n"]}, {"data": {"image/png": "YWI="}}]}]}
"""


class DialectTest(unittest.TestCase):
    def test_text_of_items_is_indented_by_four(self) -> None:
        self.assertEqual(build_site.dialect("1. a\n   b\n\n   c\n2. d\n\n- e\n  - f\n    g\nh"),
                         "1. a\n    b\n\n    c\n2. d\n\n- e\n    - f\n        g\nh")

    def test_a_list_begins_behind_an_empty_line(self) -> None:
        self.assertEqual(build_site.dialect("a:\n- b\n  c\n- d"), "a:\n\n- b\n    c\n- d")

    def test_folds(self) -> None:
        self.assertEqual(build_site.dialect('a\n<details><summary>So "b"</summary>\n\nc\n- d\n\n</details>\ne'),
                         'a\n\n??? quote "So &quot;b&quot;"\n\n    c\n\n    - d\n\n\ne')
        self.assertEqual(build_site.dialect("1. a\n   <details><summary>Hint</summary>\n\n   b\n\n   </details>\n2. c"),
                         '1. a\n\n    ??? quote "Hint"\n\n        b\n\n\n2. c')

    def test_code_stays_as_it_is(self) -> None:
        code = "```cpp\n- a\n   b\n\n  <details><summary>c</summary>\n```"
        self.assertEqual(build_site.dialect(code), code)
        self.assertEqual(build_site.dialect("- a\n  ```\n  - b\n    c\n  ```\nd"), "- a\n    ```\n    - b\n      c\n    ```\nd")


class StagingTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.pages = self.folder / "build" / "pages"
        for name, text in {"README.md": "# Top\n", "chapters/01_first/README.md": "# First\n## Cost\n", "chapters/01_first/p.svg": "<svg/>",
                           "chapters/01_first/first.cuh": "// A.\n", "chapters/01_first/t.svg": '<svg><rect class="bar x"/></svg>',
                           "chapters/01_first/assignment/a.md": "# The solution\n", "docs/site/timeline.js": "zoom();",
                           "notebooks/1_a.ipynb": NOTEBOOK,
                           "tools/run": "a < b\nc\n", "tools/.hidden": "x\n", "tools/more/x.py": "", "tools/long.json": "{}"}.items():
            self.write(name, text)
        for module, name, value in ((build_site, "REPOSITORY", self.folder), (build_site, "SITE", self.folder / "docs" / "site"),
                                    (build_site, "markdown_files", lambda _: sorted(self.folder.rglob("*.md")))):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def staged(self, text: str) -> str:
        """The staged text of a page of chapter 01."""
        self.write("chapters/01_first/README.md", text)
        self.staging = build_site.Staging(self.pages, {"chapters/01_first/first.cuh": "first_source.html"})
        self.staging.add_pages()
        return (self.pages / "chapters" / "01_first" / "README.md").read_text()

    def test_links(self) -> None:
        for target, place in {"../../README.md": "../../README.md", "../..": "../../README.md", "README.md#cost": "README.md#cost",
                              "first.cuh": "../../reference/first_source.html", "first.cuh#L12": "../../reference/first_source.html#l00012",
                              "../../tools/run#L2": "../../files/tools/run.md#__codelineno-0-2", "p.svg": "p.svg", "#cost": "#cost",
                              "../../tools": "../../files/tools/index.md", "../../tools/.hidden": "../../files/tools/hidden.md",
                              "../../notebooks/1_a.ipynb": "../../notebooks/1_a.md", "../../tools/long.json": "../../tools/long.json",
                              "https://host.org/x": "https://host.org/x", "none.md": "none.md"}.items():
            with self.subTest(target):
                self.assertEqual(self.staged(f"# A\n[a]({target}) `[a](first.cuh)`"), f"# A\n[a]({place}) `[a](first.cuh)`")

    def test_files_and_folders_that_pages_link_to(self) -> None:
        self.staged("[a](../../tools) [b](../../tools/more/x.py)")
        self.assertEqual((self.pages / "files/tools/run.md").read_text(),
                         '---\ntemplate: plain.html\n---\n# tools/run\n\n~~~~~~ {.sh linenums="1"}\na < b\nc\n\n~~~~~~\n')
        self.assertEqual((self.pages / "files/tools/index.md").read_text().partition("# ")[2],
                         "tools\n\n- more/\n- [.hidden](hidden.md)\n- [long.json](../../tools/long.json)\n- [run](run.md)\n")
        self.assertTrue((self.pages / "tools/long.json").is_file())
        self.staged("[a](../../tools/more)")
        self.assertIn("- [more](more/index.md)\n", (self.pages / "files/tools/index.md").read_text())

    def test_headings_have_the_names_of_github_and_comments_go(self) -> None:
        self.assertEqual(self.staged("# A\n## B: `c`\n<!-- code x\n -->\n```\n# no <!-- d -->\n```\n## B: `c`"),
                         "# A\n## B: `c` {#b-c}\n\n```\n# no <!-- d -->\n```\n## B: `c` {#b-c-1}")

    def test_timelines_get_their_script_and_other_pictures_none(self) -> None:
        text = self.staged("![a `b`](p.svg)\n\n![a <b>](t.svg)")
        self.assertEqual(text, '<span class="frame">![a `b`](p.svg)</span>\n\n<span class="frame"><object type="image/svg+xml" class="timeline" '
                               'data="t.svg" role="img" aria-label="a &lt;b&gt;">![a <b>](t.svg)</object></span>')
        folder = self.pages / "chapters" / "01_first"
        self.assertEqual((folder / "p.svg").read_text(), "<svg/>")
        self.assertEqual((folder / "t.svg").read_text(), '<svg><rect class="bar x"/><script><![CDATA[\nzoom();]]></script>\n</svg>')

    def test_notebooks(self) -> None:
        self.staged("# A")
        self.assertEqual((self.pages / "notebooks" / "1_a.md").read_text(),
                         "# Title\n[a](../files/tools/index.md)\n\n```py\nf()\n```\n\n```\n1\n```\n\n"
                         '<span class="frame">![plot 1 of this notebook](1_a_1.png)</span>\n')
        self.assertEqual((self.pages / "notebooks" / "1_a_1.png").read_bytes(), b"ab")

    def test_tasks_are_no_pages(self) -> None:
        self.staged("# A")
        self.assertNotIn("chapters/01_first/assignment/a.md", self.staging.pages)
        self.assertFalse((self.pages / "chapters/01_first/assignment").exists())


class NavTest(unittest.TestCase):
    def test_every_page_once_and_experiments_below_their_chapter(self) -> None:
        staging = build_site.Staging(pathlib.Path(), {})
        files = [page.relative_to(REPOSITORY) for page in build_site.markdown_files()]
        staging.pages = [str(page) for page in files if build_site.is_page(page)]
        staging.pages.append("docs/new.md")
        nav = staging.nav()
        part = next(entry for entry in nav if chapters.PARTS[1].capitalize() in entry)
        self.assertIn({"05 Two streams": ["chapters/05_two_streams/README.md", "chapters/05_two_streams/experiments/README.md"]},
                      list(part.values())[0])
        text = str(nav)
        for page in staging.pages:
            self.assertEqual(text.count(f"'{page}'"), 1, page)
        self.assertIn("docs/new.md", nav[-2]["Contributing"])


class NavigationTest(FolderTest):
    def test_sources_whose_names_begin_with_a_digit_are_found_by_text(self) -> None:
        script, other, navigation = (self.folder / name for name in ("09__x_8hpp.js", "x_8hpp.js", "navtree.js"))
        script.write_text("var 09__x_8hpp =\n[\n];")
        other.write_text("var x_8hpp =\n[\n];")
        navigation.write_text("  return eval(n.replace(/\\-/g,'_'));\n")
        build_site.name_by_text(self.folder)
        self.assertEqual(script.read_text(), 'window["09__x_8hpp"] =\n[\n];')
        self.assertEqual(other.read_text(), "var x_8hpp =\n[\n];")
        self.assertEqual(navigation.read_text(), "  return window[n.replace(/\\-/g,'_')];\n")
        with self.assertRaisesRegex(SystemExit, "in another way"):
            build_site.name_by_text(self.folder)


class ReferenceTest(unittest.TestCase):
    def made(self, said: str) -> None:
        with mock.patch.object(build_site, "run", return_value=said):
            build_site.make_reference(pathlib.Path("/nowhere"))

    def test_members_need_no_comment(self) -> None:
        self.made("common/overlap/x.hpp:3: warning: Member size() const (function) of class overlap::X is not documented.\n"
                  "common/overlap/x.cpp:3: warning: Member f() (function) of namespace overlap is not documented.\n"
                  "virtual_gpu/include/nccl.h:3: warning: Compound ncclUniqueId is not documented.\n")

    def test_other_warnings_are_errors(self) -> None:
        for said in ("common/overlap/x.hpp:3: warning: Compound overlap::X is not documented.",
                     "common/overlap/x.hpp:3: warning: Member f() (function) of namespace overlap is not documented.",
                     "chapters/01_first/x.cuh:3: warning: Member f() (function) of file x.cuh is not documented.",
                     "common/overlap/x.cpp:3: warning: unable to resolve reference to 'y' for \\ref command"):
            with self.assertRaisesRegex(SystemExit, "warning"):
                self.made(said + "\n")


if __name__ == "__main__":
    unittest.main()
