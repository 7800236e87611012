#!/usr/bin/env python3
"""Rules that hold for the whole repository, checked on its text."""
import pathlib
import re
import shutil
import subprocess
import unittest
from typing import Iterable, Iterator, List, Sequence, Tuple

from support import REPOSITORY, FolderTest
NOT_OURS = {".git", ".deps", "build", "__pycache__", "work"}

# Chapters compile unchanged for virtual and for real GPUs, so they must not look at which of the two it is.
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|else)\b")

# Ranks are fibers of one thread on virtual GPUs: who blocks that thread stops all of them.
BLOCKING = re.compile(r"\b(?:std::(?:\w*mutex|condition_variable\w*|barrier|latch|\w*semaphore)|thread_local)\b")

# The folders that every Linux system has. Any other absolute path is one of somebody's own machine.
SYSTEM_FOLDERS = {"bin", "dev", "etc", "lib", "lib64", "opt", "proc", "sbin", "sys", "tmp", "usr", "var"}
SERVICES = {"autograder"}  # Gradescope's container has it
INVENTED = {"a", "nothing", "nowhere", "missing"}  # folders that tests make up
ABSOLUTE = re.compile(r"""(?:^|[\s"'`=(\[,:])/([A-Za-z][\w.-]*)/\w""")
INCLUDE = re.compile(r"""^\s*#\s*include\s*(["<])([^">]+)""")

# The rooms of the virtual GPUs' sources, and the rooms whose headers each may include. What tells ThreadSanitizer of
# CUDA's order is one header, for all of them, and so is what the check build keeps of memory.
VIRTUAL_GPU = REPOSITORY / "virtual_gpu"
ROOMS = {"api": {"api", "libraries", "engine"}, "libraries": {"libraries", "engine"}, "engine": {"engine"},
         "race": {"race"}, "check": {"check"}}
RACE_HOOKS = "race/happens_before.hpp"
HOOKS = (RACE_HOOKS, "check/memory_state.hpp")
DEFINED_BY_ENGINE = (("engine/run_facts.cpp", "race/run_facts.hpp"),  # what reports ask the engine
                     ("engine/access_report.cpp", "check/report.hpp"), ("engine/kernel/undefined_behaviour.cpp", "check/report.hpp"))

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
            names = [f"/{folder}/" for folder in ABSOLUTE.findall(text) if folder not in SYSTEM_FOLDERS | SERVICES | INVENTED]
            for upward in UPWARD.findall(text):
                target = pathlib.Path(*path.parent.relative_to(root).parts)
                depth = len(target.parts) - upward.count("../")
                names += [upward] if depth < 0 else []
            found += [f"{path}:{number}: {name}" for name in names]
    return found


COMMON_ROOMS = ("gpu", "data", "bench", "program")  # of common/, from the lowest up
LESSON_ROOMS = ("gpu", "data")  # what a lesson may use: it measures nothing, and reads no command line
ROOM_INCLUDE = re.compile(r'\s*#\s*include\s+"(?:overlap/)?(\w+)/[\w/]+\.hpp"')


def rooms_beyond(paths: List[pathlib.Path], allowed: Sequence[str]) -> List[str]:
    """The lines that include a header of a room of common/ that is not allowed, as file:line: room."""
    found = []
    for path in paths:
        for number, text in lines(path):
            include = ROOM_INCLUDE.match(text)
            if include and include[1] in COMMON_ROOMS and include[1] not in allowed:
                found.append(f"{path}:{number}: {include[1]}")
    return found


def includes(path: pathlib.Path) -> Iterator[Tuple[int, str, bool]]:
    """The files that a source includes: line, name, and whether the name is in quotes."""
    for number, text in lines(path):
        found = INCLUDE.match(text)
        if found:
            yield number, found.group(2), found.group(1) == '"'


def includes_against_the_rooms(src: pathlib.Path, paths: List[pathlib.Path]) -> List[str]:
    """The includes of sources under `src` that lead to a room that theirs must not know, as file:line: name."""
    found = []
    for path in paths:
        here = path.relative_to(src)
        for number, name, quoted in includes(path):
            there = pathlib.PurePosixPath(name)
            if not quoted or not (src / there).is_file() or name in HOOKS:
                continue
            if (here.as_posix(), name) in DEFINED_BY_ENGINE:
                continue
            allowed = there.parts[0] in ROOMS.get(here.parts[0], set())
            # Of the libraries none knows another one; what lies beside their folders is for all.
            if there.parts[0] == "libraries" and len(there.parts) > 2 and here.parts[0] == "libraries":
                allowed = here.parts[:2] == there.parts[:2]
            if not allowed:
                found.append(f"{path}:{number}: {name}")
    return found


