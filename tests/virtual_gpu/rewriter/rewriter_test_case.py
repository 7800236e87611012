"""What the tests of the rewriter's rules are made with."""

import re
import unittest

from support import squeezed
from rewrite import rewrite

START = '# 1 "x.cu"\n'


class RewriterTest(unittest.TestCase):
    def rewritten(self, source):
        """Rewrites; the line breaks must all be there, and as many line markers."""
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
