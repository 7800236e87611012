#!/usr/bin/env python3
"""Tests of the blocks that other modules make for tools/pages/update_pages.py: mutants as bugs to see
(tools/pages/mutant_blocks.py), planted bugs (tools/pages/planted_blocks.py), and the index of calls
(tools/pages/call_index.py)."""
import sys
import os
import pathlib
import re
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.pages import mutant_blocks  # noqa: E402
from tools.pages import planted_blocks  # noqa: E402
from tools.pages import call_index  # noqa: E402
from tools.pages import update_pages  # noqa: E402

SOURCE = "".join(f"line {number}\n" for number in range(1, 10)).replace("line 5", "int next = rank + 1;")
MUTANT = """why: wrong neighbour
file: 01_sample/sample.cuh
verdict: {}
arguments: --gpus 2 --only "a b"{}
--- original
rank + 1;
--- mutant
rank + 2;
--- end
"""
DIFF = """```diff
--- chapters/01_sample/sample.cuh
+++ chapters/01_sample/sample.cuh
@@ -3,5 +3,5 @@
 line 3
 line 4
-int next = rank + 1;
+int next = rank + 2;
 line 6
 line 7
```

```
$ ./lab run 01 --gpus 2 --only 'a b'
"""


class BugTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("chapters/01_sample/sample.cuh", SOURCE)
        self.write("chapters/01_sample/main.cu", "")
        self.mutant("wrong result")
        self.program("printf 'args:'; printf ' <%s>' \"$@\"; echo; echo '3 elements are wrong' >&2; exit 1")

    def mutant(self, verdict: str, more: str = "") -> None:
        self.write("chapters/01_sample/mutants/wrong.mutant", MUTANT.format(verdict, more))

    def program(self, script: str, build: str = "virtual") -> pathlib.Path:
        return self.script(f"build/{build}/bin/changed/mutant_01_sample_wrong", script)

    def refused(self, sentence: str, argument: str = "01 wrong") -> None:
        with self.assertRaisesRegex(mutant_blocks.MutantError, sentence):
            mutant_blocks.block(argument, self.folder)

    def test_wrong_result(self) -> None:
        expected = DIFF + "args: <--gpus> <2> <--only> <a b>\n3 elements are wrong\n(exit status 1)\n```\n"
        self.assertEqual(mutant_blocks.block("01 wrong", self.folder), expected)
        self.assertEqual(mutant_blocks.block("01_sample wrong", self.folder), expected)

    def test_a_deleted_line_is_deleted_only(self) -> None:
        self.write("chapters/01_sample/mutants/wrong.mutant",
                   MUTANT.format("wrong result", "").replace("rank + 2;\n", "").replace("rank + 1;", "int next = rank + 1;"))
        self.program("exit 1")
        lines = mutant_blocks.block("01 wrong", self.folder).split("\n")
        self.assertEqual(lines[3:9], ["@@ -3,5 +3,4 @@", " line 3", " line 4", "-int next = rank + 1;", " line 6", " line 7"])

    def test_in_a_page(self) -> None:
        page = "a\n<!-- mutant 01 wrong -->\nold\n<!-- /mutant -->\nb\n"
        with mock.patch.object(update_pages, "REPOSITORY", self.folder):
            new = update_pages.updated(page, self.folder / "page.md", False, lambda *_: False)
        self.assertEqual(new, f"a\n<!-- mutant 01 wrong -->\n{mutant_blocks.block('01 wrong', self.folder)}<!-- /mutant -->\nb\n")

    def test_race(self) -> None:
        self.mutant("race", "\nreport: rank + 2")
        self.refused("build/race/bin/changed/mutant_01_sample_wrong is not built: ./lab pages .* ./lab race --test$")
        self.script("virtual_gpu/tools/race_run", 'STARTED=yes exec "$@"')
        self.program('[ "$STARTED" = yes ] && echo "WARNING: data race" && exit 3', "race")
        text = mutant_blocks.block("01 wrong", self.folder)
        self.assertIn("$ ./lab race 01 --gpus 2 --only 'a b'\nWARNING: data race\n(exit status 3)\n", text)

    def test_other_programs(self) -> None:
        for more, command in (("\nprogram: 01_more", "./lab run 01/more"), ("\ntest: 01_sample_some_test.cu", "build/virtual/bin/01_sample_test")):
            self.mutant("wrong result", more)
            self.program("exit 1")
            self.assertIn(f"$ {command} --gpus 2 --only 'a b'\n", mutant_blocks.block("01 wrong", self.folder))
        self.mutant("wrong result", "\nprogram: 01_more")
        self.program("exit 1")
        self.assertEqual(mutant_blocks.block("01_more wrong", self.folder), mutant_blocks.block("01 wrong", self.folder))
        self.refused("the mutant wrong is none of 01_less, but of 01_more", "01_less wrong")
        self.mutant("race", "\nreport: rank + 2\ntest: 01_sample_some_test.cu")
        self.assertTrue(mutant_blocks.command(mutant_blocks.mutant_of("01 wrong", self.folder)).startswith("virtual_gpu/tools/race_run build/race/bin/01_sample_test --"))

    def test_what_it_says_must_be_its_verdict(self) -> None:
        for script, sentence in (("exit 0", "its verdict is 'not noticed', not 'wrong result'"), ("exit 2", "status 2 is no verdict"),
                                 ("echo deadlock; exit 3", "its verdict is 'deadlock'"), ("kill -9 $$", "ended by signal 9")):
            self.program(script)
            self.refused(sentence)

    def test_not_built_or_old(self) -> None:
        program = self.program("exit 1")
        for source in ("chapters/01_sample/mutants/wrong.mutant", "chapters/01_sample/sample.cuh"):
            os.utime(self.folder / source, ns=(2 * 10**18, 2 * 10**18))
            self.refused(f"is older than {source}: ./lab pages builds it, and so does ./lab test --slow$")
            os.utime(self.folder / source, ns=(10**18, 10**18))
        program.unlink()
        self.refused("build/virtual/bin/changed/mutant_01_sample_wrong is not built")

    def test_no_such_mutant(self) -> None:
        for argument in ("01 right", "02 wrong", "01", "wrong", "01 ../01_sample/wrong", "1 wrong"):
            self.refused("names no mutant", argument)
        self.write("chapters/01_sample/sample.cuh", "nothing\n")
        self.refused("the original text occurs 0 times")

    def test_long_output_is_cut(self) -> None:
        for lines in (mutant_blocks.LINES, mutant_blocks.LINES + 1):
            self.program(f"seq {lines}; exit 1")
            said = mutant_blocks.block("01 wrong", self.folder).split("'a b'\n")[1].removesuffix("\n(exit status 1)\n```\n").split("\n")
            self.assertEqual(len(said), mutant_blocks.LINES)
            self.assertEqual(said[-1], str(lines) if lines == mutant_blocks.LINES else "...")

    def test_announcements_of_googletest(self) -> None:
        said = "Running main() from x\nNote: Google Test filter = a\n[==========] 1\n[----------] 1\n[ RUN      ] A.b\n[  FAILED  ] A.b\n[ok] Note\n"
        self.assertEqual(mutant_blocks.shortened(said), "[  FAILED  ] A.b\n[ok] Note")

    def test_drift(self) -> None:
        """Numbers of the output may change; the change, the command and all words may not."""
        end = "\n(exit status 1)\n```\n"
        old = mutant_blocks.comparable(DIFF + "took 1.25 ms at a.cuh:12" + end)
        for text, same in ((DIFF.replace("-3,5", "-13,5") + "took 2.5 ms at a.cuh:14" + end, True), (DIFF + "took 1 s at a.cuh:12" + end, False),
                           (DIFF.replace("rank + 2", "rank + 3") + "took 1.25 ms at a.cuh:12" + end, False),
                           (DIFF.replace("--gpus 2", "--gpus 3") + "took 1.25 ms at a.cuh:12" + end, False), ("(generated)\n", False),
                           (DIFF + "took 1.25 ms at a.cuh:12" + end.replace("1", "3"), False)):
            self.assertEqual(mutant_blocks.comparable(text) == old, same, text)
            self.assertEqual(update_pages.comparable("mutant", text), mutant_blocks.comparable(text))

    def test_either_access_of_a_race_may_come_first(self) -> None:
        end = "\n(exit status 3)\n```\n"
        read, write = "  read by gpu0: kernel, at a.cuh:12\n", "  write by gpu1: copy, at b.cuh:30\n"
        self.assertEqual(mutant_blocks.comparable(DIFF + "data race\n" + read + write + "why" + end),
                         mutant_blocks.comparable(DIFF + "data race\n" + write + read + "why" + end))
        self.assertNotEqual(mutant_blocks.comparable(DIFF + "data race\n" + read + write + "why" + end),
                            mutant_blocks.comparable(DIFF + "data race\n" + read + read + "why" + end))

    def test_targets(self) -> None:
        page = self.write("page.md", "<!-- mutant 01 wrong -->\n<!-- /mutant -->\n")
        again = self.write("again.md", "<!-- mutant 01 wrong -->\n<!-- /mutant -->\nnot `<!-- mutant 01 none -->`\n")
        self.assertEqual(list(mutant_blocks.targets([page, again], self.folder)), ["virtual mutant_01_sample_wrong"])
        self.mutant("race", "\nreport: rank + 2")
        self.assertEqual(list(mutant_blocks.targets([page], self.folder)), ["race mutant_01_sample_wrong"])


