#!/usr/bin/env python3
"""The rewriter's rules on small texts: what comes out, what stays, what is refused and at which line.

That the result compiles and runs is tested by compiler_launcher_test.py.
"""

import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "rewriter"))
from refused import REFUSED  # noqa: E402
from support import TOOLS, lines_of, run_tests, squeezed  # noqa: E402
from rewrite import Refusal, rewrite  # noqa: E402

START = '# 1 "x.cu"\n'
BODY = "{ ::vgpu::launch_kernel(__PRETTY_FUNCTION__, 0, [=]() mutable -> void {"


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


class Kernels(RewriterTest):
    def test_definition(self):
        self.becomes("__global__ void k(int n) { n; }", "void k(int n) " + BODY + " n; }); }")

    def test_parameters_that_are_pointers_are_named(self):
        for parameters, names in (("float* x", "x"), ("const float *x, int n", "x"), ("int n", ""), ("", ""), ("void", ""),
                                  ("const T* const __restrict__ x = nullptr, T** volatile y = f(1, 2)", "x y"),
                                  ("int, float*, const Foo, std::size_t, float* const", ""),  # without a name
                                  ("Box<int*> b, Map<int, float*>* m", "m"), ("T*... more", ""),
                                  ("void (*f)(int* p), int (*a)[4], int a[], int& r", "")):
            with self.subTest(parameters):
                pointers = ", ".join('{"%s", %s}' % (name, name) for name in names.split())
                self.becomes("__global__ void k(%s) { }" % parameters, "void k(%s) %s }%s); }"
                             % (parameters, BODY, ", {%s}" % pointers if pointers else ""))

    def test_declaration_only_loses_the_word(self):
        self.becomes("__global__ void k(int* p); int x;", "void k(int* p); int x;")
        self.becomes("__global__ void k(int* p) = delete; void f() {}", "void k(int* p) = delete; void f() {}")
        self.becomes("__global__ void k() noexcept(f(1)) {}", "void k() noexcept(f(1)) " + BODY + "}); }")

    def test_columns_of_the_line_stay(self):
        before = "__global__ void k(int n); int x;"
        self.assertEqual(self.rewritten(before).index("x"), before.index("x"))

    def test_specifiers_in_any_order(self):
        for head in ("static __global__ void", "__global__ static void", "void __global__", "inline __global__ void",
                     'extern "C" __global__ void', "[[maybe_unused]] __global__ void", "__global__ inline void",
                     "__attribute__((used)) __global__ void", "template <class T> __global__ void",
                     "template <class T, int N = (1 > 0)> static __global__ void",
                     "template <class T> requires (sizeof(T) > 1) __global__ void"):
            with self.subTest(head):
                self.becomes(head + " k(int n) {}", head.replace("__global__ ", "").replace("__global__", "")
                             + " k(int n) " + BODY + "}); }")

    def test_launch_bounds(self):
        for head in ("__global__ __launch_bounds__(64) void", "__global__ void __launch_bounds__(64)",
                     "__launch_bounds__(64) __global__ void", "__global__ __launch_bounds__(64, 2) void"):
            with self.subTest(head):
                self.becomes(head + " k() {}", "void k() " + BODY.replace(" 0,", " 64,") + "}); }")

    def test_launch_bounds_are_any_expression(self):
        self.becomes("__global__ void __launch_bounds__(f<1, 2>(3, 4) *\n 2, 1) k() {}",
                     "void \n k() " + BODY.replace(" 0,", " f<1, 2>(3, 4) * 2,") + "}); }")

    def test_launch_bounds_of_a_declaration(self):
        self.becomes("__global__ void __launch_bounds__(64) k();", "void k();")

    def test_explicit_instantiation_and_specialisation(self):
        self.becomes("template __global__ void k<int>(int*);", "template void k<int>(int*);")
        self.becomes("template <> __global__ void k<A<B>>(int*) {}",
                     "template <> void k<A<B>>(int*) " + BODY + "}); }")

    def test_friend_declaration(self):
        self.becomes("class A { friend __global__ void k(A); };", "class A { friend void k(A); };")

    def test_in_namespaces(self):
        for opening in ("namespace {", "namespace a::b {", "inline namespace c {", 'extern "C" {'):
            with self.subTest(opening):
                self.becomes(opening + " __global__ void k() {} }", opening + " void k() " + BODY + "}); } }")

    def test_braces_in_the_body(self):
        self.becomes("__global__ void k() { if (1) { '}'; \"}\"; R\"x(}\")x\"; } }",
                     "void k() " + BODY + " if (1) { '}'; \"}\"; R\"x(}\")x\"; } }); }")

    def test_unbalanced_braces_are_left_to_the_compiler(self):
        self.becomes("__global__ void k() { if (1) {", "void k() { if (1) {")


