#!/usr/bin/env python3
"""The rewriter's rules on small texts: the rewriting of kernels, functions and plain text, what stays, and what is rejected at
which line. rewriter_launch_test.py has launches and shared memory.

compiler_launcher_test.py tests that the result compiles and runs.
"""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "rewriter"))
from refused import REFUSED  # noqa: E402
from support import RewriterTest, run_tests, squeezed  # noqa: E402
from rewrite import Refusal, rewrite  # noqa: E402

BODY = "{ ::vgpu::launch_kernel(__PRETTY_FUNCTION__, 0, [=]() mutable -> void {"


class Kernels(RewriterTest):
    def test_definition(self):
        self.becomes("__global__ void k(int n) { n; }", "void k(int n) " + BODY + " n; }); }")

    def test_parameters_that_are_pointers_are_named(self):
        for parameters, pointers in (
                ("float* x", "x"), ("const float *x, int n", "x"), ("int n", ""), ("", ""), ("void", ""),
                ("const T* const __restrict__ x = nullptr, T** volatile y = f(1, 2)", "x y"),
                ("int, float*, const Foo, std::size_t, float* const, unsigned long", ""),  # without a name
                ("std::size_t n, typename T::type t, const Foo f, unsigned long l", ""),
                ("Box<int*> b, Map<int, float*>* m", "m"), ("T*... more, T... all", ""),
                ("void (*f)(int* p), int (*a)[4], int a[], int& r", "")):
            with self.subTest(parameters):
                named = ", ".join('{"%s", %s}' % (name, name) for name in pointers.split())
                self.becomes("__global__ void k(%s) { }" % parameters,
                             "void k(%s) %s }%s); }" % (parameters, BODY, ", {%s}" % named if named else ""))

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

    def test_cluster_dims(self):
        for head in ("__global__ __cluster_dims__(2, 1, 1) void", "__global__ void __cluster_dims__(2, 1, 1)"):
            with self.subTest(head):
                self.becomes(head + " k() {}", "void k() " + BODY.replace(" 0,", " {0, 2, 1, 1},") + "}); }")
        self.becomes("__global__ __cluster_dims__(N * 2) __launch_bounds__(64, 1) void k() {}",
                     "void k() " + BODY.replace(" 0,", " {64, N * 2},") + "}); }")

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


class Functions(RewriterTest):
    def test_code_of_the_host_may_use_exceptions(self):
        for source in ("void f() { try { throw 1; } catch (int) { } }", "auto g = [] { throw 1; };",
                       "__device__ void f(); void g() { throw 1; }", "__global__ void k() { } void g() { throw 1; }",
                       "__host__ __device__ int f(int n) { if (n) throw n; return n; }",
                       "__device__ __host__ void f() { throw; }", "__host__ void f() { throw 1; }",
                       "auto f = [] __host__ __device__ { throw 1; };",
                       "void f(int n) { k<<<1, 1>>>(n); if (n) throw n; }"):
            with self.subTest(source):
                self.rewritten(source)

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


SECTION = ' __attribute__((section("vgpu_symbols")))'


def opened(name):
    """The code that the rewriter inserts at the begin of a body that names a device variable."""
    return "{ auto& vgpu_at_%s = %s; { [[maybe_unused]] auto& %s = ::vgpu::on_this_gpu(vgpu_at_%s); {" % ((name,) * 4)


