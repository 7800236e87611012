"""./lab run --nodes: a program as several processes, each of which is a node (docs/cluster.md).

The processes find each other at OVERLAP_RENDEZVOUS, see common/include/overlap/gpu/processes.hpp. Here they are started,
either on this host, or by mpirun or srun on several.
"""
import argparse
import contextlib
import dataclasses
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from typing import Dict, List, Optional

import process
from build import Skip
from process import Refusal

LAUNCHERS = ("mpirun", "mpiexec", "srun")
MOST = 64
# The others end by themselves when one has failed (processes.hpp): within 10 s.
PATIENCE_S = 10
# Processes of one host, whose GPUs NCCL is to take for those of several: it would use their memory, not a network.
ONE_HOST = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}


@dataclasses.dataclass
class Launch:
    """How many processes, and what starts them; on this host if nothing does."""

    count: int
    launcher: List[str]

    def run(self, command: List[str], backend: str) -> int:
        """Runs the command as these processes; the exit status."""
        if self.launcher:
            place = os.environ.get("OVERLAP_RENDEZVOUS") or _place_of_the_first(self.launcher[0])
            return process.run([*self.launcher, "-n", str(self.count), "env", f"OVERLAP_RENDEZVOUS={place}", *command])
        return _Local(command, _environments(self.count, backend)).run()


def add_to(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--nodes", metavar="COUNT", help="as so many processes, each of which is a node (chapter 20; docs/cluster.md)")
    parser.add_argument("--launcher", metavar="COMMAND", help="these started by mpirun, mpiexec or srun, with options in quotes "
                        "(default: all on this host)")


def asked_for(call: argparse.Namespace) -> Optional[Launch]:
    """What --nodes and --launcher say; Refusal if that cannot be."""
    if call.nodes is None:
        if call.launcher is not None:
            raise Refusal("--launcher needs --nodes COUNT")
        return None
    count = call.nodes
    if not count.isdecimal() or not 1 <= int(count) <= MOST:
        raise Refusal(f"--nodes is '{count}'; it is 1 to {MOST}")
    launcher = shlex.split(call.launcher or "")
    if call.launcher is not None and (not launcher or launcher[0] not in LAUNCHERS):
        raise Refusal(f"--launcher is '{call.launcher}'; it begins with {', '.join(LAUNCHERS[:-1])} or {LAUNCHERS[-1]}")
    if launcher and shutil.which(launcher[0]) is None:
        raise Refusal(f"--launcher: there is no {launcher[0]} here; without --launcher all processes run on this host")
    return Launch(int(count), launcher)


def _place_of_the_first(launcher: str) -> str:
    """Where process 0 listens: mpirun starts it here, srun on the first node of the job."""
    if launcher != "srun":
        host = socket.gethostname()
        return f"{host}:{_free_port('')}"
    if "SLURM_JOB_ID" not in os.environ:
        raise Refusal("--launcher srun: this is no job of SLURM; salloc --nodes COUNT begins one")
    status, hosts = process.output(["scontrol", "show", "hostnames"])
    if status != 0 or not hosts:
        raise Refusal("--launcher srun: scontrol does not name the job's hosts")
    return f"{hosts.split()[0]}:{20000 + int(os.environ['SLURM_JOB_ID']) % 10000}"


def _free_port(host: str) -> int:
    with socket.socket() as listener:
        listener.bind((host, 0))
        return int(listener.getsockname()[1])


def _environments(count: int, backend: str) -> List[Dict[str, str]]:
    """What each process of this host finds in its environment."""
    place = f"127.0.0.1:{_free_port('127.0.0.1')}"
    each = [{"OVERLAP_RENDEZVOUS": place, "OVERLAP_PROCESS": str(i), "OVERLAP_PROCESSES": str(count)} for i in range(count)]
    if backend == "cuda":
        for i, (settings, gpus) in enumerate(zip(each, _shares_of_gpus(count))):
            settings.update({name: os.environ.get(name, value) for name, value in ONE_HOST.items()})
            settings.update({"NCCL_HOSTID": f"overlap-node-{i}", "CUDA_VISIBLE_DEVICES": gpus})
    return each


def _shares_of_gpus(count: int) -> List[str]:
    """For each process, as many of this host's GPUs."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        listed = process.output(["nvidia-smi", "-L"])[1]
        gpus = [str(i) for i in range(sum(line.startswith("GPU ") for line in listed.splitlines()))]
    else:
        gpus = visible.split(",")
    each = len(gpus) // count
    if each == 0:
        raise Skip(f"--nodes {count}: each process needs a GPU of its own, and there are {len(gpus)}")
    return [",".join(gpus[i * each:(i + 1) * each]) for i in range(count)]


class _Local:
    """The processes on this host."""

    def __init__(self, command: List[str], environments: List[Dict[str, str]]) -> None:
        self.command, self.environments = command, environments
        self.processes: "List[subprocess.Popen[bytes]]" = []
        self.signal: Optional[int] = None

    def run(self) -> int:
        """Runs them to their end. The status is that of the first to fail: the others fail for its reason."""
        for number in process.SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._forward)
        for environment in self.environments:
            self.processes.append(subprocess.Popen(self.command, env={**os.environ, **environment}))
        if self.signal is not None:
            self._forward(self.signal, None)  # it came before all had begun
        status = self._wait()
        if self.signal is not None:
            process.end_by(self.signal)
        return status

    def _wait(self) -> int:
        status, deadline, killing = 0, None, False
        running = list(enumerate(self.processes))
        while running:
            for i, each in running:
                if each.poll() is not None and status == 0:
                    status = self._status_of(i, each)
            running = [(i, each) for i, each in running if each.poll() is None]
            if deadline is None and (status != 0 or self.signal is not None):
                deadline = time.monotonic() + PATIENCE_S
            if deadline is not None and time.monotonic() > deadline and not killing:
                killing = True
                for i, each in running:
                    process.say(f"process {i} (process id {each.pid}) does not end, and is killed")
                    each.kill()
            time.sleep(0.02)
        return status

    def _status_of(self, i: int, ended: "subprocess.Popen[bytes]") -> int:
        if ended.returncode >= 0:
            return ended.returncode
        if self.signal is None:
            process.say(f"process {i} (process id {ended.pid}) was ended by {signal.Signals(-ended.returncode).name}")
        return 2

    def _forward(self, number: int, _frame: object) -> None:
        self.signal = number
        for each in self.processes:
            with contextlib.suppress(ProcessLookupError):
                each.send_signal(number)
