#!/usr/bin/env python3
"""compile.py with a real g++: the rewriter's cases run; lines are the .cu file's; dependencies and failures are right.

Needs g++ and Python; the test of a whole project needs CMake and Ninja. Uses rewriter/stub instead of virtual GPUs.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "rewriter"))
from support import HERE, REPOSITORY, STUB, TOOLS, run_tests  # noqa: E402

GPP = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-g", "-isystem", str(STUB), "-I", str(HERE)]
KERNEL = '#include <cuda_runtime.h>\n__global__ void kernel(int* x) { *x = 1; }\n'


class LauncherTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="overlap ")  # the space is intended
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_command(self, *command, **options):
        return subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True,
                              check=False, **options)

    def launcher(self, *arguments):
        return self.run_command(sys.executable, TOOLS / "compile.py", GPP, *arguments)

    def compile(self, source, *more):
        """Writes x.cu and compiles it to x.o."""
        (self.folder / "x.cu").write_text(source)
        return self.launcher(*FLAGS, *more, "-x", "c++", "-c", "x.cu", "-o", "x.o")

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())


class Cases(LauncherTest):
    """The programs of rewriter/ pass."""

    def test_programs_are_right(self):
        for name in ("launches", "kernels", "shared", "functions"):
            with self.subTest(name):
                compiled = self.launcher(*FLAGS, "-x", "c++", "-c", HERE / (name + ".cu"), "-o", "x.o")
                self.assertEqual((compiled.returncode, compiled.stderr), (0, ""))
                self.assertEqual(self.launcher("x.o", "-o", "x").returncode, 0)
                ran = self.run_command(self.folder / "x")
                self.assertEqual((ran.returncode, ran.stdout), (0, ""))

    def test_an_expectation_that_fails_is_seen(self):
        text = (HERE / "kernels.cu").read_text().replace("others.value() == 6", "others.value() == 7")
        self.assertEqual(self.compile(text).returncode, 0)
        self.launcher("x.o", "-o", "x")
        ran = self.run_command(self.folder / "x")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("does not hold: others.value() == 7", ran.stdout)

    def test_kernel_names_bounds_and_device_lambdas(self):
        source = """#include <cstring>
            #include <cuda_runtime.h>
            template <int N, typename F>
            __global__ void __launch_bounds__(N * 2) call(F f) { f(); }
            int main() {
              int bound = 0;
              const char* name = nullptr;
              call<64><<<1, 1>>>([&] __device__ { bound = vgpu::launch.thread_bound; name = vgpu::launch.kernel; });
              return bound == 128 && std::strncmp(name, "void call(F) [with int N = 64", 29) == 0 ? 0 : 1;
            }"""
        self.assertEqual(self.compile(source).stderr, "")
        self.launcher("x.o", "-o", "x")
        self.assertEqual(self.run_command(self.folder / "x").returncode, 0)

    def test_one_header_in_two_units(self):
        """An inline function's shared variables are the same in both units: the linker keeps one copy."""
        units = {
            "a.cuh": """#include <cuda_runtime.h>
                inline __device__ char* other() { __shared__ char a[1]; return a; }""",
            "b.cuh": """#include <cuda_runtime.h>
                inline __device__ int* both() { __shared__ int a[9]; return a; }
                inline __global__ void k(int* x) { both()[8] = 1; *x = both()[8]; }""",
            "one.cu": """#include "a.cuh"
                #include "b.cuh"
                int one() { int x = 0; k<<<1, 1>>>(&x); return x + (other() ? 1 : 0); }""",
            "two.cu": """#include "b.cuh"
                int one();
                int main() { int x = 0; k<<<1, 1>>>(&x); return x == 1 && one() == 2 ? 0 : 1; }"""}
        for name, text in units.items():
            (self.folder / name).write_text(text + "\n")
        for name in ("one", "two"):
            self.assertEqual(self.launcher(*FLAGS, "-c", name + ".cu", "-o", name + ".o").stderr, "")
        tables = [self.run_command("nm", name + ".o").stdout.splitlines() for name in ("one", "two")]
        symbols = [{line.split()[-1] for line in table if "vgpu_shared" in line} for table in tables]
        self.assertTrue(symbols[1])
        self.assertLessEqual(symbols[1], symbols[0])
        self.assertEqual(self.launcher("one.o", "two.o", "-o", "x").returncode, 0)
        self.assertEqual(self.run_command(self.folder / "x").returncode, 0)


