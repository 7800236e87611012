#!/usr/bin/env python3
"""Rules that hold for the whole repository, checked on its text."""
import graphlib
import pathlib
import re
import unittest
from typing import Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from support import REPOSITORY, FolderTest, repository_files

# Chapters compile unchanged for virtual and for real GPUs, so they must not test which of the two it is.
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|else)\b")

# On virtual GPUs ranks are fibers of one thread: code that blocks that thread stops all ranks.
BLOCKING = re.compile(r"\b(?:std::(?:\w*mutex|condition_variable\w*|barrier|latch|\w*semaphore)|thread_local)\b")

# The folders of every Linux system. Any other absolute path belongs to somebody's own machine.
SYSTEM_FOLDERS = {"bin", "dev", "etc", "lib", "lib64", "opt", "proc", "sbin", "sys", "tmp", "usr", "var"}
SERVICES = {"autograder"}  # in Gradescope's container
INVENTED = {"a", "nothing", "nowhere", "missing"}  # folders made up by tests
ABSOLUTE = re.compile(r"""(?:^|[\s"'`=(\[,:])/([A-Za-z][\w.-]*)/\w""")
INCLUDE = re.compile(r"""^\s*#\s*include\s*["<]([^">]+)""")

UPWARD = re.compile(r"""(?:^|[\s"'`=(\[<])((?:\.\./)+[\w./-]*)""")


def lines(path: pathlib.Path) -> Iterator[Tuple[int, str]]:
    """The numbered lines of a text file; none of a binary one."""
    data = path.read_bytes()
    if b"\0" not in data:
        yield from enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1)


def conditionals(paths: List[pathlib.Path]) -> List[str]:
    """Lines of conditional compilation, as file:line: text."""
    return [f"{path}:{number}: {text}" for path in paths for number, text in lines(path) if CONDITIONAL.match(text)]


def blocking(paths: List[pathlib.Path]) -> List[str]:
    """Lines of code that block an operating system thread, or use one's state, as file:line: text."""
    return [f"{path}:{number}: {text}" for path in paths for number, text in lines(path)
            if BLOCKING.search(text.split("//")[0])]


def foreign_paths(paths: List[pathlib.Path], root: pathlib.Path) -> List[str]:
    """Lines that name a path outside the repository `root`, as file:line: path."""
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


# Allowed includes: a pattern of the source's path (the first match counts), and one of its headers' paths; {0} is the first
# group's match. All parts of the virtual GPUs may include ThreadSanitizer's annotations of CUDA's order, and the check build's
# of memory.
COMMON_ROOMS = ("gpu", "data", "bench", "program")  # lowest first
VIRTUAL = "virtual_gpu/include/|virtual_gpu/race/happens_before.hpp|virtual_gpu/check/memory_state.hpp"
ARROWS = (
    (r"virtual_gpu/tests/", r"(virtual_gpu|common|tests)/"),
    (r"virtual_gpu/api/", rf"virtual_gpu/(api|libraries|engine)/|{VIRTUAL}"),
    # Libraries do not include each other; files beside their folders are for all.
    (r"virtual_gpu/libraries/(\w+/)?", rf"virtual_gpu/libraries/({{0}})?[^/]*$|virtual_gpu/engine/|{VIRTUAL}"),
    (r"virtual_gpu/engine/run_facts.cpp", rf"virtual_gpu/engine/|virtual_gpu/race/run_facts.hpp|{VIRTUAL}"),  # reported facts
    (r"virtual_gpu/engine/(access_report|kernel/undefined_behaviour).cpp", rf"virtual_gpu/engine/|virtual_gpu/check/report.hpp|{VIRTUAL}"),
    (r"virtual_gpu/engine/", rf"virtual_gpu/engine/|{VIRTUAL}"),
    (r"virtual_gpu/race/", rf"virtual_gpu/race/|{VIRTUAL}"),
    (r"virtual_gpu/check/", rf"virtual_gpu/check/|{VIRTUAL}"),
    (r"virtual_gpu/(include|tools|program)/", r"virtual_gpu/"),
    *((f"common/overlap/{room}/", rf"common/overlap/({'|'.join(COMMON_ROOMS[:height + 1])})/|virtual_gpu/")
      for height, room in enumerate(COMMON_ROOMS)),
    (r"common/for_virtual_gpus/", r"(common|virtual_gpu)/"),
    # Lessons do not measure, parse the command line or include experiments.
    (r"chapters/\w+/\w+\.cuh", r"chapters/\w+/\w+\.cuh|common/overlap/(gpu|data)/|virtual_gpu/"),
    (r"chapters/\w+/(main.cu|\w+\.hpp)", r"chapters/\w+/\w+\.(cuh|hpp)|(common|virtual_gpu)/"),
    (r"chapters/\w+/(tests|assignment)/", r"(chapters|common|virtual_gpu|tests)/"),
    (r"chapters/\w+/experiments/", r"(chapters|common|virtual_gpu)/"),
    (r"course/tests/", r"(course|chapters|common|virtual_gpu|tests)/"),
    (r"course/", r"(course|chapters|common|virtual_gpu)/"),
    (r"tools/(\w+/tests|new_chapter)/", r"(tools|common|virtual_gpu|tests)/"),
    (r"tools/", r"(tools|common|virtual_gpu)/"),
    (r"examples/", r"virtual_gpu/"))
