"""Judges tasks that only enqueue: the submission writes a log of its calls, and a program without its code makes these calls
again, on secret data, in several schedules, and in the race build (tools/teaching/replay). No word of the process counts.
"""
import dataclasses
import json
import pathlib
from typing import Any, Dict, List, Optional

import cases
from cases import Case
from judge import LINES_OF_A_RACE, PLAIN, FramedJudge, Judge, Verdict, last_line, link_name
from processes import trusted
from sandbox import Limits, Sandbox
from task import ROOT
from unit import Kit

REPLAYED = "replayed by the judge, on data of its own"
KERNELS = "of copies, products and waits: replayed by the judge; of kernels: reported by the submission"
MOST_LOG = (16 << 20) + 1  # one more than a log may have: the judge says so
LOG = Limits(seconds=PLAIN.seconds, memory=PLAIN.memory, frame=MOST_LOG)
MORE_SCHEDULES = 2  # in the plain build, beside the case's own
REPLAY_SECONDS = {"plain": 10, "race": 20}


class ReplayJudge:
    """One log of each case; from then on the submission has no part in it."""

    def __init__(self, kit: Kit, sandbox: Sandbox, builds: Dict[str, pathlib.Path], secret: bytes, owner: str, patience: float) -> None:
        self.kit, self.sandbox, self.builds, self.secret, self.owner, self.patience = kit, sandbox, builds, secret, owner, patience

    def run(self, case: Case) -> Verdict:
        """Of the first schedule that is not right, else of all."""
        log = self._log(case)
        if isinstance(log, Verdict):
            return log
        kind = "race" if case.criterion == "race" else "plain"
        verdict = Verdict(case)
        for schedule in self._schedules(case, kind):
            found = self._replay(case, kind, log, schedule)
            verdict = self._verdict(case, found)
            if not verdict.right:
                return verdict
        return verdict

    def _schedules(self, case: Case, kind: str) -> List[Optional[int]]:
        more = range(MORE_SCHEDULES if kind == "plain" else 0)
        return [case.schedule, *(cases.number_of(self.secret, "schedule", case.name, str(number)) for number in more)]

    def _log(self, case: Case) -> "bytes | Verdict":
        limits = dataclasses.replace(LOG, seconds=LOG.seconds * self.patience)
        words = dataclasses.replace(case, schedule=None).words(self.kit.machine)
        outcome = self.sandbox.run(["./log", *words], limits, frame=True)
        if outcome.ended:
            return Verdict(case, why=outcome.ended, ended=True)
        if not outcome.frame:
            said = last_line(outcome.output)
            return Verdict(case, why=f"it ended with status {outcome.status} and no log of its calls" + (f": {said}" if said else ""))
        return outcome.frame

    def _replay(self, case: Case, kind: str, log: bytes, schedule: Optional[int]) -> Dict[str, Any]:
        task = self.kit.task
        seed = cases.number_of(self.secret, self.owner, case.criterion, case.name)
        command = [str(self.builds[kind] / "bin" / f"replay_{task.chapter}"), "/dev/stdin", "--json", "--only", task.replay, "--gpus",
                   str(case.ranks), "--m", str(case.m), "--n", str(case.n), "--k", str(case.k), "--type", case.type, "--calls",
                   str(case.calls), "--seed", str(seed), "--seconds", str(round(REPLAY_SECONDS[kind] * max(1, self.patience)))]
        command += [] if schedule is None else ["--schedule", str(schedule)]
        race_run = ["bash", str(ROOT / "tools" / "race_run")] if kind == "race" else []
        found: Dict[str, Any] = json.loads(trusted([*race_run, *command], log, statuses=(0, 1, 2, 3)))
        return found

    def _verdict(self, case: Case, found: Dict[str, Any]) -> Verdict:
        word, sentence, report = found["verdict"], found["sentence"], found["report"]
        verdict = Verdict(case, right=word == "right", trust=REPLAYED)
        if word in ("race", "deadlock"):
            lines = [line.rstrip() for line in report.splitlines() if line.strip()][:LINES_OF_A_RACE]
            verdict.race = "\n".join(lines) or f"{word}: {sentence}"
            verdict.why = verdict.race.splitlines()[0]
        elif word == "refused":
            verdict.why = f"its calls cannot be made again: {sentence}"
        elif word == "wrong result":
            verdict.why = _wrong(found)
        elif word != "right":
            verdict.why, verdict.ended = sentence, word == "timeout"
        if "links" in found:
            verdict.links = {link_name(link, case.ranks): [link["bytes"], link["messages"]] for link in found["links"]}
            verdict.memory = found["memory"]
            verdict.host_waits = sum(rank["counted"]["host_waits"] for rank in found["cost"])
        return verdict


def _wrong(found: Dict[str, Any]) -> str:
    """As the judge of framed answers says it."""
    first = found["first_wrong"]
    never = " (never written?)" if first["found"] == "NaN" else ""
    return (f"rank {first['rank']}: {found['wrong_elements']} of {found['elements']} elements are wrong; the first is "
            f"C[{first['row']}, {first['column']}] in its shard ({first['shard']}): expected {first['expected']}, found {first['found']}{never}")


class KernelsJudge:
    """For headers with kernels of their own: their results are framed, since a replay launches the chapter's kernels; the order
    and the bytes of all else are replayed."""

    def __init__(self, framed: FramedJudge, replay: ReplayJudge) -> None:
        self.framed, self.replay = framed, replay

    def run(self, case: Case) -> Verdict:
        """Right only if both are."""
        judges: List[Judge] = [self.framed, self.replay]
        verdict = Verdict(case)
        for judge in judges:
            verdict = judge.run(case)
            if not verdict.right or verdict.race:
                break
        return dataclasses.replace(verdict, trust=KERNELS)
