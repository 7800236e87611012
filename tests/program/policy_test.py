#!/usr/bin/env python3
"""Rules that hold for the whole repository, checked on its text."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from typing import Iterator, List, Sequence, Tuple

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".deps", "build", "__pycache__"}

# Chapters compile unchanged for virtual and for real GPUs, so they must not look at which of the two it is.
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|else)\b")

# Ranks are fibers of one thread on virtual GPUs: who blocks that thread stops all of them.
BLOCKING = re.compile(r"\b(?:std::(?:\w*mutex|condition_variable\w*|barrier|latch|\w*semaphore)|thread_local)\b")

# The folders that every Linux system has. Any other absolute path is one of somebody's own machine.
SYSTEM_FOLDERS = {"bin", "dev", "etc", "lib", "lib64", "opt", "proc", "sbin", "sys", "tmp", "usr", "var"}
INVENTED = {"a", "nothing", "nowhere", "missing"}  # folders that tests make up
ABSOLUTE = re.compile(r"""(?:^|[\s"'`=(\[,:])/([A-Za-z][\w.-]*)/\w""")
UPWARD = re.compile(r"""(?:^|[\s"'`=(\[<])((?:\.\./)+[\w./-]*)""")


def files() -> List[pathlib.Path]:
    """The repository's files: git's list, or without git all but the build's."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY,
                            capture_output=True, check=False) if shutil.which("git") else None
    if listed is not None and listed.returncode == 0:
        found = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    else:
        found = [path for path in REPOSITORY.rglob("*") if not NOT_OURS & set(path.relative_to(REPOSITORY).parts)]
    return [path for path in found if path.is_file()]


def lines(path: pathlib.Path) -> Iterator[Tuple[int, str]]:
    """The numbered lines of a text file; none of a binary one."""
    data = path.read_bytes()
    if b"\0" not in data:
        yield from enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1)


def conditionals(paths: List[pathlib.Path]) -> List[str]:
    """The lines that compile on one condition only, as file:line: text."""
    return [f"{path}:{number}: {text}" for path in paths for number, text in lines(path) if CONDITIONAL.match(text)]


def blocking(paths: List[pathlib.Path]) -> List[str]:
    """The lines of code that block an operating system thread, or belong to one, as file:line: text."""
    return [f"{path}:{number}: {text}" for path in paths for number, text in lines(path)
            if BLOCKING.search(text.split("//")[0])]


def foreign_paths(paths: List[pathlib.Path], root: pathlib.Path) -> List[str]:
    """The lines that name a path outside the repository `root`, as file:line: path."""
    found = []
    for path in paths:
        for number, text in lines(path):
            names = [f"/{folder}/" for folder in ABSOLUTE.findall(text) if folder not in SYSTEM_FOLDERS | INVENTED]
            for upward in UPWARD.findall(text):
                target = pathlib.Path(*path.parent.relative_to(root).parts)
                depth = len(target.parts) - upward.count("../")
                names += [upward] if depth < 0 else []
            found += [f"{path}:{number}: {name}" for name in names]
    return found


ROOMS = ("gpu", "data", "bench", "program")  # of common/, from the lowest up
LESSON_ROOMS = ("gpu", "data")  # what a lesson may use: it measures nothing, and reads no command line
INCLUDE = re.compile(r'\s*#\s*include\s+"(?:overlap/)?(\w+)/[\w/]+\.hpp"')


def rooms_beyond(paths: List[pathlib.Path], allowed: Sequence[str]) -> List[str]:
    """The lines that include a header of a room of common/ that is not allowed, as file:line: room."""
    found = []
    for path in paths:
        for number, text in lines(path):
            include = INCLUDE.match(text)
            if include and include[1] in ROOMS and include[1] not in allowed:
                found.append(f"{path}:{number}: {include[1]}")
    return found


class RepositoryTest(unittest.TestCase):
    def test_chapters_have_no_conditional_compilation(self) -> None:
        sources = [path for path in files()
                   if REPOSITORY / "chapters" in path.parents and path.suffix in (".cu", ".cuh")]
        self.assertTrue(sources)
        self.assertEqual(conditionals(sources), [])

    def test_ranks_wait_for_each_other_only_by_what_knows_them(self) -> None:
        apart = (REPOSITORY / "common" / "src" / "gpu" / "backend", REPOSITORY / "common" / "virtual_gpu")
        sources = [path for path in files() if path.suffix in (".cu", ".cuh", ".cpp", ".hpp")
                   and {REPOSITORY / "chapters", REPOSITORY / "common"} & set(path.parents)
                   and not set(apart) & set(path.parents)]
        self.assertGreater(len(sources), 30)
        self.assertEqual(blocking(sources), [])

    def test_rooms_include_downwards_only(self) -> None:
        for height, room in enumerate(ROOMS):
            sources = [path for folder in ("common/include/overlap", "common/src")
                       for path in (REPOSITORY / folder / room).rglob("*pp")]
            self.assertGreater(len(sources), 10)
            self.assertEqual(rooms_beyond(sources, ROOMS[:height + 1]), [])

    def test_lessons_use_the_lower_rooms_alone(self) -> None:
        lessons = list((REPOSITORY / "chapters").glob("*/*.cuh"))
        self.assertGreater(len(lessons), 20)
        self.assertEqual(rooms_beyond(lessons, LESSON_ROOMS), [])

    def test_no_path_outside_the_repository(self) -> None:
        ours = [path for path in files() if path != pathlib.Path(__file__).resolve()]
        self.assertGreater(len(ours), 10)
        self.assertEqual(foreign_paths(ours, REPOSITORY), [])


class RulesTest(unittest.TestCase):
    """The rules themselves: what they must find, and what they must leave alone."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        self.file = self.root / "docs" / "page.md"

    def test_conditionals(self) -> None:
        for text in ("#if 1", "#ifdef X", "  # ifndef X", "#else", "#elif X"):
            self.file.write_text(f"int a;\n{text}\n")
            self.assertEqual(conditionals([self.file]), [f"{self.file}:2: {text}"])
        self.file.write_text("#pragma once\n#include <if>\nif (a) {}\n// #if\n")
        self.assertEqual(conditionals([self.file]), [])

    def test_blocking(self) -> None:
        for text in ("std::mutex m;", "std::shared_mutex m;", "std::barrier b(2);", "std::condition_variable_any c;",
                     "thread_local int x;", "std::counting_semaphore<2> s(0);", "const std::latch l(3);  // once"):
            self.file.write_text(text)
            self.assertEqual(blocking([self.file]), [f"{self.file}:1: {text}"])
        self.file.write_text("// no std::mutex here\nrank.barrier();\nstd::atomic<int> x;\n")
        self.assertEqual(blocking([self.file]), [])

    def test_rooms_beyond(self) -> None:
        for text in ('#include "overlap/bench/timing.hpp"', '#include "program/utc_now.hpp"', ' # include "bench/x.hpp"'):
            self.file.write_text(text)
            self.assertEqual(len(rooms_beyond([self.file], ("gpu", "data"))), 1, text)
        for text in ('#include "overlap/gpu/check.hpp"', "#include <bench/x.hpp>", '// #include "bench/x.hpp"'):
            self.file.write_text(text)
            self.assertEqual(rooms_beyond([self.file], ("gpu", "data")), [], text)

    def test_foreign_paths(self) -> None:
        for text in ("see /home/someone/notes", '"/root/x"', "cd /srv/data", "(../../other/x)", "../../../a"):
            self.file.write_text(text)
            self.assertEqual(len(foreign_paths([self.file], self.root)), 1, text)
        for text in ("/usr/local/cuda/bin", "../lab", "https://host.org/home/page", "a/b/c", "/dev/null", "1 / 2 / 3",
                     "$root/home/x", "// comment/with/slashes"):
            self.file.write_text(text)
            self.assertEqual(foreign_paths([self.file], self.root), [], text)


if __name__ == "__main__":
    unittest.main()
