#!/usr/bin/env python3
"""Tests of the companion pages of the articles: each heading of an article (docs/articles/articles.json) has a row with the
place of our lesson, file and line, and a row with the differences and omissions; figures are those of docs/results."""
import pathlib
import sys
import copy
import re
import unittest
from typing import Dict, List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY  # noqa: E402
from tools.pages import article_figures  # noqa: E402
from tools.results.results import load  # noqa: E402

ARTICLES = REPOSITORY / "docs" / "articles"
WHERE, DIFFERS = "## Section by section", "## What differs, and what is left out"


def table_below(text: str, heading: str) -> List[List[str]]:
    """The cells of the first table below a heading, without its first two lines."""
    part = text.partition(heading + "\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def rows_of(text: str, headings: List[str]) -> Dict[str, List[List[str]]]:
    """The rows of each heading: those that begin with it (a row may name several), and those without a name below it."""
    found: Dict[str, List[List[str]]] = {}
    last: List[str] = []
    for row in table_below(text, WHERE):
        if row[0] and not row[0].startswith(("(", "`")):
            last = [heading for heading in headings if re.search(rf"(^|and ){re.escape(heading)}($| and|:)", row[0])] or last
        for heading in last:
            found.setdefault(heading, []).append(row)
    return found


def problems(text: str, headings: List[str]) -> List[str]:
    """The rows that a companion page lacks for its article."""
    found = []
    rows, differences = rows_of(text, headings), {row[0]: row[1:] for row in table_below(text, DIFFERS)}
    for heading in headings:
        said = " ".join(row[-1] for row in rows.get(heading, []))
        if not said:
            found.append(f"{heading}: no row says where it is")
            continue
        if not re.search(r"\.\./chapters/\d\d_", said):
            found.append(f"{heading}: no link to a lesson")
        if "<!-- line " not in said and "no code" not in said:
            found.append(f"{heading}: neither file and line nor 'no code'")
        if len(differences.get(heading, [])) != 2 or not all(differences[heading]):
            found.append(f"{heading}: no row says what differs ('none') and what is left out ('nothing')")
    return found


class CompanionsTest(unittest.TestCase):
    def test_every_article_has_a_page_and_every_page_an_article(self) -> None:
        pages = {article["page"] for article in article_figures.articles(REPOSITORY)}
        self.assertEqual(len(pages), 5)
        self.assertEqual(pages, {path.name for path in ARTICLES.glob("*.md")} - {"README.md"})
        index = (ARTICLES / "README.md").read_text(encoding="utf-8")
        for page in pages:
            self.assertIn(f"({page})", index)

    def test_every_heading_has_its_rows(self) -> None:
        for article in article_figures.articles(REPOSITORY):
            with self.subTest(article["page"]):
                text = (ARTICLES / article["page"]).read_text(encoding="utf-8")
                self.assertGreaterEqual(len(article["headings"]), 4)
                self.assertEqual(problems(text, article["headings"]), [])
                self.assertIn(f"<!-- figures {article['page'][:-3]} -->", text)

    def test_what_is_missing_is_found(self) -> None:
        page = (f"{WHERE}\n\n| a | b | c |\n| --- | --- | --- |\n"
                "| One and Two | x | 03, [l](../../chapters/03_a/README.md), <!-- line f g -->[f:1](f#L1)<!-- /line --> |\n"
                "| | y | 04 |\n| Three: `f` | z | [17](../../chapters/17_a/README.md), no code |\n| Four | z | [04](../../chapters/04_a/README.md), no code |\n\n"
                f"{DIFFERS}\n\n| a | b | c |\n| --- | --- | --- |\n" + "".join(f"| {name} | none | nothing |\n" for name in
                                                                                ("One", "Two", "Three", "Four")))
        headings = ["One", "Two", "Three", "Four"]
        self.assertEqual(problems(page, headings), [])
        for before, after, sentence in (("One and ", "", "One: no row says where"), ("../../chapters/03_a", "x", "One: no link"),
                                        ("<!-- line ", "<!-- ", "Two: neither"), ("04_a/README.md), no code", "04_a/README.md)", "Four: neither"),
                                        ("| Three | none | nothing |\n", "", "Three: no row says what differs"),
                                        ("| Three | none |", "| Three | |", "Three: no row says what differs")):
            self.assertRegex("\n".join(problems(page.replace(before, after), headings)), sentence)


class FiguresTest(unittest.TestCase):
    def setUp(self) -> None:
        self.reports = load(REPOSITORY / "docs" / "results")

    def table(self) -> str:
        return article_figures.figures_table("tensor_parallelism_with_cuda", REPOSITORY, self.reports)

    def test_figures_are_those_of_the_results(self) -> None:
        run = next(run for report in self.reports for run in report["runs"] if run["chapter"] == "01_column_split" and run["options"]["n"] == 8192)
        self.assertIn(f"`one_gpu`: {run['results'][0]['kernel_ms']:.4g} ms, H100 |", self.table())
        self.assertIn(f"Ours: {run['hardware']['gpus']} x {run['hardware']['gpu']}", self.table())

    def test_modelled_or_other_sizes_are_no_figures(self) -> None:
        kept = copy.deepcopy(self.reports)
        for change in ({"modelled": True}, {"m": 1}, {"results": []}):
            self.reports = copy.deepcopy(kept)
            for run in (run for report in self.reports for run in report["runs"]):
                (run["options"] if "m" in change else run).update(change)
            self.assertEqual(self.table().count("not measured"), 3, change)
            self.assertNotIn("Ours:", self.table())

    def test_no_such_article(self) -> None:
        with self.assertRaisesRegex(article_figures.PageError, "no article 'none'"):
            article_figures.figures_table("none", REPOSITORY, self.reports)


if __name__ == "__main__":
    unittest.main()
