"""Shared by the rewriter's tests."""

import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
TOOLS = REPOSITORY / "virtual_gpu" / "tools"
STUB = HERE / "stub"

sys.path.insert(0, str(TOOLS))
from rewrite import rewrite  # noqa: E402

START = '# 1 "x.cu"\n'


def squeezed(text):
    """Collapses runs of spaces, because blanked words leave theirs behind."""
    return re.sub(" +", " ", text).strip()


def lines_of(text):
    """(file, line, system header?) of each line of a preprocessed text, without the markers."""
    found, file, line, flags = [], "", 0, ""
    for row in text.split("\n"):
        marker = re.match(r'# (\d+) "(.*)"(.*)', row)
        if marker:
            file, line, flags = marker.group(2), int(marker.group(1)), marker.group(3)
        else:
            found.append((file, line, " 3" in flags, row))
            line += 1
    return found


class RewriterTest(unittest.TestCase):
    def rewritten(self, source):
        """Rewrites; checks that all line breaks and line markers remain."""
        text = rewrite(START + source)
        self.assertEqual(text.count("\n"), source.count("\n") + 1, text)
        self.assertEqual(len(re.findall(r"\n# \d", text)), len(re.findall(r"\n# \d", START + source)), text)
        self.assertNotRegex(text, r'[^\n]# \d+ "')
        self.assertTrue(text.startswith(START))
        return text[len(START):]

    def becomes(self, source, expected):
        self.assertEqual(squeezed(self.rewritten(source)), squeezed(expected))

    def in_kernel(self, source, expected):
        self.becomes("void f() { " + source + " }", "void f() { " + expected + " }")

    def stays(self, source):
        self.assertEqual(self.rewritten(source), source)


def run_tests() -> None:
    """unittest.main(); also fails if there is no test."""
    program = unittest.main(module="__main__", exit=False)
    ran = program.result.testsRun - len(program.result.skipped)
    if ran == 0:
        print("no test ran", file=sys.stderr)
    sys.exit(0 if program.result.wasSuccessful() and ran > 0 else 1)
