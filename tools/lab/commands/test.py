"""./lab test: builds and runs the tests of everything or of one chapter."""
from typing import List

import chapters
from build import Build, jobs, set_up
from call import Call
from chapters import ROOT
from process import Refusal, run
from program import of_work, work_on


def main(call: Call) -> int:
    """Builds and tests."""
    if "--work" in call.options:
        return _of_work(call)
    labels = _labels(call)
    scope = call.options[-1] if call.options else "--quick"
    if scope == "--quick":
        labels += ["-LE", "^(slow|full)"]
    if scope in ("--slow", "--full"):
        labels += ["-L", f"^{scope[2:]}"]
    mutants = "ON" if scope in ("--slow", "--all") else "OFF"
    full = "ON" if scope in ("--full", "--all") else "OFF"
    target = "quick" if scope == "--quick" else "all"
    return _test(set_up("test", call.backend, call.yes), _target(call, target), labels,
                 [f"-DOVERLAP_MUTANTS={mutants}", f"-DOVERLAP_FULL={full}"])


def of_the_race_build(call: Call) -> int:
    """./lab race --test: schedules are compared with those of the programs without the detector."""
    labels = _labels(call)
    plain = set_up("test", "virtual", call.yes)
    for name in [*chapters.names(), "planted_programs"] if call.operand is None else [chapters.find(call.operand)]:
        plain.build(name, "-DBUILD_TESTING=ON")
    return _test(plain.race(), _target(call, "all"), labels, ["-DOVERLAP_MUTANTS=ON", f"-DOVERLAP_PLAIN_BUILD={plain.folder}"])


def _of_work(call: Call) -> int:
    """The chapter's tests with the reader's header."""
    if call.operand is None:
        raise Refusal("test --work needs a chapter: ./lab test NN --work")
    folder = work_on(call.operand)
    build = set_up("test", call.backend or "virtual", call.yes)
    build.build(f"work_{folder.name}_test", "-DBUILD_TESTING=ON", *of_work(folder).settings)
    build.need_gpus()
    return 1 if run(build.command(f"work/{folder.name}_test") + ["--gtest_brief=1"]) else 0


def _target(call: Call, of_everything: str) -> str:
    """What is built: a chapter's programs and tests, or those of everything."""
    return of_everything if call.operand is None else f"chapter_{chapters.find(call.operand)[:2]}"


def _labels(call: Call) -> List[str]:
    if call.operand is None:
        return []
    return ["-L", f"chapter_{chapters.find(call.operand)[:2]}$"]


def _test(build: Build, target: str, labels: List[str], settings: List[str]) -> int:
    build.build(target, "-DBUILD_TESTING=ON", *settings)
    build.need_gpus()
    # Real GPUs are shared: tests at the same time would see each other's memory, and take longer than one after the other.
    at_a_time = "1" if build.backend == "cuda" else jobs()
    status = run(["ctest", "--test-dir", str(ROOT / "build" / build.backend), *labels, "--no-tests=error",
                  "--output-on-failure", "--timeout", "300", "-j", at_a_time])
    return 1 if status else 0