class Launches(RewriterTest):
    def launch(self, callee, configuration="1, 2", arguments="x", before="", after=";"):
        self.in_kernel(before + callee + "<<<" + configuration + ">>>(" + arguments + ")" + after,
                       before + "(::vgpu::configure_launch(" + configuration + "), " + callee + "(" + arguments + "))"
                       + after)

    def test_callees(self):
        for callee in ("k", "a::b::k", "::k", "::a::k", "k<int>", "k<a<b<int>>>", "a<int>::k", "k<(N > 4)>",
                       "k<(1 >> 2), a<b>>",
                       "this->k", "obj.k", "p->q.k", "table[i]", "table[i][j]", "(*k)", "(*table[i])",
                       "kernel_for<T>(x)",
                       "detail::template k<T>", "obj.template k<T>()", "f(1)(2)", "f(x).k", "a::f<T>(x)[2].k",
                       "(a, k)"):
            with self.subTest(callee):
                self.launch(callee)

    def test_callee_ends_at_the_statement(self):
        for before in ("return ", "else ", "do ", "case 1: ", "label: ", "a ? ", "a ? b : ", "if (x) ",
                       "if (x) y; else ", "for (;;) ",
                       "while (x) ", "if constexpr (x) ", "x, ", "x = 1; ", "{} ", "auto l = [] { ", "(void)",
                       "if (x) [[likely]] ",
                       "co_yield ", "f(", "!"):
            after = {"auto l = [] { ": "; }", "f(": ");"}.get(before, ";")
            for callee in ("k", "::k", "a::k", "(*k)", "table[i]", "k<T>"):
                if before == "(void)" and callee == "(*k)":
                    continue  # Not to be told from a call.
                with self.subTest(before + callee):
                    self.launch(callee, before=before, after=after)

    def test_configurations(self):
        for configuration in ("1, 2, 3", "1, 2, 3, s", "dim3(1, 2), dim3{3, 4}", "f<g<h<int>>>(), 2",
                              "(f<g<h<int>>>()), 2",
                              "n < 4 ? 1 : 2, 64", "n >> 2, 1",
                              "[&] { return f(1, 2); }(), [](int i) { return i; }(3)",
                              "f<1, 2>(), 2", "f<1, 2, 3, 4, 5>(), 2", "1, f<int>::value", "sizeof(a<b<c>>), 'a'",
                              "\">>>\"[0], 1'000",
                              "1, f<g<int>>{}",
                              "a<b, c<d, e<f", "4 < n ? 1 : 2, 64"):
            with self.subTest(configuration):
                self.launch("k", configuration=configuration)

    def test_configuration_that_ends_in_templates(self):
        self.in_kernel("k<<<1, v<int>>>>(x);", "(::vgpu::configure_launch(1, v<int>), k(x));")
        self.in_kernel("k<<<1, v<w<int>>>>>(x);", "(::vgpu::configure_launch(1, v<w<int>>), k(x));")

    def test_arguments(self):
        for arguments in ("", "0", "{1, 2}, a", "a < b, c > d", "f<g<h<int>>>()", "[=](int i) { return i; }",
                          "\">>>(\"", "(a, b)"):
            with self.subTest(arguments):
                self.launch("k", arguments=arguments)

    def test_lambda_argument_of_the_device(self):
        self.in_kernel("k<<<1, 2>>>([=] __device__ (int i) { });",
                       "(::vgpu::configure_launch(1, 2), k([=] (int i) { }));")

    def test_launch_in_configuration_and_arguments(self):
        inner, result = "[&] { a<<<1, 2>>>(); }()", "[&] { (::vgpu::configure_launch(1, 2), a()); }()"
        self.in_kernel("k<<<%s, 1>>>(%s);" % (inner, inner),
                       "(::vgpu::configure_launch(%s, 1), k(%s));" % (result, result))

    def test_comments_around_a_launch(self):
        self.in_kernel("/* a */ k /* b<> */ <<<1, /* , */ 2>>> /* c */ (x);",
                       "/* a */ (::vgpu::configure_launch /* b<> */ (1, /* , */ 2), k /* c */ (x));")

    def test_launch_in_the_callee(self):
        self.in_kernel("f([&] { a<<<1, 2>>>(); })<<<3, 4>>>();",
                       "(::vgpu::configure_launch(3, 4), f([&] { (::vgpu::configure_launch(1, 2), a()); })());")

    def test_two_launches_in_one_expression(self):
        self.in_kernel("x ? a<<<1, 2>>>() : b<<<3, 4>>>();",
                       "x ? (::vgpu::configure_launch(1, 2), a()) : (::vgpu::configure_launch(3, 4), b());")

    def test_spaces_and_lines(self):
        source = "void f() {\n k\n  <<<\n1,\n2>>>\n (\n a,\n b); x;\n}\n"
        text = self.rewritten(source)
        for word in ("1,", "2)", "a,", "b", "x;", "}"):
            rows = [[i for i, row in enumerate(t.split("\n")) if word.rstrip(")") in row] for t in (source, text)]
            self.assertEqual(rows[0][-1], rows[1][-1], word)

    def test_line_markers_in_callee_and_configuration(self):
        null = '\n# %d "x.cu" 3 4\n__null\n# %d "x.cu"\n'
        source = ("void f() {\n k<a,\n" + null.replace("\n", "", 1) % (3, 3) + ">\n<<<" + null % (4,
                                                                                                  4) + " == 0, 1\n>>>("
                  + null % (5, 5) + ");\n last;\n}\n")
        before, after = lines_of(START + source), lines_of(START + self.rewritten(source))
        for word in ("== 0", ";", "last", "}"):
            places = [[entry[:3] for entry in entries if word in entry[3]] for entries in (before, after)]
            self.assertEqual(places[0], places[1], word)

    def test_the_operator_and_shifts_stay(self):
        self.stays("int f() { return operator<<<int>(1) + (a << b) + (a <<= 2) + (a <=> b); }")


