#!/usr/bin/env python3
"""Tests of ./lab run --nodes: the processes that it starts, what they find in their environment, and how they end. How they
find each other is tested by tests/ranks/meeting_test.py."""
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from lab_sandbox import PACKAGES, Sandbox

SAY = 'echo "$OVERLAP_PROCESS/$OVERLAP_PROCESSES $*"'


class NodesTest(Sandbox):
    def setUp(self) -> None:
        super().setUp()
        self.install(*PACKAGES)
        self.program("01_first", SAY)

    def nodes(self, count: int, *more: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.lab("run", "01", "--nodes", str(count), *more, **environment)

    def test_starts_the_processes(self) -> None:
        result = self.nodes(3, "--m", "5")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()), ["0/3 --m 5", "1/3 --m 5", "2/3 --m 5"])

    def test_all_meet_at_one_place_of_this_host(self) -> None:
        self.program("01_first", 'echo "$OVERLAP_RENDEZVOUS $NCCL_HOSTID$NCCL_NET"')
        lines = self.nodes(2).stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], lines[1])  # and nothing for NCCL, on virtual GPUs
        self.assertRegex(lines[0], r"\A127\.0\.0\.1:\d+ \Z")

    def test_real_gpus_of_one_host_stand_for_several(self) -> None:
        self.add_gpu()
        self.tool("nvidia-smi", "for i in 0 1 2 3 4; do echo \"GPU $i: NVIDIA H200 (UUID: GPU-$i)\"; done")
        names = ("OVERLAP_PROCESS", "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_NET")
        self.program("01_first", 'echo "' + " ".join(f"${name}" for name in names) + '"')
        lines = sorted(self.nodes(2, "--backend", "cuda", NCCL_SOCKET_IFNAME="eth7").stdout.splitlines())
        self.assertEqual(lines, ["0 0,1 overlap-node-0 eth7 1 Socket", "1 2,3 overlap-node-1 eth7 1 Socket"])
        lines = sorted(self.nodes(2, "--backend", "cuda", CUDA_VISIBLE_DEVICES="6,3").stdout.splitlines())
        self.assertEqual(lines, ["0 6 overlap-node-0 lo 1 Socket", "1 3 overlap-node-1 lo 1 Socket"])
        result = self.nodes(2, "--backend", "cuda", CUDA_VISIBLE_DEVICES="3")
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn("each process needs a GPU of its own, and there are 1", result.stderr)

    # ---- How they end --------------------------------------------------------------------------------------
    def test_status_is_that_of_the_first_to_fail(self) -> None:
        self.program("01_first", '[ $OVERLAP_PROCESS = 1 ] && exit 3; /bin/sleep 0.5; exit 2')
        self.assertEqual(self.nodes(3).returncode, 3)

    def test_process_that_dies_is_named(self) -> None:
        self.program("01_first", '[ $OVERLAP_PROCESS = 1 ] && kill -KILL $$; /bin/sleep 0.5; exit 2')
        result = self.nodes(2)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"(?m)^lab: process 1 \(process id \d+\) was ended by SIGKILL$")

    def test_processes_that_do_not_end_are_killed(self) -> None:
        self.program("01_first", '[ $OVERLAP_PROCESS = 1 ] && exit 2; exec /bin/sleep 100')
        since = time.monotonic()
        result = self.nodes(3)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(re.findall(r"process [02] \(process id \d+\) does not end, and is killed", result.stderr)), 2)
        self.assertLess(time.monotonic() - since, 30)

    def test_signal_ends_all(self) -> None:
        self.program("01_first", 'trap "echo $OVERLAP_PROCESS ended >> $SANDBOX/ended; exit 1" TERM; '
                                 'echo $$ >> $SANDBOX/begun; while true; do /bin/sleep 0.05; done')
        begun, ended = self.sandbox / "begun", self.sandbox / "ended"
        lab = subprocess.Popen([str(self.root / "lab"), "run", "01", "--nodes", "3"], env=self.variables(), cwd=self.root,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lab.communicate)
        for _ in range(1000):
            if begun.exists() and len(begun.read_text().split()) == 3:
                break
            time.sleep(0.02)
        lab.send_signal(signal.SIGTERM)
        self.assertEqual(lab.wait(20), -signal.SIGTERM)
        self.assertEqual(sorted(ended.read_text().splitlines()), [f"{i} ended" for i in range(3)])
        for process in begun.read_text().split():
            self.assertFalse(pathlib.Path("/proc", process).exists())

    # ---- Others that start them ----------------------------------------------------------------------------
    def test_mpirun_starts_them(self) -> None:
        self.tool("mpirun", """echo "mpirun $1 $2 $3 $4" >> "$SANDBOX/calls"; shift 2; shift 2
            for i in 0 1; do OMPI_COMM_WORLD_RANK=$i "$@"; done""")
        self.program("01_first", 'echo "$OMPI_COMM_WORLD_RANK $OVERLAP_RENDEZVOUS $*"')
        result = self.nodes(2, "--launcher", "mpirun --map-by node", "--m", "5", OVERLAP_RENDEZVOUS="here:1")
        self.assertEqual(result.stdout, "0 here:1 --m 5\n1 here:1 --m 5\n", result.stderr)
        self.assertEqual(self.calls("mpirun"), ["mpirun --map-by node -n 2"])
        result = self.nodes(2, "--launcher", "mpirun --map-by node")
        self.assertRegex(result.stdout, rf"\A0 {re.escape(os.uname().nodename)}:\d+ \n")

    def test_srun_starts_them(self) -> None:
        self.tool("srun", 'shift 2; "$@"')
        self.tool("scontrol", "echo node17; echo node18")
        self.program("01_first", 'echo "$OVERLAP_RENDEZVOUS"')
        self.assertEqual(self.nodes(2, "--launcher", "srun", SLURM_JOB_ID="123456").stdout, "node17:23456\n")

    def test_refusals(self) -> None:
        self.tool("srun", "exit 1")
        for arguments, sentence in {
                ("01", "--nodes", "0"): "--nodes is '0'; it is 1 to 64", ("01", "--nodes", "two"): "--nodes is 'two'",
                ("--nodes", "2"): "--nodes is for chapters with nodes", ("01", "--nodes"): "argument --nodes: expected one argument",
                ("01", "--launcher", "mpirun"): "--launcher needs --nodes COUNT",
                ("01", "--nodes", "2", "--launcher", "mpirun"): "--launcher: there is no mpirun here; without --launcher all",
                ("01", "--nodes", "2", "--launcher", "ssh"): "--launcher is 'ssh'; it begins with mpirun, mpiexec or srun",
                }.items():
            with self.subTest(arguments):
                self.assert_refused(self.lab("run", *arguments), re.escape(sentence))
        result = self.nodes(2, "--launcher", "srun")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--launcher srun: this is no job of SLURM", result.stderr)


if __name__ == "__main__":
    unittest.main()
