#!/usr/bin/env python3
"""Mutants of the engine: a program of the race build must notice each, with the verdict of its row.
    engine_mutants_test.py BUILD [DAY]     with a day's number every fourth of them
A mutant's source is compiled as BUILD compiles it, alone or joined with others, into a library of its own, with which the
program is linked. The unchanged program must have another verdict."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from typing import Dict, List, NamedTuple, Tuple

VIRTUAL_GPU = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(VIRTUAL_GPU.parent))
from tools import mutants  # noqa: E402


class Mutant(NamedTuple):
    why: str
    run: str  # the program and its arguments
    verdict: str  # as in tools/mutants.py
    path: str  # in engine/
    file = property(lambda self: self.path)
    original: str  # occurs exactly once
    mutant: str


LIBRARY = "virtual_gpu/libvirtual_gpu.a"
RANDOM = "random_kernels 1 8"
BLOCK, STREAM, GRAPH = "kernel/block.cpp", "streams/stream.cpp", "streams/graph.cpp"
MUTANTS = [
    # Lost wake-ups.
    Mutant("a barrier does not let its threads go on", RANDOM, "deadlock", BLOCK, "  runnable_.append(at_barrier_);\n", ""),
    Mutant("a thread that has ended keeps the others at a barrier", RANDOM, "deadlock", BLOCK,
           "  if (alive_ > 0 && at_barrier_.size() == alive_) open_barrier();\n", ""),
    Mutant("who waits in a warp function stays there", RANDOM, "deadlock", BLOCK, "  runnable_.append(exchange.waiting);\n", ""),
    Mutant("a block that polls is not run again", RANDOM, "deadlock", BLOCK, "  runnable_.append(polling_);\n", ""),
    Mutant("threads that look at words are left behind", RANDOM, "deadlock", "kernel/block_async.cpp",
           "  if (runnable_.empty()) runnable_.append(looking_);\n}", "}"),
    Mutant("a warp function waits for lanes that its mask leaves out", RANDOM, "deadlock", BLOCK,
           "is_last = (mask & warp.alive", "is_last = (warp.alive"),
    # Too early, or exchanged.
    Mutant("a barrier opens one thread early", RANDOM, "deadlock", BLOCK, "if (at_barrier_.size() + 1 == alive_) {",
           "if (at_barrier_.size() + 2 >= alive_) {"),
    Mutant("an operation begins before what it waits for", RANDOM, "race", STREAM, "    if (!token->complete) return false;\n", ""),
    Mutant("a lane's value comes from its neighbour", RANDOM, "wrong result", BLOCK, "values[parity][me.lane] = value;",
           "values[parity][me.lane ^ 1] = value;"),
    Mutant("warp functions of other masks meet", RANDOM, "wrong result", BLOCK, "exchange->mask == mask && ", ""),
    Mutant("a barrier's count forgets those before", RANDOM, "wrong result", BLOCK,
           "barrier_has_value_ ? combine(barrier_value_, predicate) : predicate", "combine(0, predicate)"),
    # Missing happens-before edges: false reports.
    Mutant("a barrier orders nothing of what was before", RANDOM, "race", BLOCK, "  release(order);\n", ""),
    Mutant("a barrier orders nothing of what comes behind", RANDOM, "race", BLOCK, "  acquire(order);\n}\n\n}  // namespace vgpu", "}\n\n}"),
    Mutant("an operation's end orders nothing", RANDOM, "race", STREAM, "  hb::release(stream->contexts().own(), done.get());\n", ""),
    Mutant("an operation's beginning orders nothing", RANDOM, "race", "scheduler.cpp",
           "hb::acquire(context, token.get());", "(void)token;"),
    Mutant("a kernel's end orders nothing", RANDOM, "race", "kernel/kernel.cpp", "  contexts().end_kernel();\n", ""),
    Mutant("a wait of the host orders nothing", RANDOM, "race", "host/host_waits.cpp",
           "time());\n  for (const Token& token : tokens) {", "time());\n  for (const Token& token : std::vector<Token>()) {"),
    Mutant("an edge between branches of a graph is lost", "planted_bugs graph_branches fixed time", "race", GRAPH,
           "work->wait_for(awaited_.at(earlier));", "(void)earlier;"),
    Mutant("what follows a graph is not ordered after it", "planted_bugs graph_launch fixed time", "race", GRAPH,
           "  hb::acquire(stream->contexts().own(), started_.get());\n", ""),
    Mutant("a synchronising dependent kernel is not ordered", "planted_dependent_bugs dependent_read fixed time", "race",
           "kernel/block_waits.cpp", "  launch_.contexts().acquire_end(linear_index_, current_number(), *primary->contexts);\n", ""),
    # Extra happens-before edges: a planted race is missed.
    Mutant("a barrier orders all blocks", "planted_block_bugs relaxed_spin bug time", "not noticed", BLOCK,
           "const OrderPoint& order = barrier_order_[barrier_parity_];", "static OrderPoint order;"),
    Mutant("a relaxed read acquires", "planted_bugs relaxed_flag bug time", "not noticed", "kernel/block_fences.cpp",
           "  if (writes && releases(order)) {",
           "  if (reads) hb::acquire(context, word);\n  if (writes) hb::release(context, word);\n  if (writes && releases(order)) {"),
    Mutant("all kernels of a stream come one after the other", "planted_dependent_bugs dependent_read bug time", "not noticed", STREAM,
           "operation->programmatic && last_kernel_ != nullptr", "false"),
]


class EngineMutantsTest(unittest.TestCase):
    build: pathlib.Path
    chosen = slice(None)

    def command(self, target: str) -> str:
        """The last command that makes the target, with paths relative to the build folder."""
        listed = subprocess.run(["ninja", "-t", "commands", target], cwd=self.build, capture_output=True, text=True, check=True)
        return listed.stdout.splitlines()[-1]

    def compiled(self, source: pathlib.Path, changed: pathlib.Path, commands: Dict[str, str]) -> Tuple[str, str]:
        """The object file that holds the source in the library, and one that holds the changed source instead."""
        unit = next(file for file in commands if file == str(source) or "virtual_gpu.dir/Unity/" in file
                    and f'"{source}"' in pathlib.Path(file).read_text(encoding="utf-8"))
        words = shlex.split(commands[unit])
        if unit != str(source):
            joined = pathlib.Path(unit).read_text(encoding="utf-8").replace(str(source), str(changed))
            changed = changed.with_name("joined.cpp")
            changed.write_text(joined, encoding="utf-8")
        held, made = words[words.index("-o") + 1], f"{changed}.o"
        words[words.index("-o") + 1], words[words.index("-c") + 1] = made, str(changed)
        subprocess.run(words, cwd=self.build, check=True)
        return held, made

    def linked(self, mutant: Mutant, program: str, folder: pathlib.Path, commands: Dict[str, str]) -> pathlib.Path:
        """The program with the changed engine."""
        source, library = VIRTUAL_GPU / "engine" / mutant.path, folder / "libvirtual_gpu.a"
        changed = folder / source.name
        changed.write_text(mutants.apply_mutant(mutant, source.read_text(encoding="utf-8")), encoding="utf-8")
        held, made = self.compiled(source, changed, commands)
        archive = self.command(LIBRARY).replace(str(self.build / LIBRARY), str(library)).replace(LIBRARY, str(library))
        self.assertIn(held, archive)
        link = shlex.split(re.search(r" && (\S+ .*?) && ", self.command(f"bin/{program}"))[1])
        link[link.index("-o") + 1] = str(folder / program)
        link[link.index(LIBRARY)] = str(library)
        subprocess.run(archive.replace(held, made), shell=True, cwd=self.build, check=True)
        subprocess.run(link, cwd=self.build, check=True)
        return folder / program

    def verdict(self, program: pathlib.Path, arguments: List[str]) -> str:
        run = mutants.run(program, arguments, 60, [str(VIRTUAL_GPU / "tools" / "race_run")])
        return mutants.verdict_of(run.returncode, run.stdout)

    def test_each_is_noticed(self) -> None:
        commands = {entry["file"]: entry["command"]
                    for entry in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))}
        for mutant in MUTANTS[self.chosen]:
            with self.subTest(mutant.why), tempfile.TemporaryDirectory() as name:
                program, *arguments = mutant.run.split()
                changed = self.linked(mutant, program, pathlib.Path(name), commands)
                self.assertNotEqual(self.verdict(self.build / "bin" / program, arguments), mutant.verdict, "the unchanged program")
                self.assertEqual(self.verdict(changed, arguments), mutant.verdict)


if __name__ == "__main__":
    EngineMutantsTest.build = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        EngineMutantsTest.chosen = slice(int(sys.argv[2]) % 7, None, 7)
    unittest.main(argv=sys.argv[:1], verbosity=2)
