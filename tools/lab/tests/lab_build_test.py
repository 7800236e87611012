#!/usr/bin/env python3
"""Tests of ./lab with the real CMake, ninja and g++, on a repository of two small programs: two calls at once, signals, and
names of folders."""
import sys
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402

# Like the real one: programs of chapters, and a step that runs in each build and usually finds no change.
CMAKE = r"""
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
include(cmake/Paths.cmake)
enable_language(CXX)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO -O0)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
include(Link)
include(Version)
add_library(common STATIC)
target_include_directories(common PUBLIC include)
overlap_add_version(common)
foreach(chapter 01_first 02_second)
  set_source_files_properties(chapters/${chapter}/main.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
  add_executable(${chapter} chapters/${chapter}/main.cu)
  target_link_libraries(${chapter} PRIVATE common)
endforeach()
"""
PROGRAM = r"""
#include <cstdio>
#include <unistd.h>
int main(int count, char**) {
  std::puts("begins");
  std::fflush(stdout);
  if (count > 1) sleep(3);
  std::puts("ends");
}
"""


class BuildTest(FolderTest):
    folder_name = "repository"

    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder / self.folder_name
        for name in ("tools", "cmake", "course"):
            shutil.copytree(REPOSITORY / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("lab", "CMakePresets.json"):
            shutil.copy(REPOSITORY / name, self.root)
        self.write(self.root / "CMakeLists.txt", CMAKE)
        for chapter in ("01_first", "02_second"):
            self.source(chapter, PROGRAM)
        (self.root / ".deps").symlink_to(REPOSITORY / ".deps")
        included, = re.findall(r'#include "(.*)"', (REPOSITORY / "cmake/Version.cmake").read_text(encoding="utf-8"))
        self.write(self.root / "include" / included, "#include <string_view>\nnamespace overlap { std::string_view commit(); }\n")

    def source(self, chapter: str, text: str) -> pathlib.Path:
        return self.write(self.root / "chapters" / chapter / "main.cu", text)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [str(self.root / "lab"), *arguments, "--backend", "virtual"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.__exit__, None, None, None)
        return process

    def lab(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=100)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def assert_well(self, result: "subprocess.CompletedProcess[str]") -> None:
        self.assertEqual((result.returncode, result.stdout), (0, "begins\nends\n"), result.stderr)

    def steps(self) -> List[str]:
        """The steps of the last build."""
        log = (self.root / "build/virtual/lab.log").read_text(encoding="utf-8").splitlines()
        return [line for line in log if "Building" in line or "Linking" in line]


class AtOnceTest(BuildTest):
    def test_all_end_well(self) -> None:
        for _ in range(2):  # first a new build; then each call relinks a program that another call may be starting
            runs = [self.start("run", "01") for _ in range(4)]
            for run in runs:
                output, errors = run.communicate(timeout=100)
                self.assertEqual((run.returncode, output), (0, "begins\nends\n"), errors)
            self.source("01_first", PROGRAM + "// changed\n")

    def test_the_second_says_that_it_waits(self) -> None:
        runs = [self.start("run", "01"), self.start("run", "02")]
        errors = "".join(run.communicate(timeout=100)[1] for run in runs)
        self.assertEqual(errors.count("another ./lab is building in build/virtual; this one waits"), 1, errors)
        self.assertEqual([run.returncode for run in runs], [0, 0])

    def test_a_source_without_main_is_named(self) -> None:
        self.source("01_first", "void solve() {}\n")
        result = self.lab("run", "01")
        self.assertIn("no source has a main(): name the file that has one behind --\n", result.stderr)
        self.assertEqual(result.returncode, 2)

    def test_a_program_that_runs_is_not_disturbed(self) -> None:
        self.lab("run", "01")
        first = self.start("run", "01", "slowly")
        self.assertEqual(first.stdout.readline() if first.stdout else "", "begins\n")
        self.source("01_first", PROGRAM.replace("ends", "has changed"))
        second = self.lab("run", "01")
        self.assertEqual(second.stdout, "begins\nhas changed\n", second.stderr)
        self.assertIsNone(first.poll(), "the build waited for a program that runs")
        self.assertEqual(first.communicate(timeout=20)[0], "ends\n")
        self.assertEqual(first.returncode, 0)

    def test_a_program_is_whole_at_any_time(self) -> None:
        self.lab("run", "01")
        program = self.root / "build/virtual/bin/01_first"
        # A linker that pauses between the start and the end of its work, by the names of both that the build may take.
        slow = self.root / "slow"
        slow.mkdir()
        for linker in (slow / "ld", slow / "ld.gold"):
            linker.write_text("#!/bin/sh\nwhile [ $# -gt 0 ]; do\n"
                              'case $1 in -o) rm -f "$2"; : > "$2" ;; esac; shift\ndone\n'
                              f'touch "{slow}/begun"\nsleep 2\n', encoding="utf-8")
            linker.chmod(0o755)
        cache = subprocess.run(["cmake", f"-DCMAKE_EXE_LINKER_FLAGS=-B{slow}", self.root / "build/virtual"],
                               capture_output=True, check=False)
        self.assertEqual(cache.returncode, 0, cache.stderr)
        builder = subprocess.Popen(["cmake", "--build", self.root / "build/virtual", "--target", "01_first"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (slow / "begun").exists() and builder.poll() is None:
            time.sleep(0.01)
        run = subprocess.run(["sh", "-c", f"'{program}'"], capture_output=True, text=True, check=False)
        self.assertIsNone(builder.poll())
        self.assertEqual((run.returncode, run.stdout), (0, "begins\nends\n"), run.stderr)
        builder.wait()


class SignalTest(BuildTest):
    def descendants(self) -> List[str]:
        """The commands of all processes that work in the test's folder."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(self.root) in os.readlink(folder / "cwd"):
                    found.append((folder / "cmdline").read_text(encoding="utf-8").split("\0")[0])
            except OSError:
                pass
        return [pathlib.Path(name).name for name in found]

    def test_ends_cmake_ninja_and_compilers(self) -> None:
        # A source that takes g++ a minute.
        self.source("01_first", "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
                    "constexpr int value = f(60);\nint main() { return value; }\n")
        text = (self.root / "CMakeLists.txt").read_text(encoding="utf-8")
        (self.root / "CMakeLists.txt").write_text(
            text.replace('"-x;c++"', '"-x;c++;-fconstexpr-ops-limit=99999999999;-fconstexpr-cache-depth=1"'),
            encoding="utf-8")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                run = self.start("run", "01")
                deadline = time.monotonic() + 60
                while "cc1plus" not in self.descendants() or not self.compiles():
                    self.assertIsNone(run.poll(), "it ended by itself")
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.05)
                run.send_signal(number)
                run.communicate(timeout=20)
                self.assertEqual(run.returncode, -number)
                # Ninja ends a moment after cmake, for which ./lab waits.
                deadline = time.monotonic() + 10
                while self.descendants() and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertEqual(self.descendants(), [])

    def compiles(self) -> bool:
        """True once configuring has ended, so that every running compiler is one of the build."""
        log = self.root / "build/virtual/lab.log"
        return log.exists() and "Build files have been written" in log.read_text(encoding="utf-8")

    def test_ends_a_program_of_the_tour(self) -> None:
        self.source("01_first", PROGRAM.replace("sleep(3)", "sleep(15)"))  # longer than a busy machine keeps a test waiting
        run = self.start("run", "--", "slowly")
        self.assertEqual(run.stdout.readline() if run.stdout else "", "begins\n")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.communicate(timeout=20)[0], "")
        self.assertEqual(run.returncode, -signal.SIGTERM)


class FolderNameTest(BuildTest):
    folder_name = "größer, 100% (copy) @2"

    def test_is_not_built_again(self) -> None:
        self.assert_well(self.lab("run", "01"))
        self.assertNotEqual(self.steps(), [])
        self.assert_well(self.lab("run", "01"))
        self.assertEqual(self.steps(), [])

    def test_is_built_again_if_a_header_changes(self) -> None:
        self.source("01_first", PROGRAM + '#include "beside.hpp"\n')
        header = self.root / "chapters/01_first/beside.hpp"
        header.touch()
        self.assert_well(self.lab("run", "01"))
        header.write_text("#include <cstdlib>\n", encoding="utf-8")
        self.assert_well(self.lab("run", "01"))
        self.assertEqual(len(self.steps()), 2, self.steps())

    def test_what_ninja_cannot_read_is_refused(self) -> None:
        for odd in "\"#$&'*;<>?[\\]^`|":
            with self.subTest(odd):
                root, self.root = self.root, self.root.rename(self.root.with_name(f"a{odd}b"))
                refused = self.lab("run", "01")
                sentence = f"CMake and ninja cannot build what has {odd} in its path: {self.root}"
                self.assertEqual((refused.returncode, refused.stdout, refused.stderr), (2, "", f"lab: {sentence}\n"))
                by_hand = subprocess.run(["cmake", "-S", self.root, "-B", root.with_name("build"), "--fresh", "-G", "Ninja"],
                                         capture_output=True, text=True, check=False)
                self.assertNotEqual(by_hand.returncode, 0)
                if odd != "\\":  # CMake treats it as a slash
                    self.assertIn(f"cannot build what has {odd} in its path", " ".join(by_hand.stderr.split()))
                self.root = self.root.rename(root)


if __name__ == "__main__":
    unittest.main()
