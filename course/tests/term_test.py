#!/usr/bin/env python3
"""A short term: grades a class's submissions of three chapters, and compares the CSV cell by cell. Then again, after one
submission has changed: only that one is graded anew.

Submissions are the chapters' own headers, their blanks (course/blank.py), mutants of them, and cheats that use up memory, fork,
print endlessly or delete files (museum/): each has a known grade, in any order of grading.

  term_test.py [NN_name ...]     all chapters, or these
"""
import csv
import pathlib
import subprocess
import sys
import tempfile
from typing import Dict, List, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "course" / "grade")]
from course import blank  # noqa: E402
import grader  # noqa: E402
import museum_test  # noqa: E402
from tools import mutants  # noqa: E402
import task  # noqa: E402

# For each submission: build, exact, uneven, ranks, race, cost, lesson; * is anything. Teachers look at which cells lost points.
TERM: Dict[str, List[Tuple[str, str, str]]] = {
    "03_ring_all_gather": [
        *(("cheat", name, "* * * * * * *") for name in ("eats_memory", "fork", "prints_without_end", "deletes_what_it_can")),
        ("honest", "", "10 20 15 15 20 10 10"), ("kernel", "", "10 20 15 15 20 10 10"), ("blank", "", "10 0 0 * 0 0 0"),
        ("race", "race_product_does_not_wait", "10 * * * 0 * *"), ("uneven", "rows_of_equal_shards", "10 20 * * * * *")],
    "04_copy_engine": [
        ("honest", "", "10 20 15 15 20 10 10"), ("blank", "", "10 0 0 * 0 0 0"), ("broken", "not C++", "0 0 0 0 0 0 0"),
        ("refused", "#include <sys/ptrace.h>", "0 0 0 0 0 0 0")],
    "06_reduce_scatter": [
        ("honest", "", "10 20 15 15 20 10 10"), ("blank", "", "10 0 * * 0 0 0"), ("broken", "not C++", "0 0 0 0 0 0 0"),
        ("refused", "#include <sys/ptrace.h>", "0 0 0 0 0 0 0")],
}


OWN_KERNEL = """
/// Clears `count` values.
template <typename T>
__global__ void clear(T* values, std::int64_t count) {
  __shared__ T zero;
  if (threadIdx.x == 0) zero = T{};
  __syncthreads();
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) values[i] = zero;
}

/// C = A B, where"""
RUN = "  void run(const T* a, const T* b, T* c, cudaStream_t stream) {\n"
LAUNCH = """    clear<<<2, 32, 0, stream>>>(c, whole_.m * balanced_share(whole_.n, rank_.size(), rank_.id()).size());
    CUDA_CHECK(cudaGetLastError());
"""


def with_own_kernel(source: str) -> str:
    """Chapter 03's header with a kernel of its own, which clears C first."""
    for original, own in (("\n/// C = A B, where", OWN_KERNEL), (RUN, RUN + LAUNCH)):
        if source.count(original) != 1:
            raise ValueError(f"{original!r} occurs {source.count(original)} times")
        source = source.replace(original, own)
    return source


def text_of(chosen: task.Task, kind: str, detail: str) -> str:
    source = chosen.solution.read_text(encoding="utf-8")
    if kind == "honest":
        return source
    if kind == "kernel":
        return with_own_kernel(source)
    if kind == "cheat":
        return museum_test.read(museum_test.MUSEUM / f"{detail}.cheat").source.decode()
    if kind == "blank":
        return blank.blanked(source, chosen.header)
    if kind in ("broken", "refused"):
        return source.replace("#pragma once\n", f"#pragma once\n{detail}\n")
    mutant = mutants.read_mutant(ROOT / "chapters" / chosen.chapter / "mutants" / f"{detail}.mutant")
    return mutants.apply_mutant(mutant, source)


def grade(chapter: str, folder: pathlib.Path, out: pathlib.Path, cache: pathlib.Path) -> Tuple[List[Dict[str, str]], str]:
    """The CSV's rows, and the command's output. These submissions may read the repository, because they come from it."""
    done = subprocess.run([sys.executable, "-I", str(ROOT / "course" / "grade"), chapter, "--submissions", str(folder), "--csv",
                           str(out), "--cache", str(cache), "--seconds", "300", "--unsafe"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    with open(out, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), done.stderr


def compared(row: Dict[str, str], wanted: str) -> str:
    """The differences of a row from the expected one."""
    names = ["build", "exact", "uneven", "ranks", "race", "cost", "lesson"]
    found = [row[name] for name in names]
    if any(cell not in (found[number], "*") for number, cell in enumerate(wanted.split())):
        return f"{' '.join(found)}, not {wanted}: {row['reason']}"
    if float(row["points"]) != sum(map(float, found)) or row["points judged"] != "100":
        return f"points {row['points']} of {row['points judged']}"
    return ""


def main() -> int:
    if grader.why_not_all():
        print(f"skipped: {grader.why_not_all()}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        cache = pathlib.Path(scratch, "cache")
        for chapter, students in ((chapter, TERM[chapter]) for chapter in sys.argv[1:] or TERM):
            chosen = task.tasks_of(chapter)[0]
            folder = pathlib.Path(scratch, chapter)
            for position, (kind, detail, _wanted) in enumerate(students):
                place = folder / f"Student {kind}_{position}_assignsubmission_file_"
                place.mkdir(parents=True)
                (place / chosen.header).write_text(text_of(chosen, kind, detail), encoding="utf-8")
            rows, _said = grade(chapter, folder, pathlib.Path(scratch, "out.csv"), cache)
            by_name = {row["submission"]: row for row in rows}
            for position, (kind, _detail, wanted) in enumerate(students):
                wrong = compared(by_name[f"Student {kind} {position}"], wanted)
                failed += bool(wrong)
                print(f"{'FAILED' if wrong else 'ok':6} {chapter[:2]} {kind} {wrong}", flush=True)
            if chapter[:2] == "03":
                changed = next(folder.glob("Student blank*")) / chosen.header
                changed.write_text(text_of(chosen, "broken", "not C++"), encoding="utf-8")
                again, said = grade(chapter, folder, pathlib.Path(scratch, "again.csv"), cache)
                kept = sum("(kept)" in line for line in said.splitlines())
                same = [row for row in again if row in rows]
                wrong = kept != len(students) - 1 or len(same) != len(students) - 1
                failed += wrong
                print(f"{'FAILED' if wrong else 'ok':6} 03 again: {kept} kept, {len(same)} rows alike", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