class Variables(RewriterTest):
    def test_variables_of_the_device_come_into_their_section(self):
        for before, after in (
                ("__constant__ float t[16];", "float t[16]~;"), ("__device__ int x;", "int x~;"),
                ("static __device__ int x[4][2] = {1, 2};", "static int x[4][2]~ = {1, 2};"),
                ("__device__ A<int> x{1};", "A<int> x~{1};"), ("__device__ int x(3);", "int x~(3);"),
                ('__device__ A x("a");', 'A x~("a");'), ("__device__ int (*x)(int);", "int (*x)(int)~;"),
                ("__device__ A<int, 3, (1 > 0)> x;", "A<int, 3, (1 > 0)> x~;"),
                ("__device__ int x, y[2], z = f(1, 2), w;", "int x~, y[2]~, z~ = f(1, 2), w~;"),
                ("[[maybe_unused]] __device__ int x;", "[[maybe_unused]] int x~;"), ("int __device__ x;", "int x~;"),
                ("static __device__ __constant__ int x;", "static int x~;")):
            with self.subTest(before):
                self.becomes(before, after.replace("~", SECTION))

    def test_others_only_lose_the_words(self):
        for before in ("__device__ constexpr int x = f(1);", "__constant__ const float x[] = {1};",
                       "extern __device__ int x;", "__managed__ int x;", "__device__ __managed__ int x[4];"):
            with self.subTest(before):
                self.becomes(before, re.sub("__(device|constant|managed)__ ?", "", before))

    def test_code_that_names_them_finds_its_gpus(self):
        declared = "__device__ int x; "
        kept = "int x" + SECTION + "; "
        for before, after in (
                ("__device__ int f() { return x; }", "int f() " + opened("x") + " return x; }}}"),
                ("__host__ __device__ int f() { return x; }", "int f() " + opened("x") + " return x; }}}"),
                ("struct A { __device__ int f() const { return x; } };",
                 "struct A { int f() const " + opened("x") + " return x; }}} };"),
                ("__global__ void k() { x = 1; }", "void k() " + BODY + opened("x")[1:] + " x = 1; }}}); }"),
                ("void f() { g([=] __device__ (int i) { x = i; }); }",
                 "void f() { g([=] (int i) " + opened("x") + " x = i; }}}); }"),
                ("__device__ int f() { return n::x + ::x; }",
                 "int f() { return ::vgpu::on_this_gpu(n::x) + ::vgpu::on_this_gpu(::x); }"),
                ("__device__ int f(A a) { return a.x + a->x; }", "int f(A a) { return a.x + a->x; }"),
                ("int f() { return x; }", "int f() { return x; }")):
            with self.subTest(before):
                self.becomes(declared + before, kept + after)

    def test_dynamic_shared_memory_outside_of_functions(self):
        self.becomes("extern __shared__ __align__(16) T* s[]; __device__ T* f() { return s[0]; }",
                     "[[maybe_unused]] static ::vgpu::FileShared<T*> s ; T* f() " + opened("s") + " return s[0]; }}}")

    def test_casts_of_kernels_in_calls_go(self):
        self.becomes("auto e = cudaLaunchCooperativeKernel((void*)k<int>, 1, 2, a); "
                     "cudaLaunchKernel((const void *) &k, 1, 2, a);",
                     "auto e = cudaLaunchCooperativeKernel( k<int>, 1, 2, a); cudaLaunchKernel( &k, 1, 2, a);")
        self.stays("auto e = cudaLaunchKernel(k, 1, 2, a); int cudaLaunchKernel; f((void*)k);")


class Notes(RewriterTest):
    STEP = "v[i] += v[i + 32]; v[i] += v[i + 16];"

    def noted(self, source):
        return "vgpu_note" in self.rewritten(source)

    def test_reductions_that_count_on_lock_step(self):
        for source in ("__device__ void f(volatile int* v, int i) { %s }",
                       "template <int N> __device__ void f(volatile float *v, int i) { if (N > 32) %s }",
                       "__global__ void k(int i) { __shared__ volatile int v[64]; %s }",
                       "__global__ void k(int i) { extern __shared__ int s[]; volatile int* v = s; __syncthreads(); %s }",
                       "__global__ void k(int i, int sum) { __shared__ volatile int v[64]; v[i] = sum = sum + v[i + 16]; %s }"):
            with self.subTest(source):
                self.assertTrue(self.noted(source % self.STEP))

    def test_others(self):
        for source in ("__device__ void f(volatile int* v, int i) { %s __syncwarp(); }",
                       "__device__ void f(int* v, int i) { %s }", "void f(volatile int* v, int i) { %s }",
                       "__global__ void k(volatile int* o, int i) { __shared__ int v[64]; for (;;) { %s __syncthreads(); } }",
                       "__device__ void f(volatile int* v, int i) { v[i] = 1; int x = v[i + 1]; }"):
            with self.subTest(source):
                self.assertFalse(self.noted(source.replace("%s", self.STEP)))


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

class Refusals(unittest.TestCase):
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


for message_, sources in REFUSED.items():
    for case, source_ in sources.items():
        setattr(Refusals, "test_refuses_" + case, refusal_test(source_, message_))

if __name__ == "__main__":
    run_tests()