class SharedMemory(RewriterTest):
    def shared(self, declaration, members, *names, number="1"):
        references = "".join(" auto& %s = vgpu_block_%s.%s;" % (name, number, name) for name in names)
        self.in_kernel(declaration,
                       "struct vgpu_shared_%s { %s }; auto& vgpu_block_%s = ::vgpu::shared<vgpu_shared_%s>();%s"
                       % (number, members, number, number, references))

    def test_declarations(self):
        for declaration, members, names in (
                ("__shared__ int a;", "int a;", "a"),
                ("__shared__ float a[N][M + 1], b, *p;", "float a[N][M + 1], b, *p;", "a b p"),
                ("static __shared__ int a;", "int a;", "a"),
                ("volatile __shared__ int a;", "volatile int a;", "a"),
                ("int __shared__ a[2];", "int a[2];", "a"),
                ("__shared__ alignas(16) int a[2];", "alignas(16) int a[2];", "a"),
                ("alignas(16) __shared__ int a[2];", "alignas(16) int a[2];", "a"),
                ("__shared__ __attribute__((aligned(16))) int a;", "__attribute__((aligned(16))) int a;", "a"),
                ("__shared__ int a __attribute__((aligned(16)));", "int a __attribute__((aligned(16)));", "a"),
                ("__shared__ a::Pair<int, b<int>> x, y[2];", "a::Pair<int, b<int>> x, y[2];", "x y"),
                ("__shared__ A<(N > 1), 2> x, y;", "A<(N > 1), 2> x, y;", "x y"),
                ("__shared__ int (*p)[4], (*f)(int, int);", "int (*p)[4], (*f)(int, int);", "p f"),
                ("__shared__ typename T::Storage s;", "typename T::Storage s;", "s"),
                ("__shared__ struct { int x, y; } s;", "struct { int x, y; } s;", "s"),
                ("__shared__ int a[f<1, 2>()], b[sizeof(int[2])];", "int a[f<1, 2>()], b[sizeof(int[2])];", "a b"),
                ("__shared__ A<N == 1> a[N != 2];", "A<N == 1> a[N != 2];", "a"),
                ("[[gnu::aligned(16)]] __shared__ int a[2];", "[[gnu::aligned(16)]] int a[2];", "a"),
                ("__device__ __shared__ int a;", "int a;", "a")):
            with self.subTest(declaration):
                self.shared(declaration, members, *names.split())

    def test_number_is_the_line(self):
        text = self.rewritten("void f() {\n __shared__ int a; __shared__ int b;\n __shared__ int c;\n}\n")
        self.assertEqual(re.findall(r"struct vgpu_shared_(\w+)", text), ["2", "2_2", "3"])

    def test_number_does_not_depend_on_what_is_included_before(self):
        header = '# 1 "h.cuh" 1\nvoid g() { __shared__ int a; }\n# 2 "x.cu" 2\n'
        other = '# 1 "o.cuh" 1\nvoid h() { __shared__ int a; }\n# 2 "x.cu" 2\n'
        alone = re.findall(r"g\(\) \{ struct vgpu_shared_\w+", self.rewritten(header))
        self.assertEqual(alone, re.findall(r"g\(\) \{ struct vgpu_shared_\w+", self.rewritten(other + header)))
        self.assertEqual(len(alone), 1)

    def test_starts_behind_what_is_before(self):
        for before in ("if (x) { }", "x = 1;", "case 1:", "int a[2] = {1, 2};", "", "{ }"):
            with self.subTest(before):
                self.in_kernel(before + " __shared__ int a;",
                               before + " struct vgpu_shared_1 { int a; }; auto& vgpu_block_1 = "
                               "::vgpu::shared<vgpu_shared_1>(); auto& a = vgpu_block_1.a;")

    def test_in_functions_of_any_type(self):
        for head in ("struct A f()", "template <class T> union A f(T)", "auto f() const noexcept(true) -> A",
                     "A::A() : a(1), b{2}"):
            with self.subTest(head):
                self.assertIn("struct vgpu_shared_1 { int a; };",
                              squeezed(self.rewritten(head + " { __shared__ int a; }")))

    def test_in_nested_scopes_and_lambdas(self):
        for opening in ("{ {", "{ for (;;) {", "{ auto l = [&] {", "{ if (x) {", "{ switch (1) { case 1:",
                        "{ struct S { void g() {",
                        "{ struct S* s; {", "{ struct S { }; do {", "{ if (x) { struct S s; } else {",
                        "{ { struct S* s; } {"):
            source = "void f() " + opening + " __shared__ int a; "
            with self.subTest(opening):
                self.assertIn("struct vgpu_shared_1 { int a; };", squeezed(self.rewritten(source + "} " * 3)))

    def test_over_several_lines(self):
        self.rewritten("void f() {\n __shared__ int\n a[1\n + 2],\n b;\n}\n")

    def test_dynamic(self):
        for declaration, element in (("extern __shared__ int s[];", "int"),
                                     ("extern __shared__ alignas(16) unsigned char s[];", "unsigned char"),
                                     ("alignas(16) extern __shared__ T s[];", "T"),
                                     ("extern __shared__ volatile a::B<c> s[];", "volatile a::B<c>"),
                                     ("extern __shared__ __attribute__((aligned(16))) float s[];", "float"),
                                     ("extern __shared__ float __attribute__((aligned(16))) s[];", "float"),
                                     ("extern __shared__ __align__(16) float s[];", "float"),
                                     ("extern __shared__ unsigned\nchar s[];", "unsigned char")):
            with self.subTest(declaration):
                written = "unsigned\nchar" if "\n" in declaration else element
                self.in_kernel(declaration, "%s (&s)[] = *reinterpret_cast<%s (*)[]>(::vgpu::dynamic_shared());"
                               % (written, element))