def includes_from_above(root: pathlib.Path, paths: List[pathlib.Path], headers: List[pathlib.Path]) -> List[str]:
    """The includes that lead out of the folder `root`, as file:line: name. `headers` are all that there are."""
    outside = [header.as_posix() for header in headers if root not in header.parents]
    found = []
    for path in paths:
        for number, name, quoted in includes(path):
            places = [root / "include", root] + ([path.parent] if quoted else [])
            inside = any((place / name).is_file() and root in (place / name).resolve().parents for place in places)
            if not inside and (quoted or any(header.endswith(f"/{name}") for header in outside)):
                found.append(f"{path}:{number}: {name}")
    return found


# Whose headers each folder may include. Its tests, a test of an assignment and the pattern of a new chapter's test may include
# those of common/ and tests/, too.
ARROWS = {"virtual_gpu": {"virtual_gpu"}, "common": {"common", "virtual_gpu"}, "examples": {"virtual_gpu"},
          "chapters": {"chapters", "common", "virtual_gpu"}, "course": {"course", "chapters", "common", "virtual_gpu"},
          "tools": {"tools", "common", "virtual_gpu"}}
ROOTS = ("common", "common/for_virtual_gpus", "chapters", "virtual_gpu", "virtual_gpu/include", "course/runner", "tests/chapters")
PYTHON_OF_TESTS = re.compile(r"^\s*(?:from|import) tests\b|\bsys\.path\b.*\btests\b")


def includes_against_the_arrows(root: pathlib.Path, paths: Iterable[pathlib.Path]) -> List[str]:
    """The includes that lead to a folder that theirs must not know, as file:line: name."""
    found = []
    for path in paths:
        here = path.relative_to(root).parts
        allowed = ARROWS[here[0]] | ({"common", "tests"} if {"tests", "assignment", "new_chapter"} & set(here[:-1]) else set())
        for number, name, _ in includes(path):
            places = [path.parent / name, *(root / folder / name for folder in ROOTS)]
            there = next((place.resolve() for place in places if place.is_file()), None)
            if there is not None and there.relative_to(root).parts[0] not in allowed:
                found.append(f"{path}:{number}: {name}")
    return found


# Lines at most (CONTRIBUTING.md, "Style"): of a source, of a lesson, of a chapter's program.
SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".h", ".py")
SOURCE_LINES, LESSON_LINES, PROGRAM_LINES = 400, 300, 80


def longer_than(most: int, paths: Iterable[pathlib.Path]) -> List[str]:
    """The files of more lines, as file: number of lines."""
    counts = {path: sum(1 for _ in lines(path)) for path in paths}
    return [f"{path}: {count}" for path, count in counts.items() if count > most]


def includes_of_experiments(paths: Iterable[pathlib.Path]) -> List[str]:
    """The includes that lead to a folder of experiments, as file:line: name."""
    return [f"{path}:{number}: {name}" for path in paths for number, name, _ in includes(path)
            if "experiments" in pathlib.PurePosixPath(name).parts]


