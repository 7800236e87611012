#!/usr/bin/env python3
"""Tests that docs/troubleshooting.md has a cure for sentences that ./lab and the programs say, and for none that nobody says."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY  # noqa: E402

SOURCES = ("lab", "tools/lab/**/*.py", "tools/lab/*.sh", "tools/results/plan*.py", "common/overlap/**/*.[ch]pp", "virtual_gpu/tools/race_run")
BETWEEN = r'(?:[^"\n]|\\"|"[^"]{0,200}")*?'  # what a program puts in, and the seam of two literals


def said(sentence: str, text: str) -> bool:
    """True if the text has the sentence's words in this order in one place, with something else for each `...`."""
    words = [re.escape(part.strip()) for part in re.split(r"\.\.\.", sentence) if part.strip()]
    return re.search(BETWEEN.join(words), text) is not None


class PageTest(unittest.TestCase):
    def test_page_and_sources_agree(self) -> None:
        page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(.*?)` \| (\S.*) \|$", page, re.MULTILINE)
        texts = [re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for pattern in SOURCES for path in REPOSITORY.glob(pattern)]
        self.assertGreater(len(rows), 50)
        self.assertEqual([sentence for sentence, _ in rows if not any(said(sentence, text) for text in texts)], [], "nobody says it")
        self.assertEqual(len(rows), len(dict(rows)), "a sentence has two rows")


if __name__ == "__main__":
    unittest.main()