class Functions(RewriterTest):
    def test_functions_lose_the_words(self):
        for declaration in ("__device__ int f(int x);", "__host__ __device__ int f();",
                            "static __device__ inline int f(A a) { }",
                            "int __device__ f(int);", "template <class T> __device__ T f(T);",
                            "extern __device__ int f(::A);",
                            "__device__ auto f(int) -> int;", "[[nodiscard]] __device__ int f(int);",
                            "__device__ [[nodiscard]] int f();",
                            "__device__ a::B<(1 > 0), c> f(...);", "__device__ __attribute__((used)) int f(int);",
                            "__device__ decltype(x) f(int);", "__device__ int* f(int);",
                            "__device__ int f([[maybe_unused]] int x);",
                            "__device__ explicit operator bool();", "__device__ bool operator<(A, B);",
                            "__device__ int operator()(int);",
                            "__device__ A& operator=(A);", "__device__ int operator[](int);",
                            "__device__ int A::f(int);",
                            "struct A { __device__ A() : x{1} {} __host__ __device__ ~A(); __device__ A(int); };",
                            "__device__ constexpr int f() { return 1; }", "void f(const __grid_constant__ T x);"):
            with self.subTest(declaration):
                self.becomes(declaration, re.sub("__(host|device|grid_constant)__ ?", "", declaration))

    def test_lambdas_lose_the_words(self):
        for lambda_ in ("[=] __device__ (int i) { }", "[] __host__ __device__ { }",
                        "[x = a[0]] __device__ () mutable { }",
                        "[]<class T> __device__ (T x) { }"):
            with self.subTest(lambda_):
                self.in_kernel("auto l = " + lambda_ + ";",
                               "auto l = " + re.sub("__(host|device)__ ", "", lambda_) + ";")

    def test_noinline(self):
        self.becomes("__device__ __noinline__ int f();", "__attribute__((noinline)) int f();")
        self.stays("__attribute__((__noinline__)) int f(); __attribute__((used, __noinline__)) int g();")
        self.stays("[[gnu::__noinline__]] int h();")


