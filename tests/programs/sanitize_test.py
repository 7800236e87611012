#!/usr/bin/env python3
"""Tests of tools/sanitize, with stand-ins for compute-sanitizer, nvidia-smi and the chapters' programs."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from typing import List, Tuple

from support import REPOSITORY, FolderTest

SANITIZE = REPOSITORY / "tools" / "sanitize"
CHAPTERS = sorted(path.parent.name for path in REPOSITORY.glob("chapters/[0-9][0-9]_*/main.cu"))
BARE = ("bash env sh cat sed sort head tail paste tr grep wc awk mkdir rm rmdir find nproc timeout dirname readlink sleep"
        " tee python3").split()

# Like the real one: exits with the program's status, or with that of --error-exitcode if it found something. Findings are the
# program's lines "PLANTED tool count".
SANITIZER = r"""
all="$*"; printf '%s visible=%s\n' "$all" "$CUDA_VISIBLE_DEVICES" >> "$SANDBOX/calls"
while [ $# -gt 0 ]; do
  case $1 in
    --tool) tool=$2; shift 2 ;;
    --error-exitcode) found=$2; shift 2 ;;
    --check-exit-code | --kernel-name | --report-api-errors) shift 2 ;;
    *) break ;;
  esac
done
[ ! -e "$SANDBOX/mute" ] || exec "$@"
echo "========= COMPUTE-SANITIZER"
TOOL=$tool "$@" > "$SANDBOX/output.$$"; status=$?
cat "$SANDBOX/output.$$"
errors=$(sed -n "s/^PLANTED $tool //p" "$SANDBOX/output.$$"); errors=${errors:-0}
case $tool in
  racecheck) echo "========= RACECHECK SUMMARY: $errors hazards displayed ($errors errors, 0 warnings)" ;;
  *) echo "========= ERROR SUMMARY: $errors errors" ;;
