"""Converts verdicts to points, each with its reason."""
import dataclasses
import re
from typing import Callable, Dict, List, Optional, Sequence

from case_run import CaseRunner, Verdict
from cases import Case
from task import Lesson

CRITERIA = {"build": 10, "exact": 20, "uneven": 15, "ranks": 15, "race": 20, "cost": 10, "lesson": 10}
MOST_TIME = 2  # limit on an extension's kernel time, as a factor of its worked solution's
MOST_ELAPSED = 1.25  # limit on a call's time, as a factor of the chapter's header's
TITLES = {"build": "builds", "exact": "exact result", "uneven": "uneven sizes", "ranks": "all P", "race": "race-free", "cost": "cost",
          "lesson": "lesson"}


HOST_ACCESS = re.compile(r"the host (reads|writes) .*which only GPUs can access")  # in the check build


@dataclasses.dataclass
class Mark:
    """The points of one criterion; None if not judged."""

    criterion: str
    points: Optional[float]
    most: int
    reason: str
    details: str = ""


@dataclasses.dataclass
class Grade:
    """All marks of a submission."""

    marks: List[Mark]
    isolation: str
    seconds: float = 0
    variation: str = ""  # the variation by which it was graded

    @property
    def points(self) -> float:
        """The sum over judged criteria."""
        return sum(mark.points or 0 for mark in self.marks)

    @property
    def judged(self) -> int:
        """The most points that judged criteria can give."""
        return sum(mark.most for mark in self.marks if mark.points is not None)


def refused(reason: str, details: str = "") -> List[Mark]:
    """The marks of a submission that did not run."""
    return [Mark(name, 0, most, reason if name == "build" else "not run", details if name == "build" else "")
            for name, most in CRITERIA.items()]


def marks_of(verdicts: Sequence[Verdict], expected: Callable[[Case], Verdict], race: str, lesson: Lesson,
             memory: bool = False) -> List[Mark]:
    """The marks of a submission that builds. `race`: why races cannot be judged here, empty if they can; `memory`: memory is
    part of the cost."""
    marks = [Mark("build", CRITERIA["build"], CRITERIA["build"], "it compiles, and its unit keeps to itself")]
    by: Dict[str, List[Verdict]] = {name: [each for each in verdicts if each.case.criterion == name] for name in (*CRITERIA, "access")}
    host = next((each for each in by["access"] if HOST_ACCESS.search(each.race)), None)
    if host is not None:  # a real GPU would reject it
        return [*marks, Mark("exact", 0, CRITERIA["exact"], f"{host.case.name}: {host.race.splitlines()[0]}"),
                *(Mark(name, 0, CRITERIA[name], "nothing: the host accesses memory of a GPU") for name in list(CRITERIA)[2:])]
    for name in ("exact", "uneven", "ranks"):
        marks.append(_result(name, by[name]))
    plain = [each for name in ("exact", "uneven", "ranks") for each in by[name]]
    any_right = any(each.right for each in plain)
    marks.append(_race(by["race"], race, any_right))
    marks.append(_cost(plain, expected, memory))
    marks.append(_lesson(by["access"], by["lesson"][0], expected, lesson))
    return marks


def _result(name: str, verdicts: Sequence[Verdict]) -> Mark:
    most = CRITERIA[name]
    wrong = [each for each in verdicts if not each.right]
    if not wrong:
        calls = sum(each.case.calls for each in verdicts)
        return Mark(name, most, most, f"all elements of {calls} calls in {len(verdicts)} runs are right")
    right = len(verdicts) - len(wrong)
    points = 0 if name == "exact" else round(most * right / len(verdicts))
    return Mark(name, points, most, f"{wrong[0].case.name}: {wrong[0].why}",
                "\n".join(f"{each.case.name}: {each.why}" for each in wrong[1:4]))


def _race(verdicts: Sequence[Verdict], why_not: str, any_right: bool) -> Mark:
    most = CRITERIA["race"]
    if why_not:
        return Mark("race", None, most, f"not judged: {why_not}")
    raced = next((each for each in verdicts if each.race), None)
    if raced is not None:
        return Mark("race", 0, most, f"{raced.case.name}: {raced.race.splitlines()[0]}", raced.race.partition("\n")[2])
    failed = next((each for each in verdicts if not each.right), None)
    if failed is not None:
        return Mark("race", 0, most, f"{failed.case.name}: {failed.why}" if any_right else "nothing right was computed")
    return Mark("race", most, most, f"no race and no deadlock in {len(verdicts)} runs with the race detector")


