#!/usr/bin/env python3
"""Mutants of the engine: a program of the race build must notice each, with the verdict of its row.
    engine_mutants_test.py BUILD [DAY]     with a day's number every fourth of them
A mutant's source is compiled alone, as BUILD compiles it, and linked before the library, whose object file it replaces.
The unchanged program must have another verdict."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from typing import Dict, List, NamedTuple

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

    def command(self, program: str) -> List[str]:
        """The command that links the program, with paths relative to the build folder."""
        listed = subprocess.run(["ninja", "-t", "commands", f"bin/{program}"], cwd=self.build, capture_output=True, text=True, check=True)
        return shlex.split(re.search(r" && (\S+ .*?) && ", listed.stdout.splitlines()[-1])[1])

    def compiled(self, mutant: Mutant, folder: pathlib.Path, commands: Dict[str, str]) -> str:
        source = VIRTUAL_GPU / "engine" / mutant.path
        changed = folder / source.name
        changed.write_text(mutants.apply_mutant(mutant, source.read_text(encoding="utf-8")), encoding="utf-8")
        words = shlex.split(commands[str(source)])
        words[words.index("-o") + 1], words[words.index("-c") + 1] = f"{changed}.o", str(changed)
        subprocess.run(words, cwd=self.build, check=True)
        return f"{changed}.o"

    def verdict(self, program: pathlib.Path, arguments: List[str]) -> str:
        run = mutants.run(program, arguments, 60, [str(VIRTUAL_GPU / "tools" / "race_run")])
        return mutants.verdict_of(run.returncode, run.stdout)

    def test_each_is_noticed(self) -> None:
        commands = {entry["file"]: entry["command"]
                    for entry in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))}
        for mutant in MUTANTS[self.chosen]:
            with self.subTest(mutant.why), tempfile.TemporaryDirectory() as name:
                program, *arguments = mutant.run.split()
                changed = pathlib.Path(name) / program
                link = self.command(program)
                link[link.index("-o") + 1] = str(changed)
                link.insert(link.index("-o"), self.compiled(mutant, changed.parent, commands))
                subprocess.run(link, cwd=self.build, check=True)
                self.assertNotEqual(self.verdict(self.build / "bin" / program, arguments), mutant.verdict, "the unchanged program")
                self.assertEqual(self.verdict(changed, arguments), mutant.verdict)


if __name__ == "__main__":
    EngineMutantsTest.build = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        EngineMutantsTest.chosen = slice(int(sys.argv[2]) % 7, None, 7)
    unittest.main(argv=sys.argv[:1], verbosity=2)
