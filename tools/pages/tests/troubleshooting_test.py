#!/usr/bin/env python3
"""Tests that docs/troubleshooting.md has, with a cure, exactly the messages with which ./lab and the programs refuse
(tools/pages/messages.py)."""
import sys
import pathlib
import re
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.pages import messages  # noqa: E402


class PageTest(unittest.TestCase):
    def test_page_and_sources_agree(self) -> None:
        page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(.*?)` \| (\S.*) \|$", page, re.MULTILINE)
        said = messages.messages()
        self.assertGreater(len(said), 50)
        self.assertEqual({sentence: source for sentence, source in said.items() if sentence not in dict(rows)}, {}, "no cure")
        self.assertEqual([sentence for sentence, _ in rows if sentence not in said], [], "nobody says it")
        self.assertEqual(len(rows), len(dict(rows)), "a sentence has two rows")


class MessagesTest(FolderTest):
    def found(self, name: str, text: str) -> list:
        self.write(name, text)
        return list(messages.messages(self.folder))

    def test_python(self) -> None:
        text = 'raise Refusal(f"no chapter \'{name}\'; {a}{b} here")\nraise Refusal(str(error))\nsay("not this")\nraise Skip("no GPU here")\nraise process.Refusal("not now")\n'
        self.assertEqual(self.found("tools/lab/a.py", text), ["no chapter '...'; ... here", "no GPU here", "not now"])

    def test_shell(self) -> None:
        text = ('die "cannot be made: $(tail -n 1 "$log") and ${x[*]}"\ndie "$problem"\nrow x "not this one"\n'
                '  echo "nvcc is not here (\\"CUDA\\")"\necho "usage: not this"\necho g++\n')
        self.assertEqual(self.found("tools/lab/a.sh", text), ["cannot be made: ... and ...", 'nvcc is not here ("CUDA")'])

    def test_programs(self) -> None:
        text = ('throw UsageError("--k: sums of " + std::to_string(f(k, "x")) +\n    " products" " of two");\nthrow Skip(reason);\n'
                'throw std::logic_error("not this");\nthrow UsageError(std::string("--machine: ") + error.what());\n')
        self.assertEqual(self.found("common/overlap/a.cpp", text), ["--k: sums of ... products of two"])


if __name__ == "__main__":
    unittest.main()
