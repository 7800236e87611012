#!/usr/bin/env python3
"""The rewriter's rules on small texts: launches and a block's shared memory.

compiler_launcher_test.py tests that the result compiles and runs.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "rewriter"))
from support import START, RewriterTest, lines_of, run_tests, squeezed  # noqa: E402


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
                    continue  # cannot be distinguished from a call
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

    def test_spaces_in_the_brackets(self):  # as nvcc accepts them
        for launch in ("k<< <1, 2>> >(x);", "k<<<1, 2>> >(x);", "k<< <1, 2>>>(x);", "k<< \t<1, 2>>\t>(x);"):
            with self.subTest(launch):
                self.in_kernel(launch, "(::vgpu::configure_launch(1, 2), k(x));")
        self.in_kernel("k << < 1, 2 >> > (x);", "(::vgpu::configure_launch ( 1, 2 ), k (x));")
        self.in_kernel("k<< <1, v<w<int>> >> >(x);", "(::vgpu::configure_launch(1, v<w<int>> ), k(x));")
        self.in_kernel("k<< <1, v<w<int> > >> >(x);", "(::vgpu::configure_launch(1, v<w<int> > ), k(x));")
        self.in_kernel("k<w<int> ><< <1, 2>> >(x);", "(::vgpu::configure_launch(1, 2), k<w<int> >(x));")
        self.in_kernel("k<< <n >> 2, v<w<u<int>> >()>> >(x);",
                       "(::vgpu::configure_launch(n >> 2, v<w<u<int>> >()), k(x));")
        self.stays("int f() { return operator<< <int>(1); }")

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
                       "struct vgpu_shared_%s { %s }; auto& vgpu_block_%s = ::vgpu::shared<vgpu_shared_%s>(\"%s\");%s"
                       % (number, members, number, number, ", ".join(names), references))

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
                               "::vgpu::shared<vgpu_shared_1>(\"a\"); auto& a = vgpu_block_1.a;")

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


if __name__ == "__main__":
    run_tests()
