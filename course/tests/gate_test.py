#!/usr/bin/env python3
"""Tests of the grader's gate (course/grade/gate.py) with the compiler: refusals with their lines, and accepted files."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "course" / "grade"))
import gate  # noqa: E402
import task  # noqa: E402
import unit  # noqa: E402
from tests.programs.support import FolderTest  # noqa: E402

COMPILER = os.environ.get("CXX", "g++")
UNIT = """#include <cstddef>
#include "ranks.hpp"
struct submission_0123_begins;
#include "ring.cuh"
struct submission_0123_ends;
#include "unit.hpp"
extern "C" int overlap_submission();
"""
RANKS = """#pragma once
namespace overlap { struct Rank {}; inline void f() { for (;;) {} } }
#define CUDA_CHECK(x) asm(x)
"""
FILES = {"unit.cu": UNIT, "ranks.hpp": RANKS, "unit.hpp": "#pragma once\n#include \"ring.cuh\"\nstatic int min();\n",
         "classmate.cuh": "namespace overlap::ring { int a; }\n",
         "only_macros.hpp": "#define A 1\n", "ring.cuh": "#pragma once\n"}


class GateTest(FolderTest):
    """A kit of three files, in a folder with other files that are not in the kit."""

    def setUp(self) -> None:
        super().setUp()
        for name, text in FILES.items():
            self.write(name, text)
        self.preprocess("kit")

    def preprocess(self, name: str, *options: str) -> str:
        """The compiler's messages if it fails."""
        command = [COMPILER, "-std=c++20", *options, *unit.PREPROCESS, f"{self.folder}/unit.cu", "-MF", f"{name}.d",
                   "-o", f"{name}.cu"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=20, check=False)
        return done.stderr if done.returncode else ""

    def check(self, text: str, *options: str) -> None:
        """Throws gate.Refused."""
        (self.folder / "ring.cuh").write_text(text, encoding="utf-8")
        failed = self.preprocess("plain", *options)
        if failed:
            raise gate.Refused(failed)
        gate.check(self.folder / "kit", self.folder / "plain", f"{self.folder}/ring.cuh", "overlap::ring")

    def refused(self, text: str, *options: str) -> str:
        with self.assertRaises(gate.Refused) as caught:
            self.check("#pragma once\n" + text, *options)
        return str(caught.exception)

    def inside(self, *lines: str) -> str:
        """The refusal of lines inside the chapter's namespace."""
        return self.refused("\n".join(["namespace overlap::ring {", *lines, "}", ""]))

    def test_what_is_allowed(self) -> None:
        self.check("""#pragma once
  # include <cstddef>
#include "ranks.hpp"
#define MINE 3 /* "
#define NOT_MINE */
#undef MINE
#if __has_include(<cstddef>) && defined MINE
#endif
namespace overlap::ring { namespace detail { int a[1]; /* # 1 */ }
}
namespace overlap::ring::detail { // # 2
#pragma unroll
#pragma unroll (4)
[[nodiscard]] int f(int n) { return 1'000; }
const char* s = "asm } extern vgpu::"; void* t = NULL;
const char* r = R"x(}
# 1 "overlap"
extern)x"; Rank* v; }
""")

    def test_files_off_the_list(self) -> None:
        for text in ("#include <csignal>", "%:include <csignal>", "/* */ #include <csignal>",
                     "/*\n*/ #include <csignal> // */", "#inc\\\nlude <csignal>", "#inc\\  \nlude <csignal>",
                     "#/* */include <csignal>", "\\\n#include <csignal>", "#include/**/<csignal>",
                     "#define NAME <csignal>\n#include NAME", "#import <csignal>", "#include_next <csignal>",
                     "#if __has_include(<csignal>)\n#include <csignal>\n#endif"):
            with self.subTest(text=text):
                self.assertRegex(self.refused(text + "\n"), "^line [234]: #include of csignal, which is not on")
        for name in ("classmate.cuh", "only_macros.hpp"):
            self.assertIn(f"{name}, which is not on", self.refused(f'/*\n*/ #include "{name}" // */\n'))
        self.assertIn("nowhere.cuh: No such file", self.refused('#include "nowhere.cuh"\n'))
        self.assertIn("the unit that includes it", self.refused("#if __INCLUDE_LEVEL__ < 2\n#include __BASE_FILE__\n#endif\n"))

    def test_whatever_the_line_marker_says(self) -> None:
        for text in ("# 7", "#line 7", "#line 7 __FILE__", "/*\n*/ #line 7 // */"):
            self.assertIn("line 7: asm", self.refused(f"{text}\nasm(\"nop\");\n"), text)
        for text in ('# 1 "ranks.hpp"', '#line 1 "ranks.hpp"', '/*\n*/ #line 1 "ranks.hpp" // */', "# 1 __FILE__ 1 3",
                     "# 1 __BASE_FILE__ 2 3"):
            self.assertIn("a line marker", self.refused(f"{text}\nint a;\n"), text)

    def test_each_build_is_another_text(self) -> None:
        text = '#pragma once\n#ifdef __SANITIZE_THREAD__\nnamespace overlap::ring { int a __attribute__((weak)); }\n#endif\n'
        self.check(text)
        self.preprocess("kit", "-fsanitize=thread")
        self.assertIn("attributes", self.refused(text, "-fsanitize=thread"))

    def test_macros(self) -> None:
        for name in ("CUDA_CHECK(x)", "Rank", "min", "for", "__tsan_read"):
            self.assertIn("a name of the language or of the repository", self.refused(f"#define {name} 1\n"))
        for signs in ("##", "%:%:"):
            self.assertIn("joins tokens", self.refused(f"#define J(a, b) a{signs}b\n"))
        self.assertIn("line 3: asm", self.inside("void f() { CUDA_CHECK(1); }"))

    def test_other_directives(self) -> None:
        for text in ("#pragma GCC optimize(1)", "#pragma unroll x y", '#ident "x"', '_Pragma("GCC optimize(1)")',
                     "#embed <vector>"):
            with self.subTest(text=text):
                self.assertRegex(self.refused(text + "\n"), "a pragma other|directive #")
        self.assertIn("'?' stands outside", self.refused("??=include <csignal>\n"))

    def test_what_follows_is_the_kits(self) -> None:
        self.assertIn("stays open", self.refused("namespace overlap::ring {\n"))
        for text in ("#define EAT(...)\nEAT(\n", "/*", "#if 1\n", 'const char* s = R"(\n'):
            self.assertIn("unterminated", self.refused(text))
        with self.assertRaisesRegex(gate.Refused, "#pragma once is missing"):
            self.check("namespace overlap::ring { int a; }\n")

    def test_forbidden_words_name_their_line(self) -> None:
        for line, reason in (('asm("nop");', "assembler"),
                             ('extern "C" int f();', "extern"), ("int a __attribute__((weak));", "attributes"),
                             ("void f() { vgpu::reset(); }", "vgpu"), ("[[gnu::weak]] int f();", "[[gnu]]"),
                             ("<:<:gnu::weak:>:> int f();", "bracket"),
                             ("void __tsan_ignore_thread_begin();", "race detector"),
                             ('__asm(".incbin \\"x\\"");', "assembler")):
            with self.subTest(line=line):
                self.assertRegex(self.inside("int a;", line), "^line 4: ")
                self.assertIn(reason, self.inside("int a;", line))

    def test_everything_stands_in_the_chapters_namespace(self) -> None:
        for text, reason in (("namespace std {\n}", "namespace std"), ("namespace overlap {\n}", "namespace overlap;"),
                             ("namespace overlap::rings {\n}", "namespace overlap::rings;"),
                             ("namespace x = overlap::ring;", "namespace x;"),
                             ("namespace overlap::ring {\n%> namespace std <%\n}", "another way to write"),
                             ("template <> struct overlap::Rank<int> {};", "stands outside"),
                             ("namespace overlap::ring {\n}\n}\nnamespace std {", "too many")):
            self.assertIn(reason, self.refused(text + "\n"))

    def test_is_soon_done(self) -> None:
        started = time.monotonic()
        self.check(f"#pragma once\n// {'/*x' * 80_000}\n/* {'/*x' * 80_000} */\n")
        self.check("#pragma once\n" + "/*x" * 80_000 + "*/\n")
        self.check(f"#pragma once\nnamespace overlap::ring {{ auto s = R\"({'(' * 100_000})\"; {'{}' * 50_000} }}\n")
        self.check("#pragma once\n" + "".join(f"#define OWN_{number}\n" for number in range(10_000)))
        bomb = "#define A ;;;;;;;;;;;;;;;;\n"
        bomb += "".join(f"#define {name} {' '.join([before] * 16)}\n" for before, name in ("AB", "BC", "CD", "DE"))
        self.assertIn("expands to more than 512 KiB", self.refused(bomb + "E E E E\n"))
        self.assertLess(time.monotonic() - started, 20)


class UnitTest(unittest.TestCase):
    def test_the_graded_header_is_not_in_the_kit(self) -> None:
        for path in sorted(ROOT.glob("chapters/*/assignment/grade.json")):
            for each in task.tasks_of(path.parts[-3]):
                before, _, behind = each.source().partition(f'"{each.path}"')
                self.assertNotIn(each.header, before)
                self.assertNotIn(each.path, each.visible())
                self.assertEqual(each.unit in behind, each.unit != each.header)


class ReadTest(unittest.TestCase):
    def test_what_is_no_text(self) -> None:
        for data, reason in ((b"a\n\0", "line 2: a byte 0"), (b"\xff", "line 1: this is no UTF-8"),
                             (b"\n" * (256 * 1024 + 1), "256 KiB")):
            with self.assertRaisesRegex(gate.Refused, reason):
                gate.read(data)
        self.assertEqual(gate.read(b"\xef\xbb\xbfa\r\nb\rc"), "a\nb\nc")


if __name__ == "__main__":
    unittest.main()
