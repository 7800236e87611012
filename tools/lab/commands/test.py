"""build and run the quick tests: all of them, or a chapter's"""
import argparse
from typing import List, Optional

import chapters
from build import Build, jobs, set_up
from process import Refusal, run
from program import of_work, work_on


def arguments(parser: argparse.ArgumentParser) -> None:
    chapters.add_to(parser, nargs="?")
    for scope, text in (("slow", "the slow tests (programs, mutants, 8 ranks, random sizes)"),
                        ("full", "the longest tests (blanks of assignments, a new chapter)"), ("all", "everything")):
        parser.add_argument(f"--{scope}", dest="scope", action="store_const", const=scope, default="quick", help=text)
    parser.add_argument("--work", action="store_true", help="the chapter's tests of your header (after ./lab start NN)")


def main(call: argparse.Namespace) -> int:
    if call.work:
        return _of_work(call)
    # What takes longest to build is quick for its chapter alone (tests/CMakeLists.txt).
    chapter_only = "" if call.chapter else "|chapter_only"
    labels = _labels(call.chapter) + {"quick": ["-LE", f"^(slow|full{chapter_only})"], "slow": ["-L", f"^(slow{chapter_only})"],
                                      "full": ["-L", "^full"], "all": []}[call.scope]
    mutants = "ON" if call.scope in ("slow", "all") else "OFF"
    full = "ON" if call.scope in ("full", "all") else "OFF"
    target = _target(call.chapter, "quick" if call.scope == "quick" else "all")
    return _test(set_up("test", call.backend, call.yes), target, labels,
                 [f"-DOVERLAP_MUTANTS={mutants}", f"-DOVERLAP_FULL={full}"])


def of_the_race_build(chapter: Optional[str], yes: bool) -> int:
    """./lab race --test: also compares the schedules with those of the build without the detector."""
    labels = _labels(chapter)
    plain = set_up("test", "virtual", yes)
    plain.build(" ".join([*chapters.names(), "planted_programs"]) if chapter is None else chapters.find(chapter), "-DBUILD_TESTING=ON")
    return _test(plain.race(), _target(chapter, "all"), [*labels, "-LE", "^full"], ["-DOVERLAP_MUTANTS=ON", f"-DOVERLAP_PLAIN_BUILD={plain.folder}"])


def of_the_check_build(chapter: Optional[str], yes: bool) -> int:
    """./lab check --test."""
    return _test(set_up("test", "virtual", yes).check(), _target(chapter, "quick"), _labels(chapter), ["-DOVERLAP_MUTANTS=ON"])


def _of_work(call: argparse.Namespace) -> int:
    """The chapter's tests with the reader's header."""
    if call.chapter is None:
        raise Refusal("test --work needs a chapter: ./lab test NN --work")
    folder = work_on(call.chapter)
    build = set_up("test", call.backend or "virtual", call.yes)
    build.build(f"work_{folder.name}_test", "-DBUILD_TESTING=ON", *of_work(folder).settings)
    build.need_gpus()
    return 1 if run(build.command(f"work/{folder.name}_test") + ["--gtest_brief=1"]) else 0


def _target(chapter: Optional[str], of_everything: str) -> str:
    """The target of a chapter's programs and tests, or of everything."""
    return of_everything if chapter is None else f"chapter_{chapters.find(chapter)[:2]}"


def _labels(chapter: Optional[str]) -> List[str]:
    return [] if chapter is None else ["-L", f"chapter_{chapters.find(chapter)[:2]}$"]


def _test(build: Build, target: str, labels: List[str], settings: List[str]) -> int:
    build.build(target, "-DBUILD_TESTING=ON", *settings)
    build.need_gpus()
    # On real GPUs as many as tests/CMakeLists.txt assumes (overlap_test_alone), independent of the number of cores.
    at_a_time = "3" if build.backend == "cuda" else jobs()
    status = run(["ctest", "--test-dir", str(build.folder), *labels, "--no-tests=error", "--output-on-failure",
                  "--timeout", "300", "-j", at_a_time])
    return 1 if status else 0
