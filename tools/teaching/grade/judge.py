"""Judges one case. The grader knows Judge.run() alone: FramedJudge runs the submission on secret data and compares its framed
answer; for tasks that only enqueue, ReplayJudge (replay_judge.py) takes its place, which believes no word of the process.
"""
import dataclasses
import json
import pathlib
import re
from typing import Any, Dict, List, Optional, Protocol

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
LINES_OF_A_RACE = 30


@dataclasses.dataclass
class Verdict:
    """What is known of one case."""

    case: Case
    right: bool = False
    why: str = ""  # where it is not right
    race: str = ""  # a report of a race or a deadlock
    links: Optional[Dict[str, List[int]]] = None  # "0 to 1": bytes, copies
    ended: bool = False  # by a limit
    host_waits: Optional[int] = None  # waits of all hosts for their GPUs, where they are counted
    memory: Optional[List[int]] = None  # that each rank allocates on GPUs, where it is counted
    kernel_ns: Optional[List[int]] = None  # modelled, of each rank's kernels of the chapter's namespace, where it is counted
    trust: str = REPORTED  # of races and counts


class Judge(Protocol):
    """What the grader asks."""

    def run(self, case: Case) -> Verdict:
        """Judges a case; `criterion` race in the race build."""


class FramedJudge:
    """Inputs by pipe, one framed message back; a fresh process for each case."""

    def __init__(self, kit: Kit, sandbox: Sandbox, program: Dict[str, List[str]], judge: pathlib.Path, secret: bytes, owner: str,
                 patience: float) -> None:
        self.kit, self.sandbox, self.program, self.judge, self.secret, self.owner = kit, sandbox, program, judge, secret, owner
        self.patience = patience  # the limits' seconds times this

    def run(self, case: Case) -> Verdict:
        """One process of the submission between two of the judge."""
        kind = "race" if case.criterion == "race" else "plain"
        words = [*case.words(self.kit.machine), f"seed={cases.number_of(self.secret, self.owner, case.criterion, case.name)}"]
        if case.timed:
            words.append(f"kernels={self.kit.task.namespace}")
        inputs = trusted([str(self.judge), "inputs", *words])
        limits = RACE if kind == "race" else PLAIN
        limits = dataclasses.replace(limits, seconds=limits.seconds * self.patience)
        outcome = self.sandbox.run(self.program[kind], limits, inputs, frame=True)
        verdict = Verdict(case)
        if outcome.ended:
            verdict.why, verdict.ended = outcome.ended, True
            return verdict
        if outcome.status == 3:
            verdict.race = report_of(outcome.output, self.kit.task)
        elif outcome.status == 66 and "ThreadSanitizer" in outcome.output:
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
        verdict.right, verdict.why = answer["right"], answer["wrong"]
        verdict.links = {link_name(link, verdict.case.ranks): [link["bytes"], link["copies"]] for link in answer["links"]}
        verdict.memory = answer["memory"]
        verdict.kernel_ns = answer["kernel_ns"] if verdict.case.timed else None


def link_name(link: Dict[str, int], ranks: int) -> str:
    """For reports; the host has the number behind the last rank's."""
    ends = ["the host" if link[end] == ranks else f"rank {link[end]}" for end in ("from", "to")]
    return f"{ends[0]} to {ends[1]}"


def last_line(output: str) -> str:
    """Of what a program said: why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return re.sub(r"^submission: ", "", lines[-1])[:300] if lines else ""


def report_of(output: str, task: Task) -> str:
    """The first report of a race or a deadlock, with the student's lines as the student knows them."""
    text = re.sub(r"(?:/var/tmp/overlap-\w+-\w+/(?:work|include/\w+)/|\./)", "", output)
    text = text.replace(f"{task.chapter}/{task.header}", task.header)
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if re.search(r"race|deadlock", line, re.IGNORECASE)), 0)
    return "\n".join(line.rstrip() for line in lines[first:first + LINES_OF_A_RACE] if line.strip()).strip()
