#!/usr/bin/env python3
"""Tests of the race build: each planted bug is reported in every schedule, with both lines; correct programs give no report.
    race_test.py RACE_RUN planted PROGRAM COUNT          its planted bugs and its fixed programs, in COUNT schedules
    race_test.py RACE_RUN ring PROGRAM                   the fixed ring, on 1, 2, 3 and 8 GPUs
    race_test.py RACE_RUN default_sizes PROGRAM          a chapter with its default sizes
    race_test.py RACE_RUN chapter PROGRAM GPUS COUNT [OPTIONS...]  a chapter on GPUS GPUs, in COUNT schedules
    race_test.py RACE_RUN few_rows PROGRAM MOST [OPTIONS...]  a chapter with fewer rows than ranks, on up to MOST GPUs
    race_test.py RACE_RUN same_schedules PROGRAM [PLAIN_BUILD [OPTIONS...]]
RACE_RUN starts a program of the race build. PLAIN_BUILD is the build folder without the race detector to compare with, ''
if there is none. OPTIONS are the chapter's own; if --m is among them, they set all sizes."""
import math
import os
import pathlib
import re
import subprocess
import sys
import unittest
from typing import Dict, Iterator, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import race_runs  # noqa: E402

LIMIT_S = 300  # of a program run: a hang is reported as a deadlock; 8 ranks on a busy machine take minutes
SCHEDULES = ["time", *(str(seed) for seed in range(1, 20))]  # the order of modelled time, and 19 random ones
LARGE = "grid_barrier"  # 16,384 waiting threads in the fixed program
# Reported in some schedules only, so in at least one of several runs.
SOME_ORDERS = ("shared_flags", "credit_1", "credit_2", "credit_4", "credit_add", "credit_volatile", "credit_stream")
# Each case of these programs runs few kernels, so a schedule can reorder little.
SINGLE_KERNELS = ("planted_copy_bugs", "planted_bulk_bugs", "planted_wgmma_bugs", "planted_block_bugs", "planted_fence_bugs",
                  "planted_scope_bugs", "planted_kernel_bugs")
ALL = os.environ.get("OVERLAP_SCHEDULES") == "all"  # otherwise the first COUNT of SCHEDULES
SMALL = ("--m", "33", "--n", "70", "--k", "19", "--iterations", "1", "--warmup", "0")
# Fewer rows than ranks, so some ranks have none; then also fewer columns and a smaller k. Sparse: a table of fewer rows.
FEW = ("--m 1 --n 70 --k 19", "--m 2 --n 2 --k 2")
FEW_SPARSE = ("--rows 97 --features 5 --entries 2 --duplicates 2 --pattern uneven",
              "--rows 2 --features 5 --entries 1 --duplicates 1 --pattern uneven")
SMALL_SPARSE = ("--rows", "97", "--features", "5", "--entries", "23", "--duplicates", "4", "--iterations", "1",
                "--warmup", "0")
