"""Runs one case: a fresh process of the submission reads the judge's inputs (course/runner/judge.cpp) from a pipe and answers with
one framed message, which the judge compares with its own reference. The plain build repeats the case in more schedules.
"""
import dataclasses
import json
import pathlib
import re
from typing import Any, Dict, List, Optional

import cases
from cases import Case
from processes import trusted
from sandbox import Limits, Sandbox
from task import Task
from unit import Kit

MEGABYTE = 1024 * 1024
PLAIN = Limits(seconds=12, memory=1024 * MEGABYTE)
RACE = Limits(seconds=20, memory=3072 * MEGABYTE)
REPORTED = "reported by the submission"
MORE_SCHEDULES = 2  # in the plain build, besides the case's own
LINES_OF_A_RACE = 30


@dataclasses.dataclass
class Verdict:
    """The verdict on one case. The judge compared the result; the submission's process reported all else."""

    case: Case
    right: bool = False
    why: str = ""  # empty if the result is right
    race: str = ""  # report of a race, a deadlock or an illegal access
    links: Optional[Dict[str, List[int]]] = None  # "0 to 1": bytes, copies
    ended: bool = False  # by a limit
    host_waits: Optional[int] = None  # host waits for GPUs on all ranks, if counted
    memory: Optional[List[int]] = None  # bytes allocated on GPUs, by rank
    kernel_ns: Optional[List[int]] = None  # modelled time of each rank's kernels in the chapter's namespace, if counted
    elapsed_ns: int = 0  # modelled time of all calls, if counted


class CaseRunner:
    """Runs cases of one submission in one build."""

    def __init__(self, kit: Kit, sandbox: Sandbox, program: List[str], judge: pathlib.Path, secret: bytes, owner: str,
                 patience: float) -> None:
        self.kit, self.sandbox, self.program, self.judge, self.secret, self.owner = kit, sandbox, program, judge, secret, owner
        self.patience = patience  # factor on all time limits

    def run(self, case: Case) -> Verdict:
        """Runs the case in all its schedules. Returns the first verdict that is not right, else the verdict of the case's own
        schedule."""
        first = self.run_once(case)
        if case.criterion not in ("exact", "uneven", "ranks"):
            return first
        failed, schedule = first, case.schedule
        for number in range(MORE_SCHEDULES):
            if not failed.right or failed.race:
                break
            schedule = cases.schedule_of(cases.number_of(self.secret, "schedule", case.name, str(number)))
            failed = self.run_once(dataclasses.replace(case, schedule=schedule, timed=False))
        if failed.right and not failed.race:
            return first
        if schedule is None or failed.ended:
            return dataclasses.replace(failed, case=case)
        usual = first if case.schedule is None else self.run_once(dataclasses.replace(case, schedule=None))
        if not usual.right:
            return dataclasses.replace(usual, case=case)
        why = f"right in the usual order, wrong with schedule {schedule} (./try --schedule {schedule}): {failed.why}"
        return dataclasses.replace(failed, case=case, why=why)

    def run_once(self, case: Case) -> Verdict:
        """One process of the submission: the judge makes its inputs and checks its answer."""
        words = [*case.words(self.kit.machine), f"seed={cases.number_of(self.secret, self.owner, case.criterion, case.name)}"]
        if case.timed:
            words.append(f"kernels={self.kit.task.namespace}")
        inputs = trusted([str(self.judge), "inputs", *words])
        limits = PLAIN if case.build == "plain" else RACE
        limits = dataclasses.replace(limits, seconds=limits.seconds * self.patience)
        outcome = self.sandbox.run(self.program, limits, inputs, frame=True)
        verdict = Verdict(case)
        if outcome.ended:
            verdict.why, verdict.ended = outcome.ended, True
            return verdict
        if outcome.status == 3 or outcome.status == 66 and "ThreadSanitizer" in outcome.output:
            verdict.race = report_of(outcome.output, self.kit.task)
        answer = trusted([str(self.judge), "check", *words], outcome.frame)
        self._compare(json.loads(answer), verdict, outcome.status, outcome.output)
        return verdict

    def _compare(self, answer: Dict[str, Any], verdict: Verdict, status: int, output: str) -> None:
        if not answer["framed"]:
            if answer["bytes"]:
                verdict.why = f"its answer has {answer['bytes']} bytes of {answer['bytes_expected']}"
            else:
                said = last_line(output)
                verdict.why = f"it ended with status {status} and no result" + (f": {said}" if said else "")
            if verdict.race:
                verdict.why = verdict.race.splitlines()[0]
            return
        case = verdict.case
        verdict.right, verdict.why = answer["right"], answer["wrong"]
        verdict.links = {link_name(link, case.ranks): [link["bytes"], link["copies"]] for link in answer["links"]}
        verdict.memory = answer["memory"]
        if case.timed:
            verdict.kernel_ns, verdict.elapsed_ns = answer["kernel_ns"], max(answer["elapsed_ns"])
        if case.only_enqueues:
            verdict.host_waits = sum(answer["host_waits"])
            through_host = next((name for name in verdict.links if "the host" in name), "")
            if verdict.right and through_host:
                verdict.right = False
                verdict.why = f"{through_host}: {verdict.links[through_host][0]} bytes are copied; the task's data stay on the GPUs"


def link_name(link: Dict[str, int], ranks: int) -> str:
    """A link's name in reports; index `ranks` is the host."""
    ends = ["the host" if link[end] == ranks else f"rank {link[end]}" for end in ("from", "to")]
    return f"{ends[0]} to {ends[1]}"


def last_line(output: str) -> str:
    """The last line of a program's output: why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return re.sub(r"^submission: ", "", lines[-1])[:1000] if lines else ""


def report_of(output: str, task: Task) -> str:
    """The first report of a race or a deadlock, else the sentence of the failure; lines are those of the student's file."""
    text = re.sub(r"(?:/var/tmp/overlap-\w+-\w+/(?:work|include/\w+)/|\./)", "", output)
    text = text.replace(f"{task.chapter}/{task.header}", task.header)
    text = re.sub(r"enqueued at (runner\.cpp:\d+)", r"enqueued by the runner, before or behind the call (\1)", text)
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if re.search(r"race|deadlock", line, re.IGNORECASE)), None)
    if first is None:
        return last_line(text)
    return "\n".join(line.rstrip() for line in lines[first:first + LINES_OF_A_RACE] if line.strip()).strip()