ROOTS = ("common", "common/for_virtual_gpus", "chapters", "virtual_gpu", "virtual_gpu/include", "course/runner", "tests/chapters")
PYTHON_OF_TESTS = re.compile(r"^\s*(?:from|import) tests\b|\bsys\.path\b.*\btests\b")


def includes(root: pathlib.Path, path: pathlib.Path) -> Iterator[Tuple[int, str, pathlib.Path]]:
    """The includes of the repository's files: line, name, file."""
    for number, text in lines(path):
        include = INCLUDE.match(text)
        places = [path.parent] * ('"' in text) + [root / folder for folder in ROOTS] if include else []
        there = next(((place / include[1]).resolve() for place in places if (place / include[1]).is_file()), None)
        if there is not None:
            yield number, include[1], there


def against_the_arrows(root: pathlib.Path, paths: Iterable[pathlib.Path]) -> List[str]:
    """Includes that the rules forbid, and sources that match no rule, as file:line: name."""
    found = []
    for path in paths:
        here = path.relative_to(root).as_posix()
        source, allowed = next((arrow for arrow in ARROWS if re.match(arrow[0], here)), (".*", "no arrow"))
        if allowed == "no arrow":
            found.append(f"{path}: {allowed}")
        allowed = allowed.format(*(group or "" for group in re.match(source, here).groups()))
        found += [f"{path}:{number}: {name}" for number, name, there in includes(root, path)
                  if not re.match(allowed, there.relative_to(root).as_posix())]
    return found


def modules(paths: Iterable[pathlib.Path]) -> Dict[pathlib.Path, pathlib.Path]:
    """The module of each source, by its first file: a header, its source of the same name, and sources without a header of their
    own that are named after it, as block_waits.cpp after block.hpp."""
    headers = {path.with_suffix("") for path in paths if path.suffix == ".hpp"}

    def module(path: pathlib.Path) -> pathlib.Path:
        words = path.stem.split("_")
        names = [path.with_name("_".join(words[:count])) for count in range(len(words), 0, -1)]
        return next((name.with_suffix(".hpp") for name in names if name in headers), path)
    return {path: module(path) for path in paths}


def include_cycle(root: pathlib.Path, paths: Iterable[pathlib.Path], module: Mapping[pathlib.Path, pathlib.Path] = {}) -> List[str]:
    """Files, or modules of files, that include each other in a cycle, from one of them back to it; [] if there is none."""
    graph: Dict[pathlib.Path, Set[pathlib.Path]] = {}
    for path in paths:
        here, there = module.get(path, path), {module.get(there, there) for _, _, there in includes(root, path)}
        graph.setdefault(here, set()).update(there - ({here} if path in module else set()))
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [path.relative_to(root).as_posix() for path in error.args[1]]
    return []


# Maximum numbers of lines (CONTRIBUTING.md, "Style"): of a source, of a lesson, of a chapter's program.
SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".h", ".py")
SOURCE_LINES, LESSON_LINES, PROGRAM_LINES = 400, 300, 80


def longer_than(most: int, paths: Iterable[pathlib.Path]) -> List[str]:
    """The files with more than `most` lines, as file: number of lines."""
    counts = {path: sum(1 for _ in lines(path)) for path in paths}
    return [f"{path}: {count}" for path, count in counts.items() if count > most]