PLANTED = """__global__ void share(int* a, bool fixed) {
  a[0] = 1;  // @late
  if (fixed) __syncthreads();
  if (!fixed) again();  // not this
  a[1] = a[0];  // @late
}
void late(bool fixed) {
  int sum = 0;
  prepare(sum);
  for (int i = 0; i < 2; ++i) {
    share<<<1, 2>>>(words, fixed);
    if (fixed) {
      wait(1);
    } else {
      wait(2);
    }
    const int scope = fixed ? cuda::scope<int, 2>
                            : near(sum, 1);
  }
  finish(sum);
  finish(scope);
}
"""


class PlantedTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("virtual_gpu/tests/race/planted_x.cu", PLANTED)

    def test_the_cure_is_added(self) -> None:
        self.assertEqual(planted_blocks.diff(PLANTED, "late", ["share"]),
                         " a[0] = 1;\n-again();  // not this\n+__syncthreads();\n a[1] = a[0];")

    def test_only_lines_that_matter_are_shown(self) -> None:
        self.assertEqual(planted_blocks.diff(PLANTED, "late", []).splitlines(),
                         ["-wait(2);", "+wait(1);", "-const int scope = near(sum, 1);", "+const int scope = cuda::scope<int, 2>;"])

    def test_refuses(self) -> None:
        for source, sentence in (("void late(bool fixed) {\n  f(!fixed);  // @late\n}\n", "nothing here can answer"),
                                 ("void late(bool fixed) {\n" + "  f();\n" * 10 + "}\n", "nothing of 'late'"),
                                 ("void later() {\n}\n", "0 functions")):
            with self.assertRaisesRegex(planted_blocks.PageError, sentence):
                planted_blocks.diff(source, "late", [])
        with self.assertRaisesRegex(planted_blocks.PageError, "is not COMMAND"):
            planted_blocks.block("walk planted_x late", self.folder)
        with self.assertRaisesRegex(planted_blocks.PageError, "build/check/bin/planted_x is not built: ./lab check --test"):
            planted_blocks.block("check planted_x late", self.folder)

    def test_report(self) -> None:
        self.script("build/virtual/bin/planted_x", "echo \"$*\" >&2; echo '  schedule time order, hash 1' >&2; exit 3")
        text = planted_blocks.block("run planted_x late share", self.folder)
        self.assertTrue(text.endswith("\n```\n\n```\nlate bug time\n(exit status 3)\n```\n"), text)
        self.script("build/virtual/bin/planted_x", "echo late 5 >&2; exit 3")
        text = planted_blocks.block("run planted_x late share", self.folder)
        for old, new, same in (("late 5", "late 7", True), ("late", "early", False), ("status 3", "status 4", False), ("a[0]", "a[2]", False)):
            self.assertEqual(planted_blocks.comparable(text) == planted_blocks.comparable(text.replace(old, new)), same, old)

    def test_gallery(self) -> None:
        """Twenty bugs, each with its block and the place where it was seen."""
        _, *entries = re.split("^### ", (REPOSITORY / "docs" / "gallery.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
        self.assertEqual([entry.split(".")[0] for entry in entries], [str(number) for number in range(1, 21)])
        for entry in entries:
            self.assertRegex(entry, re.compile(r"<!-- planted .*^\*\*Seen\*\* .*\]\(https://", re.DOTALL | re.MULTILINE))


class CallIndexTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("chapters/01_one/lesson.cuh", '#include "overlap/gpu/stream.hpp"\ncudaStream_t s(0); cudaMemcpyAsync(a, b); // cudaFree(x)\n')
        self.write("chapters/02_two/lesson.cuh", '#include "overlap/gpu/stream.hpp"\nncclSend(a); log("ncclRecv("); cub::A::B(c);\n'
                                                 "__syncthreads(); my_cudaFree(x); /* cudaFree(\n x) */ f(&cudaMallocHost);\n")
        self.write("chapters/02_two/main.cu", "cudaMemcpyAsync(a, b); cuda::atomic_ref<int> r(x);")
        self.write("chapters/02_two/experiments/more.cu", "cudaFree(x);")
        self.write("common/overlap/gpu/stream.hpp", "int stream();")
        self.write("common/overlap/gpu/backend/stream.cpp", "cudaStreamCreate(&s); cudaMemcpyAsync(a, b);")
        self.write("common/overlap/gpu/unused.hpp", "cudaFree(x);")

    def test_table(self) -> None:
        text = call_index.call_table(self.folder)
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        helper = "[`stream.hpp`](../common/overlap/gpu/stream.hpp) (from 01)"
        self.assertEqual(rows, [
            f"| `cudaMemcpyAsync` | [01](../chapters/01_one/lesson.cuh), [02](../chapters/02_two/main.cu) | {helper} |",
            f"| `cudaStreamCreate` |  | {helper} |",
            "| `__syncthreads` | [02](../chapters/02_two/lesson.cuh) |  |", "| `cuda::atomic_ref` | [02](../chapters/02_two/main.cu) |  |",
            "| `ncclSend` | [02](../chapters/02_two/lesson.cuh) |  |", "| `cub::A::B` | [02](../chapters/02_two/lesson.cuh) |  |"])
        self.assertEqual([line for line in text.splitlines() if line.startswith("#")], ["## CUDA runtime", "## In kernels", "## NCCL", "## CUB"])

    def test_of_the_repository(self) -> None:
        text = call_index.call_table(REPOSITORY)
        for row in (r"`cudaMemcpyAsync` \| \[01\]", r"`ncclAllGather` \| \[02\]", r"`cuStreamWaitValue32` \| \[04\]", r"`cublasGemmEx` \|  \| \[`gemm.hpp`"):
            self.assertRegex(text, row)


if __name__ == "__main__":
    unittest.main()