class Text(RewriterTest):
    def test_strings_characters_and_numbers_stay(self):
        for literal in ('"k<<<1, 1>>>(x) __global__"', 'u8"__shared__ \\" asm"', 'R"(asm " __shared__)"',
                        'LR"x()" asm )x"', "'\\''",
                        "'\"'", "1'000'000", "0x1p-3 + 1e+5", "u'\\\\'", '"a" "__device__ int x;"',
                        'R"(\n# 1 "sys.h" 1 3\n)"'):
            with self.subTest(literal):
                self.stays("auto x = " + literal + "; int y;\n")

    def test_comments_stay(self):
        self.stays("int x; // asm __shared__ '\n/* k<<<1>>> \" \n */ int y;\n")

    def test_system_headers_stay(self):
        system = '# 1 "/usr/s.h" 1 3 4\n__device__ int x; asm("nop"); __global__ "\n# 1 "/usr/t.h" 1 3 4\nasm\n' \
                 '# 3 "/usr/include/s.h" 2 3 4\n__shared__ int y;\n# 2 "x.cu" 2\n'
        self.assertEqual(squeezed(self.rewritten(system + "__device__ void f();\n")),
                         squeezed(system + " void f();\n"))

    def test_system_headers_at_the_end_stay(self):
        self.stays('# 1 "/usr/include/s.h" 1 3 4\n__device__ int x;\n')

    def test_user_header_in_a_system_header_is_rewritten(self):
        source = '# 1 "s.h" 1 3\n# 1 "u.h" 1\n__device__ void f();\n# 2 "s.h" 2 3\n__device__ int x;\n# 2 "x.cu" 2\n'
        self.becomes(source, source.replace("__device__ void", " void"))

    def test_macro_of_the_user_in_a_system_header_stays(self):
        self.stays('# 1 "s.h" 1 3\n# 2 "s.h"\n__device__ int x;\n# 2 "s.h" 3\n__device__ int y;\n# 2 "x.cu" 2\n')

    def test_macro_of_a_system_header_is_the_users_text(self):
        self.becomes('# 2 "x.cu" 3 4\n__device__\n# 2 "x.cu"\n void f();',
                     '# 2 "x.cu" 3 4\n \n# 2 "x.cu"\n void f();')

    def test_asm_of_a_system_macro_is_allowed(self):
        self.stays('void f() {\n# 2 "x.cu" 3 4\nasm("nop");\n# 2 "x.cu"\n}')

    def test_pragmas_of_nvcc_go_and_others_stay(self):
        self.becomes("#pragma unroll\nfor (;;);\n#pragma unroll 4\n# pragma nv_exec_check_disable\n",
                     "\nfor (;;);\n\n\n")
        self.stays("#pragma GCC unroll 4\n#pragma once\n#pragma unrolled\n")

    def test_plain_text_stays(self):
        for text in ("", "\n", "int main() { return 1 < 2 && 3 > 2; }\n", "}}}) ]", "'", '"', "((("):
            with self.subTest(text):
                self.stays(text)

    def test_other_bytes_stay(self):
        self.stays("int gr\u00f6\u00dfe; // \u221e \udcff\n")

    def test_filter(self):
        tool = [sys.executable, str(TOOLS / "rewrite.py")]
        good = subprocess.run(tool, input=b"__device__ void f(); // \xff\r\n", capture_output=True, check=False)
        self.assertEqual((good.returncode, good.stdout, good.stderr), (0, b"           void f(); // \xff\r\n", b""))
        bad = subprocess.run(tool, input=b'# 7 "x.cu"\nasm("");\n', capture_output=True, check=False)
        self.assertEqual((bad.returncode, bad.stdout), (1, b""))
        self.assertEqual(bad.stderr, b"x.cu:7: error: inline PTX is not supported on virtual GPUs\n")


