#!/usr/bin/env python3
"""Tests of tools/pages/links.py: the links that it finds and refuses; and that the links of all our pages are correct."""
import pathlib
import sys
import unittest
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.pages import links  # noqa: E402


class RepositoryTest(unittest.TestCase):
    def test_all_pages(self) -> None:
        pages = links.markdown_files()
        self.assertIn(REPOSITORY / "README.md", pages)
        found = sum(link.is_relative for page in pages for link in links.links_of(page.read_text(encoding="utf-8")))
        self.assertGreater(found, 40)
        self.assertEqual([problem for page in pages for problem in links.bad_markdown_links(page)], [])


class FindTest(unittest.TestCase):
    def targets(self, text: str) -> List[str]:
        found = links.links_of(text)
        for link in found:
            self.assertEqual(text[link.begin:link.end], link.target)
        return [link.target for link in found]

    def test_kinds(self) -> None:
        cases = {
            "[a](b.md) and [c d](e/f.md#g)": ["b.md", "e/f.md#g"],
            "![picture](p.svg)": ["p.svg"],
            "[![picture](p.svg)](page.md)": ["p.svg", "page.md"],
            "[`code`](b.md)": ["b.md"],
            '[a](b.md "a title")': ["b.md"],
            "[a](<b.md>)": ["b.md"],
            "[a]: b.md\n[c]: <d.md>": ["b.md", "d.md"],
            "<a href=\"b.md\"><img src='p.svg'></a>": ["b.md", "p.svg"],
            "| [a](b.md) | [c](d.md) |": ["b.md", "d.md"],
            "<!-- line x.cuh int f( -->[x.cuh:3](../x.cuh#L3)<!-- /line -->": ["../x.cuh#L3"],
        }
        for text, expected in cases.items():
            with self.subTest(text):
                self.assertEqual(self.targets(text), expected)

    def test_code_and_comments_hold_no_links(self) -> None:
        for text in ("```\n[a](b.md)\n```\n", "~~~ cpp\n[a](b.md)\n~~~\n", "``[a](b.md) ` ``", "`v[i](x)`",
                     "<!-- [a](b.md)\n[c](d.md) -->"):
            with self.subTest(text):
                self.assertEqual(self.targets(text), [])
                self.assertEqual(self.targets(text + "\n[e](f.md)"), ["f.md"])

    def test_headings(self) -> None:
        text = "# A: b, `c` d!\n\n```\n# no\n```\n## E\n### [F g](h.md)\n## E\n## x_y - z ##\n"
        self.assertEqual([name for _, name in links.headings_of(text)], ["a-b-c-d", "e", "f-g", "e-1", "x_y---z"])


class MarkdownTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("README.md", "# Top\n## Cost card\n")
        self.write("src/a.cuh", "1\n2\n3\n")
        self.write("build/left.md", "[x](nowhere.md)\n")

    def problems(self, target: str) -> List[str]:
        page = self.write("docs/page.md", f"# Page\n\n[a]({target})\n## Here\n")
        return list(links.bad_markdown_links(page, self.folder))

    def test_good(self) -> None:
        for target in ("../README.md", "../README.md#cost-card", "../src", "../src/", "../src/a.cuh", "../src/a.cuh#L3",
                       "#here", "page.md", ".", "https://host.org/nothing", "mailto:a@b.org"):
            with self.subTest(target):
                self.assertEqual(self.problems(target), [])

    def test_bad(self) -> None:
        cases = {
            "nothing.md": "does not exist",
            "../readme.md": "does not exist",
            "../src/a.cuh#L4": "fewer lines",
            "../src/a.cuh#L0": "reads #L12",
            "../src/a.cuh#here": "reads #L12",
            "../src#L1": "a folder has no places",
            "#there": "no such heading",
            "../README.md#cost": "no such heading",
            "/etc/hosts": "an absolute path",
            "../../x": "outside the repository",
            "../build/left.md": "not part of the repository",
        }
        for target, sentence in cases.items():
            with self.subTest(target):
                self.assertEqual(len(self.problems(target)), 1)
                self.assertRegex(self.problems(target)[0], f"^docs/page.md:3: .*{sentence}")

    def test_builds_are_not_looked_into(self) -> None:
        self.assertEqual(links.markdown_files(self.folder), [self.folder / "README.md"])


class HtmlTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("site/index.html", "<h1 id='top'>T</h1>")
        self.write("outside.html")

    def problems(self, html: str) -> List[str]:
        self.write("site/sub/page.html", f"<a id='here'></a><a name='old'></a>\n{html}")
        return list(links.bad_html_links(self.folder / "site"))

    def test_good(self) -> None:
        for html in ("<a href='../index.html#top'>", "<a href='#here'>", "<a href='#old'>", "<img src='page.html'>",
                     "<a href='page.html?x=1#here'>", "<a href='https://host.org/x'>", "<a href='javascript:void(0)'>"):
            with self.subTest(html):
                self.assertEqual(self.problems(html), [])

    def test_bad(self) -> None:
        for html, sentence in {"<a href='index.html'>": "does not exist", "<img src='p.svg'>": "does not exist",
                               "<a href='../index.html#there'>": "no such place", "<a href='#there'>": "no such place",
                               "<a href='..'>": "does not exist", "<a href='../../outside.html'>": "outside the site",
                               "<object data='x.svg'>": "does not exist"}.items():
            with self.subTest(html):
                self.assertEqual(len(self.problems(html)), 1)
                self.assertRegex(self.problems(html)[0], f"^sub/page.html:2: .*{sentence}")


if __name__ == "__main__":
    unittest.main()