class RepositoryTest(unittest.TestCase):
    def test_chapters_have_no_conditional_compilation(self) -> None:
        sources = [path for path in repository_files()
                   if REPOSITORY / "chapters" in path.parents and path.suffix in (".cu", ".cuh")]
        self.assertTrue(sources)
        self.assertEqual(conditionals(sources), [])

    def test_ranks_wait_for_each_other_only_by_what_knows_them(self) -> None:
        apart = (REPOSITORY / "common" / "overlap" / "gpu" / "backend",)
        sources = [path for path in repository_files() if path.suffix in (".cu", ".cuh", ".cpp", ".hpp")
                   and {REPOSITORY / "chapters", REPOSITORY / "common"} & set(path.parents)
                   and not set(apart) & set(path.parents)]
        self.assertGreater(len(sources), 30)
        self.assertEqual(blocking(sources), [])

    def test_sources_are_short(self) -> None:
        chapters = REPOSITORY / "chapters"
        kinds = {SOURCE_LINES: [path for path in repository_files() if path.suffix in SOURCES] + [REPOSITORY / "lab"],
                 LESSON_LINES: list(chapters.glob("[0-9][0-9]_*/*.cuh")), PROGRAM_LINES: list(chapters.glob("[0-9][0-9]_*/main.cu"))}
        for most, paths in kinds.items():
            self.assertGreaterEqual(len(paths), 20)
            self.assertEqual(longer_than(most, paths), [])

    def test_folders_include_downwards_only(self) -> None:
        folders = {"virtual_gpu", "common", "chapters", "course", "tools", "examples"}
        sources = [path for path in repository_files() if path.relative_to(REPOSITORY).parts[0] in folders
                   and (path.suffix in (".cu", ".cuh", ".cpp", ".hpp", ".h", ".inl") or path.parent.name == "cuda")]
        self.assertGreater(len(sources), 500)
        self.assertEqual(against_the_arrows(REPOSITORY, sources), [])
        self.assertEqual(include_cycle(REPOSITORY, sources), [])
        engine = [path for path in sources if REPOSITORY / "virtual_gpu/engine" in path.parents]
        self.assertGreater(len(engine), 80)
        self.assertEqual(include_cycle(REPOSITORY, engine, modules(engine)), [])

    def test_tools_need_no_tests(self) -> None:
        sources = [path for path in repository_files() if path.suffix == ".py" and path.relative_to(REPOSITORY).parts[0] in ("tools", "course")
                   and "tests" not in path.relative_to(REPOSITORY).parts]
        self.assertGreater(len(sources), 50)
        self.assertEqual([f"{path}:{number}" for path in sources for number, text in lines(path) if PYTHON_OF_TESTS.search(text)], [])

    def test_no_path_outside_the_repository(self) -> None:
        ours = [path for path in repository_files() if path != pathlib.Path(__file__).resolve()]
        self.assertGreater(len(ours), 10)
        self.assertEqual(foreign_paths(ours, REPOSITORY), [])


