"""./lab run NN --nodes COUNT: a chapter's program NN_name_mpi as several processes of this host, each of which is a node. Without
./lab, and on several hosts, mpirun or srun start the same program (docs/cluster.md)."""
import json
import os
import shutil
from typing import List

import process
from build import Build, Skip
from process import ROOT, Refusal
from program import Program

MOST = 64
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]  # a process has a thread for each GPU and so needs several cores
# Makes NCCL take the processes for different hosts; else it would use their memory, not the network.
ONE_HOST = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}


def nodes(value: str, target: str) -> int:
    """The number of processes that --nodes requests. Throws Refusal if it is not possible, or if the program runs as one
    process only."""
    manifest = ROOT / "chapters" / target / "chapter.json"
    if not manifest.is_file() or not json.loads(manifest.read_text(encoding="utf-8")).get("processes"):
        raise Refusal("--nodes is for chapters with nodes: ./lab run 20 --nodes 2")
    if not value.isdecimal() or not 1 <= int(value) <= MOST:
        raise Refusal(f"--nodes is '{value}'; it is 1 to {MOST}")
    return int(value)


def run(build: Build, program: Program, count: int, arguments: List[str]) -> int:
    """Builds the program and runs it as so many processes. Returns mpirun's exit status."""
    if not all(shutil.which(tool) for tool in ("mpirun", "mpicxx")):
        raise Skip("--nodes needs MPI: apt-get install libopenmpi-dev openmpi-bin")
    build.build(f"{program.target}_mpi")
    build.need_gpus()
    command = [*build.command(f"{program.path}_mpi"), *arguments]
    if build.backend != "cuda":
        return process.run([*MPIRUN, "-n", str(count), *command])
    mpirun = list(MPIRUN)
    for i, gpus in enumerate(_shares_of_gpus(count)):
        settings = {**{name: os.environ.get(name, value) for name, value in ONE_HOST.items()},
                    "NCCL_HOSTID": f"overlap-node-{i}", "CUDA_VISIBLE_DEVICES": gpus}
        mpirun += [*([":"] if i > 0 else []), "-n", "1", "env", *(f"{name}={value}" for name, value in settings.items()), *command]
    return process.run(mpirun)


def _shares_of_gpus(count: int) -> List[str]:
    """The GPUs of each process: the host's GPUs in equal parts."""
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
