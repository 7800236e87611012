#!/usr/bin/env python3
"""Headers that virtual GPUs replace declare the same as the real ones, by the same text.

    for_virtual_gpus_test.py OWN_FOLDER REAL_FOLDER"""
import pathlib
import re
import sys
import unittest
from typing import List

# The begin and the end of a fragment may differ: the real one has registers.
OWN = {"Fragment()", "~Fragment()"}


def declarations(text: str) -> List[str]:
    """The declarations in the header's namespaces and structs, without bodies, comments, macros and private names."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    found: List[str] = []
    depth, begin, open_scopes = 0, 0, []
    for at, character in enumerate(text):
        if character not in "{};":
            continue
        before = " ".join(text[begin:at].split())
        if character == "{":
            depth += 1
            if len(open_scopes) != depth - 1:
                continue
            if "enum " in before:
                found.append(" ".join(text[begin:text.index("}", at)].split()))
            elif re.search(r"\b(namespace|struct|class)\b[^()]*$", before):
                open_scopes.append(before)
                found.append(before)
                begin = at + 1
            else:
                found.append(before)  # a function, whose body follows
        elif character == "}":
            if len(open_scopes) == depth:
                open_scopes.pop()
                begin = at + 1
            elif len(open_scopes) == depth - 1:
                begin = at + 1
            depth -= 1
        elif len(open_scopes) == depth:
            found.append(before)
            begin = at + 1
    without_markup = [re.sub(r"__(?:device|forceinline|host)__ ?", "", one).replace("= default", "").strip() for one in found]
    return [one for one in without_markup if one and one not in OWN]


class OwnHeadersTest(unittest.TestCase):
    own: pathlib.Path
    real: pathlib.Path

    def test_each_declares_what_the_real_one_declares(self) -> None:
        headers = [path.relative_to(self.own) for path in sorted(self.own.rglob("*.hpp"))]
        found = 0
        for header in headers:
            with self.subTest(str(header)):
                here, there = ((folder / header).read_text(encoding="utf-8") for folder in (self.own, self.real))
                self.assertGreater(len(declarations(there)), 3)
                self.assertEqual(declarations(here), declarations(there))
                found += len(declarations(there))
        self.assertGreater(found, 20)

    def test_differences_are_seen(self) -> None:
        text = ("namespace a {\nenum class E { kX, kY };\ntemplate <int N>\nstruct F {\n  F() = default;\n  F(const F&) = delete;\n"
                "  float v[N];\n};\n#define M \\\n  x;\n/// Says x.\n__device__ __forceinline__ void f(int a, bool b) { g({a}); }\n"
                "inline constexpr int k = 1;\n}  // namespace a\n")
        self.assertEqual(declarations(text), ["namespace a", "enum class E { kX, kY", "template <int N> struct F", "F()",
                                              "F(const F&) = delete", "float v[N]", "void f(int a, bool b)",
                                              "inline constexpr int k = 1"])
        self.assertEqual(declarations(text.replace("g({a})", "h()")), declarations(text))
        for old, new in (("kY", "kZ"), ("bool b", "int b"), ("int N", "long N"), ("k = 1", "k = 2"), ("v[N]", "v[2]"),
                         ("void f", "int f"), ("F(const F&) = delete;", "")):
            self.assertNotEqual(declarations(text.replace(old, new)), declarations(text), old)


if __name__ == "__main__":
    OwnHeadersTest.own, OwnHeadersTest.real = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
