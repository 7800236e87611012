"""Shared by the tests of all programs. Each test file is called with the program and its backend:
    stuck_test.py PROGRAM virtual|cuda [unittest's own arguments]"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Mapping, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.programs.support import REPOSITORY, FolderTest, real_gpus  # noqa: E402

MACHINES = REPOSITORY / "virtual_gpu" / "machines"
ONCE = ("--iterations", "1", "--warmup", "0")
SMALL = ("--m", "33", "--n", "37", "--k", "19", *ONCE)  # no multiples
MOST_RANKS = int(os.environ.get("OVERLAP_MOST_RANKS", "8"))  # the quick tests run all sizes on up to 4
TINY = ("--m", "5", "--n", "3", "--k", "2", *ONCE)  # on 8 ranks some have no row or column


def up_to_most(ranks: str) -> List[str]:
    """The tested ones of these numbers of ranks."""
    return [number for number in ranks if int(number) <= MOST_RANKS]


class ProgramTestCase(FolderTest):
    """Runs the program in an empty folder of its own."""

    program: pathlib.Path
    backend: str
    sizes = SMALL
    tiny_sizes = TINY
    types: Sequence[str] = ("f16", "bf16", "f32")
    ranks = "12348"  # numbers of ranks on which results are verified
    tiny_ranks = "48"  # the same for tiny sizes

    def sizes_on(self, _ranks: int) -> Sequence[str]:
        """The sizes for a number of ranks."""
        return self.sizes

    def need_gpus(self, count: int) -> None:
        """Skips if real GPUs are fewer, because ranks that share a GPU skip the variants with NCCL."""
        if self.backend == "cuda" and real_gpus() < count:
            self.skipTest(f"needs {count} GPUs")

    def call(self, *arguments: str, **more) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(self.program), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False, **more)

    def call_right(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Calls the program, which must end with 0. If real GPUs are too few for it, skips the test with the reason."""
        result = self.call(*arguments)
        if result.returncode == 77 and self.backend == "cuda":
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertEqual(result.stderr, "", arguments)
        return result

    def assert_fails(self, status: int, arguments: Sequence[str], sentence: str,
                     **more) -> "subprocess.CompletedProcess[str]":
        """Checks the exit status, one matching sentence on standard error, and that no file is left."""
        before = sorted(self.folder.rglob("*"))
        result = self.call(*arguments, **more)
        if result.returncode == 77 and status != 77 and self.backend == "cuda":
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertRegex(result.stderr, sentence)
        self.assertIn(len(result.stderr.splitlines()), (1, 2), result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "files were left behind")
        return result

    def assert_refused(self, cases: Mapping[Sequence[str], str]) -> None:
        """Each command line is rejected with its sentence, and no result is printed."""
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                self.assertEqual(self.assert_fails(2, arguments, sentence).stdout, "")

    def assert_right_on_all_sizes_and_types(self, *sentences: str) -> None:
        """Runs on 1, 2, 3, 4 and 8 ranks, or on those that the program names, some without a row or a column, and with each
        type; the output matches the sentences."""
        for arguments in [("--gpus", gpus, *self.sizes_on(int(gpus))) for gpus in up_to_most(self.ranks)] + \
                [("--gpus", gpus, *self.tiny_sizes) for gpus in up_to_most(self.tiny_ranks)] + \
                [("--gpus", "3", "--type", kind, *self.sizes_on(3)) for kind in self.types[1:]]:
            with self.subTest(arguments):
                output = self.call_right(*arguments).stdout
                for sentence in sentences:
                    self.assertRegex(output, sentence)

    def assert_corruption_is_found(self, variants: Mapping[str, str]) -> None:
        """If one element of a variant's result is corrupted, the program ends with 1, the message matches the variant's text,
        and no report is written."""
        for variant, name in variants.items():
            with self.subTest(variant):
                self.assert_fails(1, ("--corrupt", "--gpus", "2", "--only", variant, *self.sizes_on(2), "--json", "new.json"),
                                  rf"wrong result.*({name}).*row.*column")

    def assert_same_seed_same_schedule(self, seed: str) -> None:
        if self.backend != "virtual":
            self.skipTest("schedules are for virtual GPUs")
        first, second = (self.call_right("--gpus", "3", "--schedule", seed, *self.sizes_on(3)).stdout for _ in range(2))
        self.assertRegex(first, rf"(?m)^schedule {seed}, hash [0-9a-f]+$")
        self.assertEqual(re.findall("hash [0-9a-f]+", first), re.findall("hash [0-9a-f]+", second))

    def report(self, *arguments: str) -> Dict[str, Any]:
        """The program's --json report; it names the chapter like the program (an experiment NN_EXPERIMENT:
        NN_name/EXPERIMENT)."""
        self.call_right(*arguments, "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        chapter, _, experiment = report["chapter"].partition("/")
        self.assertEqual(f"{chapter[:2]}_{experiment}" if experiment else chapter, self.program.name)
        return report

    def machine(self, **changes) -> str:
        """The path of a copy of the default machine file with these changes: memory_mib=1, gpus=2."""
        if self.backend != "virtual":
            self.skipTest("machine descriptions are for virtual GPUs")
        description = json.loads((MACHINES / "small.json").read_text(encoding="utf-8"))
        for name, value in changes.items():
            part = description if name in description else description["gpu"]
            self.assertIn(name, part)
            part[name] = value
        return str(self.write("machine.json", json.dumps(description)))

    def machine_without_peer_access(self) -> str:
        """The path of the default machine file without peer access."""
        description = json.loads(pathlib.Path(self.machine()).read_text(encoding="utf-8"))
        description["peer"]["access"] = False
        return str(self.write("machine.json", json.dumps(description)))

    def assert_left_out(self, report: Dict[str, Any], skipped: Sequence[str], reason: str) -> None:
        """The report skips exactly these variants, in any order, each with a matching reason."""
        results = [result for result in report["results"] if result.get("status") == "skipped"]
        self.assertEqual(sorted(result["variant"] for result in results), sorted(skipped))
        for result in results:
            self.assertEqual(set(result), {"variant", "status", "reason"})
            self.assertRegex(result["reason"], reason)


def two_gpus() -> str:
    """A value of CUDA_VISIBLE_DEVICES: two of the GPUs. A process takes seconds to start, longer with each GPU; the chapters'
    own tests use all GPUs."""
    return ",".join(os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")[:2])


def take_program_and_backend() -> None:
    """Takes program and backend from the command line, for all tests."""
    if len(sys.argv) < 3 or sys.argv[2] not in ("virtual", "cuda"):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM virtual|cuda")
    ProgramTestCase.program = pathlib.Path(sys.argv.pop(1)).resolve()
    ProgramTestCase.backend = sys.argv.pop(1)
    if ProgramTestCase.backend == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = two_gpus()
        # Enough for two ranks, even on one GPU. Programs ask for 32, because eight ranks on one GPU need them; a process takes
        # 0.6 s per GPU to create and release 32 (2 x H100).
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "16")


def main() -> None:
    """Takes program and backend from the command line, and runs the tests."""
    take_program_and_backend()
    unittest.main()