class RepositoryTest(unittest.TestCase):
    def test_chapters_have_no_conditional_compilation(self) -> None:
        sources = [path for path in files()
                   if REPOSITORY / "chapters" in path.parents and path.suffix in (".cu", ".cuh")]
        self.assertTrue(sources)
        self.assertEqual(conditionals(sources), [])

    def test_ranks_wait_for_each_other_only_by_what_knows_them(self) -> None:
        apart = (REPOSITORY / "common" / "overlap" / "gpu" / "backend",)
        sources = [path for path in files() if path.suffix in (".cu", ".cuh", ".cpp", ".hpp")
                   and {REPOSITORY / "chapters", REPOSITORY / "common"} & set(path.parents)
                   and not set(apart) & set(path.parents)]
        self.assertGreater(len(sources), 30)
        self.assertEqual(blocking(sources), [])

    def test_rooms_include_downwards_only(self) -> None:
        for height, room in enumerate(COMMON_ROOMS):
            sources = list((REPOSITORY / "common" / "overlap" / room).rglob("*pp"))
            self.assertGreater(len(sources), 10)
            self.assertEqual(rooms_beyond(sources, COMMON_ROOMS[:height + 1]), [])

    def test_lessons_use_the_lower_rooms_alone(self) -> None:
        lessons = list((REPOSITORY / "chapters").glob("*/*.cuh"))
        self.assertGreater(len(lessons), 20)
        self.assertEqual(rooms_beyond(lessons, LESSON_ROOMS), [])

    def test_sources_are_short(self) -> None:
        chapters = REPOSITORY / "chapters"
        kinds = {SOURCE_LINES: [path for path in files() if path.suffix in SOURCES] + [REPOSITORY / "lab"],
                 LESSON_LINES: list(chapters.glob("[0-9][0-9]_*/*.cuh")), PROGRAM_LINES: list(chapters.glob("[0-9][0-9]_*/main.cu"))}
        for most, paths in kinds.items():
            self.assertGreaterEqual(len(paths), 20)
            self.assertEqual(longer_than(most, paths), [])

    def test_folders_include_downwards_only(self) -> None:
        sources = [path for path in files() if path.suffix in (".cu", ".cuh", ".cpp", ".hpp", ".h")
                   and path.relative_to(REPOSITORY).parts[0] in ARROWS]
        self.assertEqual({path.relative_to(REPOSITORY).parts[0] for path in sources}, set(ARROWS))
        self.assertEqual(includes_against_the_arrows(REPOSITORY, sources), [])

    def test_tools_need_no_tests(self) -> None:
        sources = [path for path in files() if path.suffix == ".py" and path.relative_to(REPOSITORY).parts[0] in ("tools", "course")
                   and "tests" not in path.relative_to(REPOSITORY).parts]
        self.assertGreater(len(sources), 50)
        self.assertEqual([f"{path}:{number}" for path in sources for number, text in lines(path) if PYTHON_OF_TESTS.search(text)], [])

    def test_lessons_know_no_experiment(self) -> None:
        lessons = [path for kind in ("*.cuh", "main.cu") for path in (REPOSITORY / "chapters").glob(f"*/{kind}")]
        self.assertGreater(len(lessons), 40)
        self.assertEqual(includes_of_experiments(lessons), [])

    def test_rooms_of_the_virtual_gpus(self) -> None:
        sources = [path for path in files() for room in ROOMS if VIRTUAL_GPU / room in path.parents]
        self.assertEqual({path.relative_to(VIRTUAL_GPU).parts[0] for path in sources}, set(ROOMS))
        self.assertEqual(includes_against_the_rooms(VIRTUAL_GPU, sources), [])

    def test_virtual_gpus_know_nothing_above_them(self) -> None:
        paths = files()
        sources = [path for path in paths
                   if VIRTUAL_GPU in path.parents and path.suffix not in (".md", ".svg", ".json")
                   and VIRTUAL_GPU / "tests" not in path.parents]
        self.assertGreater(len(sources), 100)
        headers = [path for path in paths if path.suffix in (".h", ".hpp", ".cuh", ".inl", "")]
        self.assertEqual(includes_from_above(VIRTUAL_GPU, sources, headers), [])

    def test_no_path_outside_the_repository(self) -> None:
        ours = [path for path in files() if path != pathlib.Path(__file__).resolve()]
        self.assertGreater(len(ours), 10)
        self.assertEqual(foreign_paths(ours, REPOSITORY), [])