ONCE = SMALL[-4:]
TINY_SPARSE = ("--rows", "40", "--features", "3", "--entries", "6", "--duplicates", "2", "--pattern", "uneven")
# Words of each report: a tuple in this order, a set in any order. The report first says what is missing: a proxy fence if the
# accesses are ordered, otherwise an order. For two streams it orders the stream of the host's later call after the other one,
# in every schedule.
CURES = {**{bug: "orders gpu0/stream2 after gpu0/stream1." for bug in
            ("consumer_wait", "pulls_in_turn", "two_streams", "product_overwritten", "product_read_early", "product_sum")},
         "graph_launch": "orders gpu0/stream2 after gpu0/graph1.branch0.",
         **{f"dependent_{bug}": "cudaGridDependencySynchronize() comes before that access" for bug in
            ("read", "overwrite", "chain", "twice", "graph")},
         "product_wait": "orders gpu0/stream1 after gpu0/stream2.",
         "syncthreads": ("of the shared variable 'cells' of block (0,0,0), declared at planted_bugs.cu:", "orders these two threads of a "),
         "early_read": "The host does not wait for gpu0/stream1 between them: synchronise the stream",
         "relaxed_flag": ("write by gpu0/stream1: ", "read by gpu0/stream2: ", " the store at planted_bugs.cu:",
                          " lacks release instead of relaxed, and the load at planted_bugs.cu:",
                          " lacks acquire instead of relaxed."),
         "bulk_parity": " for parity 1 returned at once: the mbarrier was in phase 0",
         **{bug: "nor a word in memory, by release and acquire" for bug in ("credit_1", "credit_2", "credit_4", "credit_add")},
         # planted_kernel_bugs
         "warp": {"in byte 152 of the shared variables 'unused, cells' of block (0,0,0)", "thread (37,0,0)", "thread (35,0,0)",
                  "two threads of a warp: __syncwarp or __syncthreads"},
         "block": {"in byte 28 of the dynamic shared memory of block (0,0,0)", "block (0,0,0), thread (2,1,0)",
                   "block (0,0,0), thread (15,9,0)", "two threads of a block: __syncthreads"},
         "blocks": ("block (", "thread (0,0,0)", "Nothing orders these two blocks: __syncthreads orders threads of one block "
                    "alone."),
         "cluster": ("the shared variable 'cell' of block (",
                     "blocks of a cluster: the cluster's barrier between the accesses"),
         "cluster_end": ("(end of block)", "A block ends while another one of its cluster may still access its shared memory"),
         "plain_beside_atomic": (" is atomic, the read at planted_kernel_bugs.cu:", " is not"),
         "no_release": ("write by ", "read by ", "hands the data over does not order them: the store at planted_kernel_bugs.cu:",
                        " lacks release instead of relaxed."),
         "no_acquire": ("write by ", "read by ", "hands the data over does not order them: the load at planted_kernel_bugs.cu:",
                        " lacks acquire instead of relaxed."),
         "lock": ("the atomicExch at planted_kernel_bugs.cu:", " lacks __threadfence() between the access and it, and the atomicCAS at "
                  "planted_kernel_bugs.cu:", " lacks __threadfence() between it and the access."),
         # planted_fence_bugs: the report names the side that lacks a fence or an order
         **{bug: ("does not order them: the atomicExch at planted_fence_bugs.cu:", " lacks __threadfence() between the access and it.\n")
            for bug in ("fence_release", "fence_before_the_write", "block_fence_release")},
         **{bug: ("does not order them: the atomicAdd at planted_fence_bugs.cu:", " lacks __threadfence() between it and the access.\n")
            for bug in ("fence_acquire", "fence_before_the_look", "block_fence_acquire")},
         "fence_volatile": ("does not order them: the volatile load at planted_fence_bugs.cu:", " lacks __threadfence() between it and the access.\n"),
         "volatile_flag": ("The read at planted_fence_bugs.cu:", " is volatile, which alone orders nothing: the write at "
                           "planted_fence_bugs.cu:", "__threadfence() before the write and behind the read"),
         "fence_relaxed": ("the store at planted_fence_bugs.cu:", " lacks release instead of relaxed.\n"),
         "release_and_fence": ("the load at planted_fence_bugs.cu:", " lacks acquire instead of relaxed.\n"),
         "pageable_source": ("read by the host: cudaMemcpyAsync at planted_kernel_bugs.cu:",
                             "in the call: the memory is pageable", "The host does not wait for gpu0/stream1",
                             "pageable memory in the call."),
         "wgmma_proxy": "but no proxy fence is between them", "wgmma_store": "but no proxy fence is between them",
         "wgmma_wait": "may still write its Fragment", "wgmma_group": "may still write its Fragment",
         **{f"bulk_fence_{bug}": f"fence_proxy_async() by the thread that {did}," for bug, did in
            (("shared", "wrote"), ("flag", "wrote"), ("read", "read"))},
         "bulk_add": "Nothing orders the bulk copy", "bulk_clear": "Nothing orders the bulk copy",
         "bulk_refill": "Nothing orders ", "bulk_elected": "Nothing orders ", "cluster_stage": "Nothing orders ",
         **{f"wgmma_{bug}": "Nothing orders " for bug in ("refill", "overwrite", "load", "staging", "meeting")}}