class Lines(LauncherTest):
    """Every line number in a message is the .cu file's."""

    MULTI_LINE = KERNEL + """int f(int* x, int n) {
      kernel<<<1,
               2>>>(
          x);
      __LAST__
      return 1 / n;
    }
    """

    def test_error_behind_a_launch_over_lines(self):
        result = self.compile(self.MULTI_LINE.replace("__LAST__", "wrong;"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("x.cu:7:", result.stderr)
        self.assertIn("'wrong' was not declared", result.stderr.replace("\u2018", "'").replace("\u2019", "'"))
        self.assertNotIn(".ii", result.stderr)

    def test_error_in_configuration_and_arguments(self):
        for line, (old, new) in {5: ("2>>>", "wrong>>>"), 6: ("x);", "wrong);")}.items():
            result = self.compile(self.MULTI_LINE.replace("__LAST__", "").replace(old, new))
            self.assertEqual(result.returncode, 1)
            self.assertIn("x.cu:%d:" % line, result.stderr)

    def test_error_in_kernel_and_in_header(self):
        result = self.compile("#include <cuda_runtime.h>\n__global__ void k(int* x) {\n  *x = wrong;\n}\n")
        self.assertIn("x.cu:3:", result.stderr)
        (self.folder / "h.cuh").write_text("#pragma once\n\n__global__ void k(int* x) { *x = wrong; }\n")
        result = self.compile('#include <cuda_runtime.h>\n#include "h.cuh"\n')
        self.assertIn("h.cuh:3:", result.stderr)
        self.assertIn("x.cu:2:", result.stderr)

    def test_warning_is_an_error_where_asked_for(self):
        result = self.compile("int f() {\n  int unused;\n  return 1;\n}\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("x.cu:2:", result.stderr)

    def test_sanitizer(self):
        source = self.MULTI_LINE.replace("__LAST__", "") + "int main() { int x; return f(&x, x - x); }\n"
        self.assertEqual(self.compile(source, "-fsanitize=undefined", "-Wno-uninitialized").stderr, "")
        self.assertEqual(self.launcher("x.o", "-o", "x", "-fsanitize=undefined").returncode, 0)
        self.assertIn("x.cu:8:", self.run_command(self.folder / "x").stderr)

    def test_debugger(self):
        self.assertEqual(self.compile(self.MULTI_LINE.replace("__LAST__", "")).stderr, "")
        lines = self.run_command("readelf", "--debug-dump=decodedline", "x.o").stdout
        numbers = {row.split()[1] for row in lines.splitlines() if row.startswith("x.cu ")}
        self.assertLessEqual({"2", "3", "8", "9"}, numbers)
        self.assertNotIn(".ii", lines)
        self.assertNotIn(".ii", self.run_command("readelf", "--debug-dump=info", "x.o").stdout)


class Launcher(LauncherTest):
    """Dependencies, failures, and commands that are passed through."""

    def test_rewritten_unit_stays_beside_the_object(self):
        self.assertEqual(self.compile(KERNEL).returncode, 0)
        self.assertEqual(self.files(), ["x.cu", "x.o", "x.o.ii"])
        self.assertIn("::vgpu::launch_kernel", (self.folder / "x.o.ii").read_text())

    def test_cuda_runtime_is_implied(self):
        self.assertEqual(self.compile("__global__ void kernel(int* x) { *x = 1; }\n").stderr, "")

    def test_a_question_for_the_architecture_is_noted(self):
        asks = KERNEL + "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 600\n#define ANSWER 1\n#endif\n"
        for options, answer in (((), "undefined here"),
                                (("-D__CUDA_ARCH__=900",), "defined here for the code of the host, too")):
            self.compile(asks, *options)
            self.assertIn("x.cu:3: asks for __CUDA_ARCH__, which is " + answer, (self.folder / "x.o.ii").read_text())
        self.compile(KERNEL)
        self.assertNotIn("vgpu_note_", (self.folder / "x.o.ii").read_text())

    def test_a_header_of_a_toolkit_is_refused_by_name(self):
        toolkit = self.folder / "toolkit"
        (toolkit / "thrust").mkdir(parents=True)
        for name in ("cuda_runtime_api.h", "curses.h"):
            (toolkit / name).touch()
        for name in ("cudnn.h", "thrust/strange.h"):
            (toolkit / name).write_text("struct dim3 { int other; };\n")
            refused = self.compile(f"#include <{name}>\nint main() {{}}\n", "-isystem", toolkit)
            self.assertEqual(refused.returncode, 1)
            self.assertRegex(refused.stderr, rf"^{toolkit}/{name} is a header of CUDA's toolkit that virtual GPUs do not have: ")
        self.assertEqual(self.compile("#include <curses.h>\nint main() {}\n", "-isystem", toolkit).returncode, 0)

    def test_precompiled_header(self):
        (self.folder / "first.hxx").write_text("#include <cuda_runtime.h>\ninline int precompiled() { return 7; }\n")
        header = self.launcher(*FLAGS, "-x", "c++-header", "first.hxx", "-o", "first.hxx.gch")
        self.assertEqual((header.returncode, header.stderr), (0, ""))
        (self.folder / "first.hxx").write_text("#error the header itself is read\n")
        source = KERNEL + "int main() { return precompiled() == 7 ? 0 : 1; }\n"
        compiled = self.compile(source, "-Winvalid-pch", "-include", "first.hxx")
        self.assertEqual((compiled.returncode, compiled.stderr), (0, ""))
        self.assertEqual(self.launcher("x.o", "-o", "x").returncode, 0)
        self.assertEqual(self.run_command(self.folder / "x").returncode, 0)
        self.assertIn("::vgpu::launch_kernel", (self.folder / "x.o.ii").read_text())

    def test_refusal(self):
        self.assertEqual(self.compile(KERNEL).returncode, 0)
        result = self.compile(KERNEL + "void f() { asm(\"nop\"); }\n")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "x.cu:3: error: inline PTX is not supported on virtual GPUs\n")
        self.assertEqual(self.files(), ["x.cu"])

    def test_no_object_after_an_error(self):
        for source in ('#include "missing.h"\n', "wrong\n"):
            self.assertEqual(self.compile(KERNEL).returncode, 0)
            result = self.compile(source)
            self.assertEqual(result.returncode, 1)
            self.assertIn("x.cu:1:", result.stderr)
            self.assertNotIn("x.o", self.files())

    def test_object_that_cannot_be_written(self):
        (self.folder / "x.cu").write_text(KERNEL)
        result = self.launcher(*FLAGS, "-c", "x.cu", "-o", "missing/x.o")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "compile.py: missing/x.o.ii: No such file or directory\n")

    def test_compiler_that_is_missing(self):
        for arguments in (["-c", "x.cu"], ["-c", "x.cpp"]):
            result = self.run_command(sys.executable, TOOLS / "compile.py", "no-such-compiler", *arguments)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, "compile.py: no-such-compiler: No such file or directory\n")

    def test_dependencies(self):
        (self.folder / "h.cuh").write_text("#pragma once\n")
        self.assertEqual(self.compile('#include "h.cuh"\n' + KERNEL, "-MD", "-MT", "dir/x.o", "-MF",
                                      "deps").returncode, 0)
        rules = (self.folder / "deps").read_text().replace("\\\n", " ").splitlines()
        self.assertTrue(all(rule.startswith("dir/x.o: ") for rule in rules), rules)
        names = " ".join(rules).split()
        for name in ("x.cu", "h.cuh", str(STUB / "cuda_runtime.h"), str(TOOLS / "rewrite.py"),
                     str(TOOLS / "cuda_tokens.py"), str(TOOLS / "device_code.py"),
                     str(TOOLS / "cuda_syntax.py"), str(TOOLS / "compile.py")):
            self.assertIn(name, names)

    def test_dependencies_are_named_after_the_object(self):
        (self.folder / "x.cu").write_text(KERNEL)
        self.assertEqual(self.launcher(*FLAGS, "-MMD", "-MP", "-c", "x.cu", "-oy.o").returncode, 0)
        self.assertEqual(self.files(), ["x.cu", "y.d", "y.o", "y.o.ii"])
        rules = (self.folder / "y.d").read_text()
        self.assertTrue(rules.startswith("y.o: x.cu"), rules)
        self.assertNotIn("cuda_runtime.h", rules)

    def test_object_without_a_name(self):
        (self.folder / "dir").mkdir()
        (self.folder / "dir" / "x.cu").write_text(KERNEL)
        self.assertEqual(self.launcher(*FLAGS, "-c", "dir/x.cu").returncode, 0)
        self.assertEqual(self.files(), ["dir", "x.o", "x.o.ii"])

    def test_included_by_option_once(self):
        (self.folder / "h.cuh").write_text("struct OnlyOnce {};\n#define NUMBER 3\n")
        self.assertEqual(self.compile(KERNEL + "static_assert(NUMBER == 3);\n", "-include", "h.cuh").stderr, "")

    def test_other_bytes_pass(self):
        (self.folder / "x.cu").write_bytes(b'static_assert(sizeof("\xff\xc3\xb6") == 4);\r\n')
        self.assertEqual(self.launcher(*FLAGS, "-c", "x.cu", "-o", "x.o").stderr, "")
        self.assertIn(b'"\xff\xc3\xb6"', (self.folder / "x.o.ii").read_bytes())

    def test_two_sources_are_refused(self):
        result = self.launcher("-c", "a.cu", "b.cu")
        self.assertEqual((result.returncode, result.stderr), (1, "compile.py: one .cu file a call, not a.cu b.cu\n"))

    def test_other_commands_pass_through(self):
        (self.folder / "x.cpp").write_text("int main() { return 7; }\n")
        self.assertEqual(self.launcher("-c", "x.cpp", "-o", "x.o").returncode, 0)
        self.assertEqual(self.launcher("x.o", "-o", "x").returncode, 0)
        self.assertEqual(self.run_command(self.folder / "x").returncode, 7)
        self.assertEqual(self.files(), ["x", "x.cpp", "x.o"])
        self.assertEqual(self.launcher("--version").stdout, self.run_command(GPP, "--version").stdout)
        self.assertEqual(self.run_command(sys.executable, TOOLS / "compile.py", "sh", "-c", "exit 9").returncode, 9)
        (self.folder / "x.cu").write_text(KERNEL)
        self.assertIn("__global__", self.launcher(*FLAGS, "-E", "-x", "c++", "x.cu").stdout)

    def test_no_command(self):
        self.assertEqual(self.run_command(sys.executable, TOOLS / "compile.py").returncode, 2)


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(OVERLAP_BACKEND virtual)
include("%s/cmake/Gpu.cmake")
add_library(virtual_gpu STATIC coverage.cpp)
target_include_directories(virtual_gpu SYSTEM INTERFACE stub)
add_executable(x x.cu)
overlap_gpu_sources(x)
target_compile_options(x PRIVATE -Wall -Wextra -Werror)
"""


class Projects(LauncherTest):
    """The launcher under CMake, set up by cmake/Gpu.cmake."""

    def build(self):
        result = self.run_command("cmake", "--build", "build", "--verbose")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def status(self):
        return self.run_command(self.folder / "build" / "x").returncode

    def test_a_project_is_built_again_when_its_sources_or_the_rewriter_change(self):
        tools = self.folder / "virtual_gpu" / "tools"
        shutil.copytree(TOOLS, tools, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(STUB, self.folder / "stub")
        (self.folder / "CMakeLists.txt").write_text(PROJECT % REPOSITORY)
        (self.folder / "coverage.cpp").write_text('extern "C" void __sanitizer_cov_trace_pc() {}\n')
        (self.folder / "value.cuh").write_text("constexpr int kValue = 3;\n")
        (self.folder / "x.cu").write_text('#include <cuda_runtime.h>\n#include "value.cuh"\n'
                                          "__global__ void k(int* x) { *x = kValue; }\n"
                                          "int main() { int x = 0; k<<<1, 1>>>(&x); return x; }\n")
        configured = self.run_command("cmake", "-S", ".", "-B", "build", "-G", "Ninja")
        self.assertEqual(configured.returncode, 0, configured.stderr)
        compiles = "compile.py"  # in the commands that --verbose prints
        self.assertIn(compiles, self.build())
        self.assertEqual(self.status(), 3)
        self.assertNotIn(compiles, self.build())
        (self.folder / "value.cuh").write_text("constexpr int kValue = 4;\n")
        self.assertIn(compiles, self.build())
        self.assertEqual(self.status(), 4)
        neither = {tools / "race_runs.py", tools / "device_calls.py"}  # starts programs; checks sources, compiles none
        for tool in sorted(set(tools.glob("*.py")) - neither):
            tool.touch()
            self.assertIn(compiles, self.build(), "touching %s must rebuild" % tool.name)
            self.assertNotIn(compiles, self.build())


if __name__ == "__main__":
    run_tests()