class RulesTest(FolderTest):
    """The rules themselves: what they must find, and what they must leave alone."""

    def setUp(self) -> None:
        super().setUp()
        self.file = self.write("docs/page.md")

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
        for text in ('#include "overlap/bench/timing.hpp"', '#include "overlap/program/utc_now.hpp"', ' # include "bench/x.hpp"'):
            self.file.write_text(text)
            self.assertEqual(len(rooms_beyond([self.file], ("gpu", "data"))), 1, text)
        for text in ('#include "overlap/gpu/check.hpp"', "#include <bench/x.hpp>", '// #include "bench/x.hpp"'):
            self.file.write_text(text)
            self.assertEqual(rooms_beyond([self.file], ("gpu", "data")), [], text)

    def test_longer_than(self) -> None:
        self.file.write_text("a\n" * 7)
        self.assertEqual(longer_than(6, [self.file]), [f"{self.file}: 7"])
        self.assertEqual(longer_than(7, [self.file]), [])

    def test_includes_of_experiments(self) -> None:
        for text in ('#include "06_reduce_scatter/experiments/errors.cuh"', '# include "experiments/errors.cuh"'):
            self.file.write_text(text)
            self.assertEqual(len(includes_of_experiments([self.file])), 1, text)
        self.file.write_text('#include "06_reduce_scatter/vec16.cuh"\n// see 06_reduce_scatter/experiments/errors.cuh\n')
        self.assertEqual(includes_of_experiments([self.file]), [])

    def test_includes_against_the_rooms(self) -> None:
        headers = ("api/a.hpp", "libraries/work.hpp", "libraries/cub/c.hpp", "libraries/nccl/n.hpp", "engine/e.hpp",
                   "race/report.hpp", "race/run_facts.hpp", RACE_HOOKS)
        for name in headers:
            self.write(name)
        anybody = {"engine/e.hpp", RACE_HOOKS}
        libraries = {"libraries/work.hpp", "libraries/cub/c.hpp", "libraries/nccl/n.hpp"}
        may = {"api/x.cpp": anybody | libraries | {"api/a.hpp"},
               "libraries/work.cpp": anybody | {"libraries/work.hpp"},
               "libraries/cub/x.cpp": anybody | {"libraries/work.hpp", "libraries/cub/c.hpp"},
               "engine/x.cpp": anybody,
               "engine/run_facts.cpp": anybody | {"race/run_facts.hpp"},
               "race/x.cpp": {"race/report.hpp", "race/run_facts.hpp", RACE_HOOKS},
               "x.cpp": {RACE_HOOKS}}
        for source, allowed in may.items():
            path = self.write(source, "".join(f'#include "{name}"\n' for name in headers) + "#include <vector>\n")
            refused = [f"{path}:{number}: {name}" for number, name in enumerate(headers, start=1)
                       if name not in allowed]
            self.assertEqual(includes_against_the_rooms(self.folder, [path]), refused, source)

    def test_includes_against_the_arrows(self) -> None:
        for name in ("common/overlap/gpu/check.hpp", "chapters/01_first/first.cuh", "virtual_gpu/include/cuda.h", "tests/chapters/run.hpp",
                     "course/runner/wire.hpp"):
            self.write(name)
        names = ("overlap/gpu/check.hpp", "01_first/first.cuh", "cuda.h", "run.hpp", "wire.hpp", "vector")
        may = {"virtual_gpu/api/x.cpp": 1 << 2, "common/overlap/gpu/x.cpp": 0b101, "chapters/01_first/x.cuh": 0b111,
               "chapters/01_first/tests/x.cu": 0b1111, "examples/x.cu": 0b100, "course/runner/x.cpp": 0b10111}
        for source, allowed in may.items():
            path = self.write(source, "".join(f"#include <{name}>\n" for name in names))
            refused = [f"{path}:{at + 1}: {name}" for at, name in enumerate(names[:-1]) if not allowed >> at & 1]
            self.assertEqual(includes_against_the_arrows(self.folder.resolve(), [path]), refused, source)

    def test_includes_from_above(self) -> None:
        folder = self.folder / "gpu"
        beside = self.write("gpu/engine/beside.hpp")
        self.write("gpu/include/cuda.h")
        headers = [beside, folder / "include" / "cuda.h", self.write("include/overlap/check.hpp"),
                   self.write("stub/cuda.h")]
        good = ("<vector>", "<cuda.h>", '"cuda.h"', '"beside.hpp"', '"engine/beside.hpp"')
        bad = ('"overlap/check.hpp"', "<overlap/check.hpp>", '"../../../stub/cuda.h"', '"missing.hpp"')
        for name in good + bad:
            path = self.write("gpu/engine/x.cpp", f"#include {name}\n")
            found = [f"{path}:1: {name[1:-1]}"] if name in bad else []
            self.assertEqual(includes_from_above(folder, [path], headers), found, name)

    def test_foreign_paths(self) -> None:
        for text in ("see /home/someone/notes", '"/root/x"', "cd /srv/data", "(../../other/x)", "../../../a"):
            self.file.write_text(text)
            self.assertEqual(len(foreign_paths([self.file], self.folder)), 1, text)
        for text in ("/usr/local/cuda/bin", "../lab", "https://host.org/home/page", "a/b/c", "/dev/null", "1 / 2 / 3",
                     "$root/home/x", "// comment/with/slashes"):
            self.file.write_text(text)
            self.assertEqual(foreign_paths([self.file], self.folder), [], text)


if __name__ == "__main__":
    unittest.main()