# Cases that end in a failed call or a deadlock, and the words of their reports.
REFUSALS = {"cluster_exit": "of block (1,0,0), which has ended", "bulk_init": "no fence has published that to bulk copies",
            "wgmma_fence": "issues a wgmma", "scope": "at device scope",
            "stuck_flag": ("deadlock", "0 of 6 blocks done",
                           "12 threads of block (", " and 2 more poll at planted_kernel_bugs.cu:",
                           " byte 8 of a cudaMalloc of 16 bytes on GPU 0, made at ",
                           ": the word is 0, awaited is another value"),
            "stuck_lock": ("deadlock", "1 of 2 blocks done", "1 thread of block (", " polls at ",
                           " byte 0 of a cudaMalloc of 4 bytes",
                           ": the word is 1, awaited is 0"),
            "too_many_blocks": ("deadlock", "0 of 33 blocks done, 1 cannot start (no free multiprocessor), 32 resident",
                                "32 threads of block (", " poll at ", " byte 0 of a cudaMalloc of 4 bytes",
                                ": the word is 32, awaited is another value"),
            "masks": ("deadlock", "32 in a warp function (mask 0x0001ffff at ", "(mask 0xffff8000 at "),
            "wild": ("block (0,0,0), thread (1,0,0) accessed memory that is not allocated at planted_kernel_bugs.cu:",
                     ": 0 bytes behind a cudaMalloc of 1024 bytes on GPU 0, made at ", ", enqueued at "),
            "far": ("accessed memory that is not allocated at planted_kernel_bugs.cu:", ", enqueued at "),
            "freed": ("accessed memory that is not allocated at ", ": inside freed memory, a cudaMalloc of 1024 bytes on GPU 0, "
                      "made at ", ", freed at ", ", captured at ")}
# Cases that end on virtual GPUs but may hang or compute another result on real ones, and the words of their warnings.
HANGS = {"branches": ("waits in __syncthreads at ", "the one at "), "without_a_group": "without a group",
         "returned_lane": (" of block (0,0,0) reads lane ", "has returned"),
         "opposite_order": "have to call collectives of several communicators in one order",
         "lazy_loading": "writes in its first launch"}
ACCESS = re.compile(r"^  (?:read|write) by (.*): .*$", re.MULTILINE)


def marked_lines(source: pathlib.Path, case: str) -> List[int]:
    """The lines of the two accesses that race; a line with two marks is listed twice."""
    return [number for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), start=1)
            for _ in re.findall(rf"@{case}\b", line)]


