#!/usr/bin/env python3
"""Tests of the documentation site's own steps, without Doxygen (./lab docs builds all of it): what the filter makes of
pages and sources, and where links lead."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))
import build_site  # noqa: E402
import links  # noqa: E402
import site_filter  # noqa: E402
import site_search  # noqa: E402

TAGS = """<?xml version='1.0'?>
<tagfile>
  <compound kind="page"><name>index</name><filename>index.html</filename></compound>
  <compound kind="page"><name>chapters_01_first</name><filename>chapters_01_first.html</filename></compound>
  <compound kind="file"><name>first.cuh</name><path>{root}/chapters/01_first/</path><filename>first_8cuh.html</filename>
  </compound>
</tagfile>
"""


class TemporaryRepository(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name, text in {"README.md": "# Top\n", "chapters/01_first/README.md": "# First\n## Cost\n",
                           "chapters/01_first/first.cuh": "// A.\n", "chapters/01_first/p.svg": "<svg/>",
                           "tools/run": "a < b\nc\n", "tools/more/x.bin": "\0\0", "build/x": ""}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


class FilterTest(TemporaryRepository):
    def page(self, text: str) -> str:
        result = site_filter.filtered_page(text, self.root / "chapters" / "01_first" / "README.md", self.root)
        self.assertEqual(result.count("\n"), text.count("\n"), "lines have moved")
        return result

    def test_links_get_a_path_from_the_root(self) -> None:
        host = site_filter.HOST
        for before, after in {"../../tools/run#L2": "tools/run#L2", "first.cuh": "chapters/01_first/first.cuh",
                              "#cost": "chapters/01_first/README.md#cost", "../..": "."}.items():
            self.assertEqual(self.page(f"x [a]({before}) y"), f"x [a]({host}{after}) y")
        for text in ("[a](https://host.org/x)", "`[a](b.md)`", "```\n[a](b.md)\n```\n"):
            self.assertEqual(self.page(text), text)

    def test_headings_get_an_id(self) -> None:
        self.assertEqual(self.page("# First\n## Cost card\n```\n# no\n```\n"),
                         "# First {#chapters_01_first}\n## Cost card {#chapters_01_first--cost-card}\n```\n# no\n```\n")

    def test_comments_go_but_not_out_of_code(self) -> None:
        self.assertEqual(self.page("a<!-- code x\ny -->b\n```\n<!-- c -->\n```\n`<!-- d -->`"),
                         "a\nb\n```\n<!-- c -->\n```\n`<!-- d -->`")

    def test_what_doxygen_misreads(self) -> None:
        for indent in ("", "   "):
            self.assertEqual(self.page(f"{indent}<details><summary>Why</summary>\n\n{indent}One.\n\n{indent}</details>\n"),
                             f"{indent}@htmlonly[block]<details><summary>Why</summary>@endhtmlonly\n\n{indent}One.\n\n"
                             f"{indent}@htmlonly[block]</details>@endhtmlonly\n")
        self.assertEqual(self.page("`a'b` and `c`; **`d`.** **e**"), "``a'b`` and `c`; <b>`d`.</b> **e**")
        for text in ("1. a\n   <details><summary>Hint</summary>One.</details>\n", "``a'b``", "```\n`a'b` **`d`**\n</details>\n```\n"):
            self.assertEqual(self.page(text), text)

    def test_names_of_pages(self) -> None:
        for path, name in {"README.md": "index", "docs/articles/README.md": "docs_articles",
                           "docs/a-b.md": "docs_a_b"}.items():
            self.assertEqual(site_filter.page_name(pathlib.PurePosixPath(path)), name)

    def test_comment_at_the_top_of_a_source(self) -> None:
        self.assertEqual(site_filter.filtered_source("// One\n// two.\n//\n#pragma once\n// x\n"),
                         "/// @header One\n/// two.\n///\n#pragma once\n// x\n")
        self.assertEqual(site_filter.filtered_source("#pragma once\n// x\n"), "#pragma once\n// x\n")


class SearchTest(TemporaryRepository):
    def setUp(self) -> None:
        super().setUp()
        (self.root / "docs").mkdir()
        (self.root / "docs" / "glossary.md").write_text("# Terms\n## Copy engine\n### It's `a` part\n\n| `cudaFree` | x |\n")
        (self.html / "search").mkdir(parents=True)
        for name, text in {"searchdata.js": 'var a =\n{\n  0: "bc",\n  1: "bc"\n};\n', "all_0.html": "<script src='all_0.js'>",
                           "all_1.js": "var searchData=\n[\n  ['call_0',['call',['../a.html',1,'']]],\n"
                                       "  ['cost_1',['cost',['../b.html',1,'']]]\n];\n"}.items():
            (self.html / "search" / name).write_text(text)

    @property
    def html(self) -> pathlib.Path:
        return self.root / "build" / "html"

    def test_headings_and_calls_are_found(self) -> None:
        site_search.add_to_search(self.html, site_search.entries(self.root))
        self.assertEqual((self.html / "search" / "searchdata.js").read_text(), 'var a =\n{\n  0: "bci",\n  1: "bc"\n};\n')
        self.assertEqual((self.html / "search" / "all_1.js").read_text().splitlines(), [
            "var searchData=", "[", "  ['call_0',['call',['../a.html',1,'']]],",
            "  ['copy_20engine_2',['Copy engine',['../docs_glossary.html#docs_glossary--copy-engine',1,'Terms']]],",
            "  ['cost_1',['cost',['../b.html',1,'']]],", "  ['cudafree_3',['cudaFree',['../docs_glossary.html',1,'Terms']]]", "];"])
        self.assertEqual((self.html / "search" / "all_2.js").read_text().splitlines()[2],
                         "  ['it_27s_20a_20part_0',['It&apos;s a part',['../docs_glossary.html#docs_glossary--its-a-part',1,'Terms']]]")
        self.assertEqual((self.html / "search" / "all_2.html").read_text(), "<script src='all_2.js'>")

    def test_another_doxygen(self) -> None:
        (self.html / "search" / "searchdata.js").write_text("")
        with self.assertRaisesRegex(ValueError, "no section 0"):
            site_search.add_to_search(self.html, [])

    def test_the_glossary_is_found(self) -> None:
        found = {entry.title: entry.target for entry in site_search.entries(REPOSITORY)}
        self.assertEqual(found["Wave"], "docs_glossary.html#docs_glossary--wave")
        self.assertEqual(found["cudaMemcpyAsync"], "docs_calls.html")


class SiteTest(TemporaryRepository):
    def setUp(self) -> None:
        super().setUp()
        patch = mock.patch.object(build_site, "REPOSITORY", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        self.folder = self.root / "build" / "docs"
        self.html = self.folder / "html"
        self.html.mkdir(parents=True)
        (self.folder / "tags.xml").write_text(TAGS.format(root=self.root))
        self.site = build_site.Site(self.folder)

    def led(self, target: str) -> str:
        """Where a link ends up."""
        page = self.html / "index.html"
        page.write_text(f'<a href="{site_filter.HOST}{target}">')
        self.site.lead_links()
        return page.read_text()[len('<a href="'):-len('">')]

    def test_pages_and_sources(self) -> None:
        for target, place in {"README.md": "index.html", ".": "index.html", "chapters/01_first": "chapters_01_first.html",
                              "chapters/01_first/README.md#cost": "chapters_01_first.html#chapters_01_first--cost",
                              "chapters/01_first/first.cuh": "first_8cuh_source.html",
                              "chapters/01_first/first.cuh#L12": "first_8cuh_source.html#l00012"}.items():
            self.assertEqual(self.led(target), place)
        self.assertFalse((self.html / "files").exists())

    def test_pictures_are_copied(self) -> None:
        self.assertEqual(self.led("chapters/01_first/p.svg"), "files/chapters/01_first/p.svg")
        self.assertEqual((self.html / "files" / "chapters" / "01_first" / "p.svg").read_text(), "<svg/>")

    def test_timelines_get_their_script_and_other_pictures_none(self) -> None:
        (self.root / "docs" / "pictures").mkdir(parents=True)
        (self.root / "docs" / "timeline.js").write_text("zoom();")
        for name in ("chapter_01_timeline.svg", "primer.svg"):
            (self.root / "docs" / "pictures" / name).write_text("<svg></svg>")
        page = self.html / "index.html"
        page.write_text("<head></head>" + "".join(f'<img src="{site_filter.HOST}docs/pictures/{name}" alt="a" class="b">'
                                                  for name in ("chapter_01_timeline.svg", "primer.svg")))
        self.site.lead_links()
        text = page.read_text()
        self.assertIn('<object type="image/svg+xml" data="files/docs/pictures/chapter_01_timeline.svg"', text)
        self.assertEqual((text.count("<object"), text.count("<img"), text.count("site.js")), (1, 2, 1))
        self.assertRegex(text, r'<span class="picture"><object [^>]*><img [^>]*></object></span><span class="picture"><img [^>]*></span>$')
        copies = self.html / "files" / "docs" / "pictures"
        self.assertIn("zoom();", (copies / "chapter_01_timeline.svg").read_text())
        self.assertEqual((copies / "primer.svg").read_text(), "<svg></svg>")

    def test_figures_of_tables(self) -> None:
        page = self.html / "index.html"
        cells = ["2048 x 8192 x 4096  ", "702 (71 %)", "1.000", ".5", "0 <b>x</b>", "a 1", "1 and so on, in many more words", ""]
        page.write_text("".join(f'<td class="markdownTableBodyNone">{cell}</td>\n' for cell in cells))
        self.site.lead_links()
        self.assertEqual(["figure" in line for line in page.read_text().splitlines()], [True] * 4 + [False] * 4)

    def test_a_chapter_comes_before_its_experiments(self) -> None:
        for folder in ("chapters/01_first/experiments", "chapters/02_second"):
            (self.root / folder).mkdir()
            (self.root / folder / "README.md").touch()
        self.assertEqual(build_site.chapter_pages().split(), ["chapters/01_first/README.md", "chapters/01_first/experiments/README.md",
                                                              "chapters/02_second/README.md"])

    def test_pictures_of_notebooks(self) -> None:
        (self.root / "notebooks").mkdir()
        (self.root / "notebooks" / "1_a.ipynb").write_text('{"cells": [{"outputs": [{}, {"data": {"image/png": "YWI="}}]}, {}]}')
        self.assertEqual(self.led("notebooks/1_a.ipynb#picture-0"), "files/notebooks/1_a_0.png")
        self.assertEqual((self.html / "files" / "notebooks" / "1_a_0.png").read_bytes(), b"ab")

    def test_other_files(self) -> None:
        self.assertEqual(self.led("tools/run#L2"), "files/tools/run.html#L2")
        text = (self.html / "files" / "tools" / "run.html").read_text()
        self.assertIn('<a href="#L1">    1</a>  a &lt; b</span>', text)
        self.assertIn('id="L2"', text)
        self.assertIn('href="../../theme.css"', text)

    def test_folders(self) -> None:
        (self.html / "theme.css").touch()
        (self.html / "chapters_01_first.html").touch()
        for folder in ("tools", "chapters"):
            self.assertEqual(self.led(folder), f"files/{folder}/index.html")
        text = (self.html / "files" / "tools" / "index.html").read_text()
        self.assertIn('<a href="../../files/tools/more/index.html">more/</a>', text)
        self.assertIn("2 bytes", (self.html / "files" / "tools" / "more" / "x.bin.html").read_text())
        self.assertIn('"../../chapters_01_first.html">01_first/</a>',
                      (self.html / "files" / "chapters" / "index.html").read_text())
        self.assertEqual(list(links.bad_html_links(self.html)), [])

    def test_missing_file(self) -> None:
        with self.assertRaisesRegex(build_site.SiteError, "tools/none, which does not exist"):
            self.led("tools/none")


if __name__ == "__main__":
    unittest.main()