def _cost(verdicts: Sequence[Verdict], expected: Callable[[Case], Verdict], memory: bool) -> Mark:
    most = CRITERIA["cost"]
    counted = [each for each in verdicts if each.right]
    if len(counted) < len(verdicts) / 2:
        return Mark("cost", 0, most, "too few results are right")
    for verdict in counted:
        card = expected(verdict.case)
        difference = _difference(verdict, card) or (_more_memory(verdict, card) or _more_time(verdict, card) if memory else "")
        if difference:
            return Mark("cost", 0, most, difference)
    if len(counted) < len(verdicts):
        return Mark("cost", round(most * len(counted) / len(verdicts)), most, "right where the result is right")
    return Mark("cost", most, most, f"bytes and messages of every link in {len(counted)} runs are those of the {'worked solution, and so is the memory' if memory else 'chapter'}")


def _lesson(checked: Sequence[Verdict], timed: Verdict, expected: Callable[[Case], Verdict], lesson: Lesson) -> Mark:
    """Whether the submission computes as the chapter teaches, without illegal accesses."""
    most = CRITERIA["lesson"]
    wrong = next((each for each in [*checked, timed] if each.race or not each.right), None)
    if wrong is not None:
        report = wrong.race or wrong.why
        return Mark("lesson", 0, most, f"{wrong.case.name}: {report.splitlines()[0]}", report.partition("\n")[2])
    card = expected(timed.case)
    for rank, (found, wanted) in enumerate(zip(timed.kernel_ns or [], card.kernel_ns or [])):
        if lesson.kernels and wanted > 0 and found == 0:
            return Mark("lesson", 0, most, f"{lesson.about}: rank {rank} launches no kernel of its own")
    times = f"{timed.elapsed_ns / 1000:.1f} us (modelled); the chapter {card.elapsed_ns / 1000:.1f} us"
    if timed.elapsed_ns > MOST_ELAPSED * card.elapsed_ns:
        return Mark("lesson", 0, most, f"{lesson.about}: {timed.case.name} takes {times}")
    return Mark("lesson", most, most, f"{lesson.about}: {times}")


def _difference(verdict: Verdict, card: Verdict) -> str:
    """The first link that differs, else host waits that the chapter does not need."""
    found, wanted, case = verdict.links or {}, card.links or {}, verdict.case
    for link in sorted({*found, *wanted}, key=lambda name: ("host" in name, name)):
        (bytes_found, messages), (bytes_wanted, messages_wanted) = found.get(link, [0, 0]), wanted.get(link, [0, 0])
        if (bytes_found, messages) != (bytes_wanted, messages_wanted):
            return (f"{case.name}, {case.calls} calls: {link}: {bytes_found} bytes in {messages} messages counted; the chapter "
                    f"moves {bytes_wanted} in {messages_wanted}")
    if verdict.host_waits is not None and card.host_waits is not None and verdict.host_waits > card.host_waits:
        return f"{case.name}, {case.calls} calls: hosts wait {verdict.host_waits} times for their GPUs; with the chapter {card.host_waits} times"
    return ""


def _more_memory(verdict: Verdict, card: Verdict) -> str:
    """The first rank that allocates more than the chapter's header."""
    for rank, (found, wanted) in enumerate(zip(verdict.memory or [], card.memory or [])):
        if found > wanted:
            return f"{verdict.case.name}: rank {rank} allocates {found} bytes; {wanted} are enough"
    return ""


def _more_time(verdict: Verdict, card: Verdict) -> str:
    """A sentence if the kernels of all ranks together exceed the time limit of the model."""
    found, wanted = sum(verdict.kernel_ns or []), sum(card.kernel_ns or [])
    if found <= MOST_TIME * wanted:
        return ""
    return f"{verdict.case.name}: its kernels take {found / 1000:.1f} us (modelled); {wanted / 1000:.1f} us are enough"


def judge_all(runner: CaseRunner, cases: Sequence[Case], over: Callable[[], bool]) -> List[Verdict]:
    """Judges all cases; after two runs that a limit ended, or once `over()`, the remaining cases are not run."""
    verdicts: List[Verdict] = []
    ended = 0
    for case in cases:
        if ended >= 2 or over():
            verdicts.append(Verdict(case, why="not run: " + ("two runs were ended by a limit" if ended >= 2 else "its time is over (--seconds, where the machine is busy)")))
            continue
        verdicts.append(runner.run(case))
        ended += verdicts[-1].ended
    return verdicts