class RaceTest(unittest.TestCase):
    race_run: str
    program: pathlib.Path
    arguments: List[str]

    def call(self, command: List[str], environment: Optional[Dict[str, str]] = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**os.environ, **(environment or {})})

    def race(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.call([self.race_run, str(self.program), *arguments])

    def is_sparse(self) -> bool:
        """Whether the program is that of a chapter on sparse gradients, which has other size options."""
        return "--rows" in self.race("--help").stdout

    def hash_of(self, result: "subprocess.CompletedProcess[str]") -> str:
        """The schedule's hash; fails unless the program printed exactly one."""
        self.assertEqual(result.returncode, 0, result.stderr)
        found = re.findall(r"\bhash ([0-9a-f]+)$", result.stdout, re.MULTILINE)
        self.assertEqual(len(found), 1, result.stdout)
        return found[0]

    def assert_quiet(self, result: "subprocess.CompletedProcess[str]") -> None:
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")


class PlantedTest(RaceTest):
    def race(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Makes the runs that ./lab race makes, until one fails or prints to stderr; returns the last run."""
        results: "List[subprocess.CompletedProcess[str]]" = []

        def start(environment: Dict[str, str]) -> int:
            results.append(self.call([self.race_run, str(self.program), *arguments], environment))
            return results[-1].returncode or len(results[-1].stderr)

        race_runs.run_all(start, race_runs.SEVERAL if arguments[0] in SOME_ORDERS else 1)
        return results[-1]

    def each(self) -> Iterator[Tuple[str, List[str]]]:
        """The cases of the program with their schedules: all for ring_wait, which has the most possible orders. Reports
        must not depend on the schedule; a second schedule would show that they do."""
        count = int(self.arguments[0])
        listed = self.race("--list")
        self.assert_quiet(listed)
        self.source = HERE / f"{self.program.name}.cu"
        self.assertTrue(listed.stdout)
        for case in listed.stdout.split():
            self.lines = marked_lines(self.source, re.sub(r"(_\d)+$", "", case))  # one pair of marks for barrier_*
            if not case.endswith("_swizzle"):  # a wrong result, not a race
                self.assertEqual(len(self.lines), 2, f"{self.source.name} must have two marks @{case}")
            if case == LARGE and not ALL:
                continue
            # lazy_loading is noticed only if the waiting kernel runs first, as in the order of modelled time.
            once = case in ("lazy_loading", LARGE, *SOME_ORDERS)
            yield case, SCHEDULES[:1] if once else SCHEDULES if case == "ring_wait" or ALL else SCHEDULES[:count]

    def assert_words(self, words: "str | set[str] | Tuple[str, ...]", text: str) -> None:
        """Words in a set may occur in any order, those in a tuple only in the given order."""
        if isinstance(words, set):
            for word in words:
                self.assertIn(word, text)
            return
        pattern = ".*".join(re.escape(word) for word in ((words,) if isinstance(words, str) else words))
        self.assertRegex(text, re.compile(pattern, re.DOTALL))

    def assert_reported(self, case: str, result: "subprocess.CompletedProcess[str]") -> None:
        """The report is a data race with two accesses: one at the first marked line, the other at the second."""
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"^virtual GPUs: data race in ")
        accesses = [match.group() for match in ACCESS.finditer(result.stderr)]
        self.assertEqual(len(accesses), 2, f"not two accesses:\n{result.stderr}")
        names = [lambda text, line=line: re.search(rf"\b{self.source.name}:{line}\b", text) for line in self.lines]
        first, second = names
        self.assertTrue(first(accesses[0]) and second(accesses[1]) or first(accesses[1]) and second(accesses[0]),
                        f"lines {self.lines} are not the two accesses of:\n{result.stderr}")
        sources = self.source.read_text(encoding="utf-8").splitlines()
        for access in accesses:  # an access of a copy or a library names the call at its line
            self.assertNotIn("kernel 'operator()'", access)  # a function object passed to a library
            if re.search(r" by gpu\d+/stream\d+: kernel '", access):  # an access of a thread, not of a copy that it issued
                self.assertRegex(access, r", block \(\d+,\d+,\d+\), thread \(\d+,\d+,\d+\), enqueued at ")
            enqueued = re.search(r": (.*), enqueued at .*:(\d+)$", access)
            if enqueued and not enqueued.group(1).startswith("kernel '"):
                name = enqueued.group(1).split(", in '")[0]  # ", in 'F'": F is the function object passed to it
                self.assertRegex(name, r"^((cuda|cublas|cuStream|nccl)[A-Z]\w*|cub::Device\w+::[A-Z]\w*)$")
                self.assertIn(f"{name}(", sources[int(enqueued.group(2)) - 1])
        self.assert_words(CURES.get(case, ()), result.stderr)
        self.assertRegex(result.stderr, r"\n  schedule (time order|\d+), hash [0-9a-f]{16}\n")

    def assert_refused(self, result: "subprocess.CompletedProcess[str]") -> None:
        """The message names both marked lines."""
        for line in self.lines:
            self.assertRegex(result.stderr, rf"\b{self.source.name}:{line}\b")

    def assert_deadlock(self, result: "subprocess.CompletedProcess[str]") -> None:
        """The report is a deadlock; it says what the mbarrier lacks and names both marked lines."""
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"^virtual GPUs: deadlock: ")
        self.assertRegex(result.stderr, r"\b128 waiting for the mbarrier at shared address 0x[0-9a-f]+ "
                                        r"\(phase 0: 0 of 1 arrivals and 16 bytes missing")
        self.assert_refused(result)

    def assert_warned(self, case: str, result: "subprocess.CompletedProcess[str]") -> None:
        """The program ends successfully, with a warning that names both marked lines."""
        self.hash_of(result)
        self.assertRegex(result.stderr, r"^virtual GPUs: warning: ")
        self.assert_words(HANGS[case], result.stderr)
        self.assert_refused(result)

    def assert_found(self, case: str, result: "subprocess.CompletedProcess[str]") -> None:
        if case == "bulk_count":
            self.assert_deadlock(result)
        elif case in HANGS:
            self.assert_warned(case, result)
        elif case in REFUSALS:
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assert_words(REFUSALS[case], result.stderr)
            self.assert_refused(result)
        elif case.endswith("_swizzle"):
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, r"^wrong result: element \d+")
        elif case == "early_free" and result.returncode == 2:  # cudaFree itself may notice
            self.assert_refused(result)
        else:
            self.assert_reported(case, result)

    def test_bugs_are_found(self) -> None:
        for case, schedules in self.each():
            for schedule in schedules:
                with self.subTest(case, schedule=schedule):
                    self.assert_found(case, self.race(case, "bug", schedule))

    def test_fixed_programs_have_no_report(self) -> None:
        for case, schedules in self.each():
            hashes = set()
            for schedule in schedules:
                with self.subTest(case, schedule=schedule):
                    result = self.race(case, "fixed", schedule)
                    self.assert_quiet(result)
                    hashes.add(self.hash_of(result))
            if case == "ring_wait":  # the other cases have few possible orders
                self.assertGreater(len(hashes), 10, "the seeds did not change the order")


class RingTest(RaceTest):
    def test_has_no_race(self) -> None:
        for gpus in "1238":
            for schedule in SCHEDULES:
                with self.subTest(gpus=gpus, schedule=schedule):
                    self.assert_quiet(self.race("ring_wait", "fixed", schedule, gpus))


class DefaultSizesTest(RaceTest):
    def test_are_small_and_have_no_race(self) -> None:
        result = self.race()
        self.assert_quiet(result)
        sizes = re.search(r"\btable of (\d+) x (\d+)" if self.is_sparse() else
                          r"\b[AX] (\d+) x (\d+), (?:B|W1) \d+ x (\d+)", result.stdout)
        self.assertIsNotNone(sizes, result.stdout)
        self.assertLessEqual(math.prod(int(size) for size in sizes.groups()), 128**3)


class ChapterTest(RaceTest):
    def test_has_no_race(self) -> None:
        gpus, count, *options = self.arguments
        small = ONCE if "--m" in options else SMALL_SPARSE if self.is_sparse() else SMALL
        for number, schedule in enumerate(SCHEDULES if ALL else SCHEDULES[:int(count)]):
            separate = {race_runs.BIT: str(number % 3)} if number % 3 else {}  # each schedule separates other blocks
            with self.subTest(schedule=schedule, separate=separate):
                seed = () if schedule == "time" else ("--schedule", schedule)
                command = [self.race_run, str(self.program), "--gpus", gpus, *small, *seed, *options]
                self.assert_quiet(self.call(command, separate))


class FewRowsTest(RaceTest):
    def test_has_no_race(self) -> None:
        few, most, options = FEW_SPARSE if self.is_sparse() else FEW, int(self.arguments[0]), list(self.arguments[1:])
        if "--m" in options:
            at = options.index("--m")
            few = (f"--m 1 {' '.join(options[:at] + options[at + 2:])}",)
            options = []
        for sizes in few:
            for gpus, *seed in (("3", "--schedule", "1"), ("4",)):
                if int(gpus) > most:
                    continue
                with self.subTest(sizes=sizes, gpus=gpus, seed=seed):
                    self.assert_quiet(self.race("--gpus", gpus, *sizes.split(), *ONCE, *seed, *options))

    def assert_tiny_is_quiet(self, gpus: int, rows: int, *options: str) -> None:
        """Asserts no report on `gpus` GPUs, with `rows` rows and the smallest other sizes that every chapter supports."""
        if int(self.arguments[0]) < 8:
            self.skipTest("ranks have nothing to do with each other")
        own = list(self.arguments[1:])
        for size in ("--m", "--n", "--k"):
            if size in own:
                del own[own.index(size):own.index(size) + 2]
        sizes = TINY_SPARSE if self.is_sparse() else ("--m", str(rows), "--n", str(8 * gpus), "--k", str(8 * gpus))
        self.assert_quiet(self.race("--gpus", str(gpus), *sizes, *own, *options))

    def test_calls_at_once_of_fewer_rows_than_ranks(self) -> None:
        self.assert_tiny_is_quiet(3, 2, "--iterations", "4", "--schedule", "2")

    def test_five_ranks(self) -> None:
        """Some waits matter from five ranks on: with fewer, the ring's signals of the next step order the same accesses."""
        self.assert_tiny_is_quiet(5, 6, *ONCE, "--schedule", "1")


class SameSchedulesTest(RaceTest):
    """The race detector does not change the schedule, so the hash is the same: a schedule that races in the race build can be
    debugged in the plain build."""

    def test_same_hash_without_the_race_detector(self) -> None:
        build = pathlib.Path(self.arguments[0]) if self.arguments and self.arguments[0] else None
        if build is None:
            self.skipTest("no build without race detector to compare with (-DOVERLAP_PLAIN_BUILD=FOLDER names one)")
        plain = build / "bin" / self.program.name
        self.assertTrue(plain.exists(), f"{plain} is not built")
        commands = self.commands()
        hashes = set()
        for arguments in commands:
            with self.subTest(arguments):
                here = self.hash_of(self.call([self.race_run, str(self.program), *arguments]))
                there = self.hash_of(self.call([str(plain), *arguments]))
                self.assertEqual(here, there)
                hashes.add(here)
        if self.program.name not in SINGLE_KERNELS:
            self.assertGreater(len(hashes), len(commands) / 4, "the seeds did not change the order")

    def commands(self) -> List[List[str]]:
        """Command lines, each with a seed. The sizes give several blocks and waves, whose order might differ between builds."""
        if self.program.name.startswith("planted_"):
            return [[case, "fixed", seed] for case in self.race("--list").stdout.split() if case != LARGE for seed in "12345"]
        sizes = ["--rows", "300", "--features", "5", "--entries", "30", "--duplicates", "6"] if self.is_sparse() else \
            ["--m", "128", "--n", "256", "--k", "32"]
        if "--m" in self.arguments:
            sizes = []
        sizes += ["--iterations", "1", "--warmup", "1", *self.arguments[1:]]
        runs = [("1", "1"), ("1", "2"), ("3", "1"), ("3", "2"), ("4", "1")]
        return [["--gpus", gpus, "--schedule", seed, *sizes] for gpus, seed in runs]


TESTS = {"planted": PlantedTest, "ring": RingTest, "default_sizes": DefaultSizesTest, "chapter": ChapterTest,
         "few_rows": FewRowsTest, "same_schedules": SameSchedulesTest}


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[2] not in TESTS:
        print(__doc__, file=sys.stderr)
        return 2
    chosen = TESTS[sys.argv[2]]
    RaceTest.race_run, RaceTest.program = sys.argv[1], pathlib.Path(sys.argv[3]).resolve()
    RaceTest.arguments = sys.argv[4:]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(chosen))
    if not result.wasSuccessful() or not result.testsRun:
        return 1
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