class Refusals(unittest.TestCase):
    """One test for each entry of REFUSED."""

    def test_place_behind_includes_and_line_directives(self):
        with self.assertRaises(Refusal) as caught:
            rewrite('# 1 "a.cu"\n# 1 "/usr/s.h" 1 3 4\nasm\n\n# 2 "a.cu" 2\n\n# 40 "b \\"q.cuh"\n\n\n  asm("");\n')
        self.assertTrue(str(caught.exception).startswith('b \\"q.cuh:42: error: '), str(caught.exception))

    def test_place_without_a_line_marker(self):
        with self.assertRaises(Refusal) as caught:
            rewrite('\n\nasm("");\n')
        self.assertTrue(str(caught.exception).startswith("<input>:3: error: "), str(caught.exception))


def refusal_test(source, message):
    def test(self):
        with self.assertRaises(Refusal) as caught:
            rewrite('# 1 "dir/x.cu"\n\nint before;\n' + source + "\nint behind;\n")
        text = str(caught.exception)
        self.assertTrue(text.startswith("dir/x.cu:3: error: " + message), text)
        self.assertNotIn("\n", text)
    return test


for case, (text_, message_) in REFUSED.items():
    setattr(Refusals, "test_refuses_" + case, refusal_test(text_, message_))

if __name__ == "__main__":
    run_tests()
