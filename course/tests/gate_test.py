#!/usr/bin/env python3
"""Tests of the grader's gate (course/grade/gate.py): what it refuses, with which line, and what it lets through."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "course" / "grade"))
import gate  # noqa: E402

RULES = gate.rules_from({"overlap/gpu/ranks.hpp", "<vector>"}, {"overlap::ring"}, {"CUDA_CHECK", "Rank", "min"})
FILE = "./03/ring.cuh"


def preprocessed(*lines: str) -> str:
    """What g++ -E would make of a file of these lines, after a header of the repository."""
    return "\n".join(['# 1 "overlap/gpu/ranks.hpp" 1', "namespace overlap { asm(\"theirs\"); }", f'# 1 "{FILE}" 1', *lines, '# 7 "unit.cu" 2',
                      'extern "C" int f();', ""])


class SourceTest(unittest.TestCase):
    def refused(self, text: str) -> str:
        with self.assertRaises(gate.Refused) as caught:
            gate.check_source(text, RULES)
        return str(caught.exception)

    def test_what_is_allowed(self) -> None:
        gate.check_source('#pragma once\n  # include <vector>\n#include "overlap/gpu/ranks.hpp"\n#define MINE 3\n#undef MINE\n'
                          "#ifdef MINE\n#endif\n#pragma unroll\n#pragma unroll (4)\nint a = 3 /* # 1 */;\n// # 2\nint b; # \n", RULES)

    def test_includes_off_the_list(self) -> None:
        for name in ("<unistd.h>", '"/etc/passwd"', '"../03/solution.cuh"', "<thread>", '"vgpu/control.hpp"'):
            self.assertIn("line 2: #include of", self.refused(f"\n#include {name}\n"))
        self.assertIn("names its file itself", self.refused("#include NAME\n"))

    def test_disguised_directives(self) -> None:
        for text in ("%:include <unistd.h>", "/* */ #include <unistd.h>", "/*\n*/ #include <unistd.h>", "#inc\\\nlude <unistd.h>",
                     "#inc\\  \nlude <unistd.h>", "#/* */include <unistd.h>", "\\\n#include <unistd.h>", "#include/**/<unistd.h>"):
            with self.subTest(text=text):
                self.assertRegex(self.refused(text + "\n"), "unistd.h|names its file itself|directive")

    def test_line_markers(self) -> None:
        self.assertIn("line marker", self.refused('# 1 "x"\n'))
        self.assertIn("the directive #line", self.refused('#line 1 "x"\n'))

    def test_macros_over_names(self) -> None:
        for name in ("CUDA_CHECK(x)", "Rank", "for", "__tsan_read"):
            self.assertIn("a name of the language or of the repository", self.refused(f"#define {name} 1\n"))
        self.assertIn("joins tokens", self.refused("#define J(a, b) a##b\n"))
        self.assertIn("not the file's own", self.refused("#undef CUDA_CHECK\n"))

    def test_other_directives(self) -> None:
        for text in ("#pragma GCC optimize(1)", "#pragma once x", "#import <vector>", "#include_next <vector>", "#embed <vector>",
                     '#ident "x"', "#assert x(y)"):
            with self.subTest(text=text):
                self.refused(text + "\n")
        self.assertIn("looking for files", self.refused('#if __has_include("/etc/passwd")\n'))
        self.assertIn("trigraphs", self.refused("??=include <vector>\n"))


class TokensTest(unittest.TestCase):
    def refused(self, *lines: str) -> str:
        with self.assertRaises(gate.Refused) as caught:
            gate.check_tokens(gate.tokens_of(preprocessed(*lines), FILE), RULES)
        return str(caught.exception)

    def inside(self, *lines: str) -> str:
        """Why, of lines inside of the chapter's namespace."""
        return self.refused("namespace overlap::ring {", *lines, "}")

    def test_what_is_allowed(self) -> None:
        gate.check_tokens(gate.tokens_of(preprocessed(
            "namespace overlap::ring {", "namespace detail { int a[1]; }", "}", "namespace overlap::ring::detail {", "[[nodiscard]] int f(int n) { return n'000; }",
            'const char* s = "asm } extern vgpu::";', "std::vector<::overlap::Rank*> v;", "const char* r = R\"x(}\n# 1 \"overlap\"\n)x\";", "}"), FILE), RULES)

    def test_only_the_students_tokens_count(self) -> None:
        tokens = gate.tokens_of(preprocessed("namespace overlap::ring {", "int a;", "}"), FILE)
        self.assertEqual([token.text for token in tokens], ["namespace", "overlap", "::", "ring", "{", "int", "a", ";", "}"])
        self.assertEqual([token.line for token in tokens], [1, 1, 1, 1, 1, 2, 2, 2, 3])

    def test_forbidden_words_name_their_line(self) -> None:
        for line, reason in (('asm("nop");', "assembler"), ('extern "C" int f();', "extern"), ("int a __attribute__((weak));", "attributes"),
                             ("void f() { vgpu::reset(); }", "vgpu"), ("[[gnu::weak]] int f();", "[[gnu]]"), ('_Pragma("x")', "pragmas"),
                             ("void __tsan_ignore_thread_begin();", "race detector"), ('auto s = ".incbin \\"x\\"";', ".incbin")):
            with self.subTest(line=line):
                self.assertRegex(self.inside("int a;", line), "^line 3: ")
                self.assertIn(reason, self.inside("int a;", line))

    def test_everything_stands_in_the_chapters_namespace(self) -> None:
        self.assertIn("namespace std", self.refused("namespace std {", "}"))
        self.assertIn("namespace overlap;", self.refused("namespace overlap {", "}"))
        self.assertIn("namespace x;", self.refused("namespace x = overlap::ring;"))
        self.assertIn("another way to write", self.refused("namespace overlap::ring {", "%> namespace std <%", "}"))
        self.assertIn("stands outside", self.refused("template <> struct overlap::Rank<int> {};"))
        self.assertIn("too many", self.refused("namespace overlap::ring {", "}", "}", "namespace std {"))


class ReadTest(unittest.TestCase):
    def test_what_is_no_text(self) -> None:
        for data, reason in ((b"a\n\0", "line 2: a byte 0"), (b"\xff", "line 1: this is no UTF-8"), (b"\n" * (256 * 1024 + 1), "256 KiB")):
            with self.assertRaisesRegex(gate.Refused, reason):
                gate.read(data)
        self.assertEqual(gate.read(b"\xef\xbb\xbfa\r\nb\rc"), "a\nb\nc")


if __name__ == "__main__":
    unittest.main()
