#!/usr/bin/env python3
"""Tests of ./lab run --nodes: how it calls mpirun, and what it refuses. The processes themselves are tested by
tests/ranks/mpi_test.py."""
import re
import subprocess
import unittest

from lab_sandbox import CompleteSandbox


class NodesTest(CompleteSandbox):
    def setUp(self) -> None:
        super().setUp()
        (self.root / "chapters/01_first/chapter.json").write_text('{"processes": true}')
        self.program("01_first_mpi", 'echo "of MPI"')
        self.tool("mpicxx", "")
        self.tool("mpirun", 'printf "[%s]" "$@"; exit 3')

    def nodes(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.lab("run", "01", "--nodes", *words, **environment)

    def test_mpirun_starts_the_program_of_mpi(self) -> None:
        result = self.nodes("3", "--m", "5")
        program = f"{self.root}/build/virtual/bin/01_first_mpi"
        self.assertEqual((result.returncode, result.stdout),
                         (3, f"[--oversubscribe][--bind-to][none][-n][3][{program}][--m][5]"), result.stderr)
        self.assertIn("--target 01_first_mpi", self.calls("cmake")[-1])

    def test_real_gpus_of_one_host_stand_for_several(self) -> None:
        self.add_gpu()
        self.tool("nvidia-smi", 'for i in 0 1 2 3 4; do echo "GPU $i: NVIDIA H200 (UUID: GPU-$i)"; done')

        def settings(**environment: str) -> list:
            text = self.nodes("2", "--backend", "cuda", "x", **environment).stdout
            self.assertEqual(text.count(f"[{self.root}/build/cuda/bin/01_first_mpi][x]"), 2, text)
            return [dict(re.findall(r"\[(\w+)=(.*?)\]", each)) for each in text.split("[:]")]

        usual = {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth7"}
        self.assertEqual(settings(NCCL_SOCKET_IFNAME="eth7"),
                         [{**usual, "NCCL_HOSTID": "overlap-node-0", "CUDA_VISIBLE_DEVICES": "0,1"},
                          {**usual, "NCCL_HOSTID": "overlap-node-1", "CUDA_VISIBLE_DEVICES": "2,3"}])
        self.assertEqual([(each["CUDA_VISIBLE_DEVICES"], each["NCCL_SOCKET_IFNAME"]) for each in settings(CUDA_VISIBLE_DEVICES="6,3")],
                         [("6", "lo"), ("3", "lo")])
        result = self.nodes("2", "--backend", "cuda", CUDA_VISIBLE_DEVICES="3")
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn("each process needs a GPU of its own, and there are 1", result.stderr)

    def test_without_mpi(self) -> None:
        for tool in ("mpirun", "mpicxx"):
            (self.bin / tool).unlink()
            result = self.nodes("2")
            self.assertEqual((result.returncode, result.stdout), (77, ""))
            self.assertIn("skipped: --nodes needs MPI: apt-get install libopenmpi-dev openmpi-bin", result.stderr)
            self.tool(tool, "")

    def test_refusals(self) -> None:
        for words, sentence in ((("01", "--nodes", "0"), "--nodes is '0'; it is 1 to 64"),
                                (("01", "--nodes", "two"), "--nodes is 'two'; it is 1 to 64"),
                                (("02", "--nodes", "2"), "--nodes is for chapters with nodes"),
                                (("--nodes", "2"), "--nodes is for chapters with nodes")):
            with self.subTest(words):
                self.assert_refused(self.lab("run", *words), sentence)


if __name__ == "__main__":
    unittest.main()