class RulesTest(FolderTest):
    """The rules themselves: what they must report, and what they must not."""

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

    def test_longer_than(self) -> None:
        self.file.write_text("a\n" * 7)
        self.assertEqual(longer_than(6, [self.file]), [f"{self.file}: 7"])
        self.assertEqual(longer_than(7, [self.file]), [])

    def test_against_the_arrows(self) -> None:
        headers = {"happens_before": "virtual_gpu/race/happens_before.hpp", "facts": "virtual_gpu/race/run_facts.hpp",
                   "race": "virtual_gpu/race/report.hpp", "api": "virtual_gpu/api/a.hpp", "work": "virtual_gpu/libraries/work.hpp",
                   "cub": "virtual_gpu/libraries/cub/c.hpp", "nccl": "virtual_gpu/libraries/nccl/n.hpp", "engine": "virtual_gpu/engine/e.hpp",
                   "cuda": "virtual_gpu/include/cuda.h", "gpu": "common/overlap/gpu/check.hpp", "data": "common/overlap/data/d.hpp",
                   "bench": "common/overlap/bench/timing.hpp", "program": "common/overlap/program/p.hpp", "lesson": "chapters/01_first/first.cuh",
                   "experiment": "chapters/01_first/experiments/e.cuh", "tests": "tests/chapters/run.hpp", "course": "course/runner/wire.hpp"}
        for name in headers.values():
            self.write(name)
        root = self.folder.resolve()
        names = {key: next(name[len(folder) + 1:] for folder in sorted(ROOTS, key=len, reverse=True) if name.startswith(f"{folder}/"))
                 for key, name in headers.items()}
        virtual = "happens_before facts race api work cub nccl engine cuda"
        for source, may in {
                "virtual_gpu/api/x.cpp": "happens_before api work cub nccl engine cuda",
                "virtual_gpu/libraries/work.cpp": "happens_before work engine cuda",
                "virtual_gpu/libraries/cub/x.cpp": "happens_before work cub engine cuda",
                "virtual_gpu/engine/x.cpp": "happens_before engine cuda", "virtual_gpu/engine/run_facts.cpp": "happens_before facts engine cuda",
                "virtual_gpu/race/x.cpp": "happens_before facts race cuda", "virtual_gpu/include/vgpu/x.h": virtual,
                "common/overlap/gpu/x.cpp": f"{virtual} gpu", "common/overlap/bench/x.hpp": f"{virtual} gpu data bench",
                "chapters/01_first/x.cuh": f"{virtual} gpu data lesson", "chapters/01_first/main.cu": f"{virtual} gpu data bench program lesson",
                "chapters/01_first/tests/x.cu": f"{virtual} gpu data bench program lesson experiment tests", "examples/x.cu": virtual,
                "course/runner/x.cpp": f"{virtual} gpu data bench program lesson experiment course"}.items():
            path = self.write(source, "".join(f"#include <{name}>\n" for name in names.values()) + "#include <vector>\n").resolve()
            refused = [f"{path}:{at}: {name}" for at, (key, name) in enumerate(names.items(), start=1) if key not in may.split()]
            self.assertEqual(against_the_arrows(root, [path]), refused, source)
        for name in ("../../common/overlap/gpu/check.hpp", "../../tests/chapters/run.hpp"):
            path = self.write("virtual_gpu/engine/x.cpp", f'#include "{name}"\n').resolve()
            self.assertEqual(against_the_arrows(root, [path]), [f"{path}:1: {name}"])
        path = self.write("other/x.cpp").resolve()
        self.assertEqual(against_the_arrows(root, [path]), [f"{path}: no arrow"])

    def test_include_cycle(self) -> None:
        root = self.folder.resolve()
        ring = [self.write(f"virtual_gpu/engine/{name}.hpp", f'#include "engine/{after}.hpp"\n').resolve()
                for name, after in (("a", "b"), ("b", "c"), ("c", "d"))]
        self.write("virtual_gpu/engine/d.hpp")
        self.assertEqual(include_cycle(root, ring), [])
        self.write("virtual_gpu/engine/c.hpp", '#include "a.hpp"\n')
        self.assertEqual(sorted(set(include_cycle(root, ring))), [f"virtual_gpu/engine/{name}.hpp" for name in "abc"])

    def test_include_cycle_of_modules(self) -> None:
        root = self.folder.resolve()
        texts = {"a.hpp": "", "a.cpp": "a.hpp b.hpp", "b.hpp": "", "b.cpp": "b.hpp", "b_c.cpp": "b.hpp", "c.cpp": "a.hpp b.hpp", "b_d.hpp": ""}
        paths = [self.write(f"virtual_gpu/engine/{name}", "".join(f'#include "{header}"\n' for header in headers.split())).resolve()
                 for name, headers in texts.items()]
        self.assertEqual([path.name for path in modules(paths).values()], ["a.hpp", "a.hpp", "b.hpp", "b.hpp", "b.hpp", "c.cpp", "b_d.hpp"])
        self.assertEqual(include_cycle(root, paths, modules(paths)), [])
        for source in ("b.cpp", "b_c.cpp"):
            self.write(f"virtual_gpu/engine/{source}", '#include "a.hpp"\n')
            self.assertEqual(include_cycle(root, paths), [])
            self.assertEqual(set(include_cycle(root, paths, modules(paths))), {f"virtual_gpu/engine/{name}.hpp" for name in "ab"})
            self.write(f"virtual_gpu/engine/{source}")

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