esac
[ $status -ne 0 ] || [ $errors -eq 0 ] || status=$found
exit $status"""


class SanitizeTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.programs = self.folder / "build" / "cuda" / "bin"
        self.logs = self.folder / "build" / "cuda" / "sanitize"
        self.bin = self.folder / "path"
        for place in (self.programs, self.bin, self.folder / "tools"):
            place.mkdir(parents=True)
        for tool in (SANITIZE, SANITIZE.with_name("chapters.py")):
            shutil.copy(tool, self.folder / "tools")
        for chapter in CHAPTERS:
            shutil.copytree(REPOSITORY / "chapters" / chapter, self.folder / "chapters" / chapter)
        for tool in BARE:
            (self.bin / tool).symlink_to(sys.executable if tool == "python3" else shutil.which(tool))
        self.script(self.bin / "compute-sanitizer", SANITIZER)
        self.gpus(4)
        for chapter in CHAPTERS:
            self.script(self.programs / chapter, "exit 0")
            self.script(self.programs / f"{chapter}_test", "exit 1")  # programs that are no chapter's are not run ...
            self.script(self.programs / f"{chapter[:3]}a_experiment", "exit 1")
        for chapter in CHAPTERS:  # ... except those named in the manifest: their programs call cuBLAS
            manifest = json.loads((self.folder / "chapters" / chapter / "chapter.json").read_text())
            if "racecheck_test" in manifest.get("tests", {}).get("sanitize", {}):
                self.script(self.programs / f"{chapter}_test", 'test "$TOOL" = racecheck')

    def gpus(self, count: int) -> None:
        lines = "\n".join(f"echo 'GPU {i}: NVIDIA H100 (UUID: GPU-{i})'" for i in range(count))
        self.script(self.bin / "nvidia-smi", lines or "exit 9")

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {"PATH": str(self.bin), "SANDBOX": str(self.folder), "CUDA_HOME": str(self.folder / "nowhere")}
        return subprocess.run([str(self.folder / "tools" / "sanitize"), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=environment, timeout=100, check=False)

    def calls(self) -> List[str]:
        return (self.folder / "calls").read_text().splitlines()

    @staticmethod
    def rows(result: "subprocess.CompletedProcess[str]") -> List[Tuple[str, ...]]:
        """Tool, chapter, GPUs, errors and remark of each run."""
        found = re.findall(r"^(\w+check) +(\w+) +(\d+) +(\d+|-) +\d+\.\d *(.*)$", result.stdout, re.MULTILINE)
        return sorted(found)

    def test_all_programs_on_1_2_and_4_gpus(self) -> None:
        result = self.call("--jobs", "8")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        runs = {(tool, chapter[:2], count) for tool, chapter, count, *_ in self.rows(result)}
        chapters = {chapter[:2] for chapter in CHAPTERS}
        self.assertEqual({chapter for tool, chapter, count in runs if (tool, count) == ("memcheck", "1")}, chapters)
        manifests = {chapter[:2]: json.loads((self.folder / "chapters" / chapter / "chapter.json").read_text()) for chapter in CHAPTERS}
        shared = {number for number, manifest in manifests.items()  # kernels with shared memory
                  if manifest.get("tests", {}).get("sanitize", {}).get("racecheck", 0) > 0}
        self.assertLessEqual({"07", "09", "10", "11", "12", "13", "14", "16"}, shared)
        for tool in ("racecheck", "synccheck"):
            self.assertEqual({chapter for each, chapter, count in runs if (each, count) == (tool, "1")}, shared)
        self.assertEqual({count for tool, _, count in runs if tool == "racecheck"}, {"1"})
        several = {chapter for tool, chapter, count in runs if (tool, count) == ("memcheck", "4")}
        self.assertLessEqual({"04", "05", "06", "07", "08", "14"}, several)
        self.assertEqual({row[3:] for row in self.rows(result)}, {("0", "")})
        self.assertEqual(result.stdout.splitlines()[-1], f"{len(runs)} runs, no findings")
        self.assertFalse(self.logs.exists())

    def test_every_chapter_is_in_the_table(self) -> None:
        self.assertEqual(self.call("--gpus", "1", "--jobs", "8").returncode, 0)
        calls = "\n".join(self.calls())
        for chapter in CHAPTERS:
            kind = json.loads((self.folder / "chapters" / chapter / "chapter.json").read_text())["kind"]
            self.assertIn(f"/{chapter} --gpus 1 {'--rows 700 ' if kind == 'sparse' else '--m 100 '}", calls)

    def test_a_manifest_that_is_wrong(self) -> None:
        path = self.folder / "chapters" / "04_copy_engine" / "chapter.json"
        path.write_text(path.read_text().replace('"memcheck"', '"memchek"'))
        result = self.call()
        self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (2, "", 1))
        self.assertIn("chapters/04_copy_engine/chapter.json: 'tests.sanitize.memchek' is not known", result.stderr)

    def test_how_programs_are_called(self) -> None:
        self.assertEqual(self.call("--only=04,14", "--gpus", "1", "--timeout", "50", "--jobs", "1").returncode, 0)
        calls = self.calls()
        self.assertEqual(len(calls), 4)
        dense, *sparse = calls
        self.assertRegex(dense, r"^--tool memcheck --error-exitcode \d+ --check-exit-code no \S+/04_copy_engine --gpus 1"
                                r" --m \d+ --n \d+ --k \d+ --only \S+ --iterations 1 --warmup 0 --timeout 40 visible=0$")
        self.assertRegex(sparse[0], r"no --report-api-errors no \S+/14_sparse_v6_tiled --gpus 1"  # NCCL's own errors
                                    r" --rows \d+ --features \d+ --entries \d+ .*visible=1$")
        for call in sparse[1:]:  # own kernels only
            self.assertRegex(call, r"^--tool (racecheck|synccheck) .* --kernel-name kns=overlap \S+14_sparse_v6_tiled ")

    def test_finding(self) -> None:
        self.script(self.programs / "13_sparse_v5_kernel", "echo 'PLANTED racecheck 3'")
        result = self.call("--only", "12,13", "--gpus", "1")
        self.assertEqual(result.returncode, 1)
        for tool, chapter, count, errors, remark in self.rows(result):
            bad = (tool, chapter) == ("racecheck", "13_sparse_v5_kernel")
            self.assertEqual(errors, "3" if bad else "0")
            log = self.logs / f"{tool}_{chapter}_{count}.log"
            self.assertEqual(log.exists(), bad)
            self.assertEqual(remark, f"see {log}" if bad else "")
            self.assertTrue(not bad or "PLANTED" in log.read_text())
        self.assertRegex(result.stdout.splitlines()[-1], r"^1 of 6 runs with findings")

    def test_program_that_hangs(self) -> None:
        self.script(self.programs / "04_copy_engine", "exec sleep 60")
        began = time.monotonic()
        result = self.call("--only", "03,04", "--gpus", "2", "--timeout", "1")
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(result.returncode, 1)
        rows = {row[1][:2]: row for row in self.rows(result)}
        self.assertEqual(rows["03"][3:], ("0", ""))
        self.assertEqual(rows["04"][3], "-")
        self.assertRegex(rows["04"][4], r"^not finished after 1 s; see .*memcheck_04_copy_engine_2\.log$")

    def test_program_that_fails(self) -> None:
        self.script(self.programs / "05_two_streams", "echo '05_two_streams: rank 1: planted'; exit 2")
        result = self.call("--only", "5", "--gpus", "1")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(self.rows(result)[0][4], r"^exit status 2: 05_two_streams: rank 1: planted; see ")

    def test_a_filter_that_chooses_no_test(self) -> None:
        self.script(self.programs / "07_mlp_block_test", "echo '[==========] Running 0 tests from 0 test suites.'")
        result = self.call("--only", "07", "--gpus", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn(("racecheck", "07_mlp_block", "1", "0"), [row[:4] for row in self.rows(result)])
        self.assertIn("no test has the name that the manifest gives", result.stdout)

    def test_sanitizer_that_does_not_start(self) -> None:
        (self.folder / "mute").touch()
        result = self.call("--only", "01", "--gpus", "1")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(self.rows(result)[0][4], "^memcheck gave no summary; see ")

    def test_program_that_is_skipped(self) -> None:
        self.script(self.programs / "03_ring_all_gather", "echo '03_ring_all_gather: skipped: no luck' >&2; exit 77")
        result = self.call("--only", "03", "--gpus", "1")
        self.assertEqual((result.returncode, self.rows(result)[0][4]), (0, "skipped: no luck"))

    def test_fewer_gpus(self) -> None:
        self.gpus(2)
        result = self.call("--only", "01")
        self.assertEqual((result.returncode, {row[2] for row in self.rows(result)}), (0, {"1", "2"}))
        self.assertEqual(result.stderr, "sanitize: runs on 4 GPUs are left out: here are 2\n")

    def test_nothing_to_run_with(self) -> None:
        for prepare, reason in ((lambda: self.gpus(0), "no GPU answers"),
                                ((self.bin / "compute-sanitizer").unlink, "compute-sanitizer is not here")):
            prepare()
            result = self.call()
            self.assertEqual((result.returncode, result.stdout), (77, ""))
            self.assertRegex(result.stderr, f"^sanitize: skipped: {reason}.*\n$")

    def test_refused(self) -> None:
        for arguments, sentence in ((("--fast",), "unknown option '--fast'"), (("--gpus",), "--gpus: '' is not a list"),
                                    (("--gpus=0",), "--gpus: '0' is not"), (("--only=1,x",), "'1,x' is not a list"),
                                    (("--only=77",), "there is no chapter 77"), (("--jobs=0",), "--jobs: '0' is not"),
                                    (("--timeout", "soon"), "--timeout: 'soon' is not a number")):
            with self.subTest(arguments):
                result = self.call(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(sentence, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_program_that_is_not_built(self) -> None:
        (self.programs / "02_gather_then_multiply").unlink()
        result = self.call("--only", "02")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, "chapter 02 is not built")

    def test_no_more_at_a_time_than_asked_for(self) -> None:
        count = 'n=$(ls "$SANDBOX"/running.* 2>/dev/null | wc -l); echo $n >> "$SANDBOX/most"'
        os.symlink(shutil.which("ls"), self.bin / "ls")
        for chapter in CHAPTERS[:6]:
            self.script(self.programs / chapter,
                        f'> "$SANDBOX/running.$$"; {count}; sleep 0.3; rm "$SANDBOX/running.$$"')
        self.assertEqual(self.call("--only", "1,2,3,4,5,6", "--gpus", "1", "--jobs", "3").returncode, 0)
        self.assertEqual(max((self.folder / "most").read_text().split()), "3")

    def test_help(self) -> None:
        result = self.call("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for option in ("--gpus", "--only", "--jobs", "--timeout", "77"):
            self.assertIn(option, result.stdout)


if __name__ == "__main__":
    unittest.main()
