"""Builds a program from a submission: its header becomes a translation unit of its own with one visible symbol.

The kit is a folder of all files that this needs and that a submission may read: headers, the compiler's launcher, the runner.
It holds neither the chapter's header that is submitted nor any program or test.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import Collection, Dict, List, Set

import gate
from processes import trusted
from sandbox import Limits, Outcome, Sandbox
from task import ROOT, Task

FACTORY = "overlap_submission"
PREPROCESSING = Limits(seconds=10, memory=512 * 1024 * 1024, file=32 * 1024 * 1024)  # and of the gate
COMPILING = Limits(seconds=40, memory=2048 * 1024 * 1024)
LISTING = Limits(seconds=40, output=1 << 20)  # an object's symbols and sections
MOST_SYMBOL = 1000  # characters
# -dD: the gate needs the macros' definitions. The folder's name is left out, because it differs between sandboxes.
PREPROCESS = ["-x", "c++", "-E", "-dD", "-MD", "-fno-working-directory"]
# Symbols that any chapter may use: the language's runtime, strings and containers, output, copies, events and streams, and the
# launch of its own kernels.
ALWAYS = re.compile(r"""_GLOBAL_OFFSET_TABLE_|_Unwind_Resume|__gxx_personality_v0|__sanitizer_cov_trace_pc|__stack_chk_fail|
    __cxa_(allocate_exception|free_exception|throw|rethrow|begin_catch|end_catch|get_exception_ptr|guard_\w+|pure_virtual|bad_\w+|throw_bad_\w+)|
    __tsan_(read|write|func|unaligned|vptr|init|atomic|volatile|mem)\w*|__ubsan_handle_(divrem_overflow|out_of_bounds|type_mismatch_v1)|
    mem(cpy|move|set|cmp|chr)|str(len|cmp|ncmp|chr)|printf|puts|putchar|fputs|fputc|fwrite|fprintf|vfprintf|snprintf|vsnprintf|fflush|
    stdout|stderr|(sqrt|exp|exp2|log|log2|tanh|pow|fma|floor|ceil|round|fmod|ldexp|fmax|fmin|lround|llround|nearbyint)f?|
    _Zn[wa]m\w*|_Zd[la]Pv\w*|_ZTVN10__cxxabiv1\w+|_ZT[VISv]+St\w+|_ZT[IV]N?S[toas]\w*|_ZSt\d+__throw_\w+|_ZSt9terminatev|
    _ZNK?S[as]\w+|_ZNK?St7__cxx1112basic_string\w+|_ZNK?St\d+(\w+_error|exception|bad_\w+)(C|D|4what|aS)\w*|_ZNSt15__exception_ptr\w+|
    _ZNK?St8__detail\w+|_ZSt\d+_Rb_tree\w+|_ZSt(17)?current_exceptionv|_ZSt17rethrow_exception\w+|_ZNSt8functionI\w+|
    cuda(Memcpy(Peer)?Async|MemsetAsync|Event\w+|Stream(WaitEvent|Synchronize|Query|Create\w*|Destroy)|GetLastError|PeekAtLastError|
    GetErrorString|GetErrorName|SetDevice|GetDevice|DeviceSynchronize|DeviceGetAttribute)\w*|
    cuStream(Write|Wait)Value32\w*|ncclGroup(Start|End)\w*|_Z\d+(cuda|nccl|cublas)(GetErrorString|GetErrorName|GetLastError|EventRecord|
    EventCreate|EventDestroy|EventQuery|EventSynchronize|StreamWaitEvent|StreamSynchronize|StreamQuery|MemcpyAsync|MemcpyPeerAsync|
    MemsetAsync|GroupStart|GroupEnd|SetDevice|GetDevice|SetStream|GetStream|DeviceSynchronize)\w*|
    _ZNK?7overlap(4Rank|6detail|7Signals|10PeerBuffer|13HostTimer|5Event|6Stream|4Ring|5Slots)\w+|
    _ZN7overlap(14balanced_share|16throw_\w+|1\d+throw_\w+)\w*|
    blockDim|blockIdx|gridDim|threadIdx|_Z\d+__(syncthreads|syncwarp|ballot_sync|all_sync|any_sync|nanosleep)\w*|
    _ZN4vgpu\d+(identifying|PendingLaunchD\d|enqueue_kernel|configure_launch|shared_storage|dynamic_shared|note_(load|look|store|progress|atomic|fence)|
    record_atomic|order_left_out|require_own_word|require_native_atomics|warp_exchange|lane_index|copy_async|commit_copies|wait_for_copies|require_aligned)E\w*""", re.VERBOSE)


class BuildFailed(RuntimeError):
    """The unit failed to build: one sentence, perhaps with the compiler's lines below it."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """build/BACKEND/teaching/toolchain.json."""

    compiler: str
    flags: List[str]
    link_flags: List[str]
    runner: List[str]
    libraries: List[str]

    @property
    def instrumented(self) -> bool:
        """Whether the build instruments each access (race and check)."""
        return any(flag.startswith("-fsanitize=thread") for flag in self.flags)

    @staticmethod
    def of(build: pathlib.Path) -> "Toolchain":
        return Toolchain(**json.loads((build / "teaching" / "toolchain.json").read_text(encoding="utf-8")))


class Kit:
    """The readable folder of one task, and the properties of an honest unit."""

    def __init__(self, task: Task, builds: Dict[str, pathlib.Path], patience: float = 1) -> None:
        self.task = task
        self.preprocessing, self.compiling = (dataclasses.replace(limits, seconds=limits.seconds * max(1, patience))
                                              for limits in (PREPROCESSING, COMPILING))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="overlap-kit-", dir="/var/tmp"))
        self.tools = {name: self._copied(name, Toolchain.of(build)) for name, build in builds.items()}
        include = self.folder / "include"
        common = ROOT / "common"
        shutil.copytree(common / "for_virtual_gpus", include / "for_virtual_gpus")
        shutil.copytree(common / "overlap", include / "common" / "overlap", ignore=shutil.ignore_patterns("*.cpp", "backend"))
        shutil.copytree(ROOT / "virtual_gpu" / "include", include / "virtual_gpu")
        shutil.copytree(ROOT / "virtual_gpu" / "tools", self.folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "virtual_gpu" / "machines", self.folder / "machines")
        for path, source in task.visible().items():
            self._copy(source, include / "chapters" / path)
        for name in ("submission.hpp", "dense_unit.hpp", "sparse_unit.hpp"):
            self._copy(ROOT / "course" / "runner" / name, include / "runner" / name)
        self._copy(pathlib.Path(gate.__file__), self.folder / "gate.py")
        (self.folder / "unit.cu").write_text(task.source(), encoding="utf-8")
        self._readable()
        self.symbols: Set[str] = set()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def machine(self) -> str:
        """The file of the machine model."""
        return str(self.folder / "machines" / "small.json")

    def includes(self, sandbox: Sandbox) -> List[str]:
        """Include folders: first the submission's. Helpers' paths are relative, which race reports omit, so that a student sees
        lines of the chapter."""
        include = self.folder / "include"
        helpers = [f"-ffile-prefix-map={include}/{name}=." for name in ("common", "runner", "for_virtual_gpus", "virtual_gpu")]
        return [*helpers, f"-I{sandbox.work}", f"-I{include}/chapters", f"-I{include}/runner", f"-I{include}/for_virtual_gpus", f"-I{include}/common",
                "-isystem", f"{include}/virtual_gpu"]

    def learn(self, sandbox: Sandbox) -> None:
        """Records for the gate each build's unit without a submission, and the symbols that the repository's own header needs;
        leaves its objects in `work`. An extension may also use the symbols of the chapter's header."""
        place(sandbox, self.task, b"#pragma once\n")
        for kind in self.tools:
            preprocess(sandbox, self, kind)
            for name in (f"{kind}.cu", f"{kind}.d"):
                self._copy(sandbox.work / name, self.folder / name)
        self._readable()
        for header in [*([self.task.own] if self.task.extension else []), self.task.solution]:
            place(sandbox, self.task, header.read_bytes())
            for kind in self.tools:  # the race build calls more of the virtual GPUs
                self.symbols |= undefined(sandbox, build_object(sandbox, self, kind, gated=header == self.task.solution))

    def _copied(self, kind: str, tools: Toolchain) -> Toolchain:
        """The toolchain with its files copied to the kit."""
        def copies(paths: List[str]) -> List[str]:
            made = []
            for path in paths:
                inside = self.folder / kind / pathlib.Path(path).name
                if path.startswith("/usr/"):
                    made.append(path)
                else:
                    self._copy(pathlib.Path(path), inside)
                    made.append(str(inside))
            return made
        return dataclasses.replace(tools, runner=copies(tools.runner), libraries=copies(tools.libraries))

    def _copy(self, source: pathlib.Path, target: pathlib.Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)

    def _readable(self) -> None:
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chmod(path, 0o755 if path.is_dir() else 0o644)


def place(sandbox: Sandbox, task: Task, data: bytes) -> None:
    """Writes a submission to the path that the unit includes."""
    folder = sandbox.work / task.chapter
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o755)
    (folder / task.header).write_bytes(data)
    os.chmod(folder / task.header, 0o644)


def _must(outcome: Outcome, what: str) -> Outcome:
    if outcome.ended:
        raise BuildFailed(f"{what}: {outcome.ended}")
    if outcome.status != 0:
        raise BuildFailed(f"{what} fails:\n{_shortened(outcome.output)}")
    return outcome


def _shortened(output: str, lines: int = 12) -> str:
    """The compiler's first errors, without this machine's folders."""
    text = re.sub(r"(?:/var/tmp/overlap-\w+-\w+/(?:work|include/\w+)/|\./)", "", output)
    errors = [line for line in text.splitlines() if re.search(r"\b(error|undefined)\b", line)] or text.splitlines()
    return "\n".join(errors[:lines])


def preprocess(sandbox: Sandbox, kit: Kit, kind: str) -> None:
    """Preprocesses the unit of the submission in the sandbox to KIND.cu; KIND.d lists the files that were read. Throws
    gate.Refused if it includes a missing file."""
    tools = kit.tools[kind]
    outcome = sandbox.run([tools.compiler, *tools.flags, *kit.includes(sandbox), *PREPROCESS, str(kit.folder / "unit.cu"),
                           "-MF", f"{kind}.d", "-o", f"{kind}.cu"], kit.preprocessing)
    missing = re.search(r":(\d+):\d+: fatal error: (.*): No such file", outcome.output)
    if missing:
        raise gate.refuse(int(missing.group(1)), f"#include of {missing.group(2)}, which is not on this chapter's list")
    if "File size limit exceeded" in outcome.output:
        raise gate.Refused(f"it expands to more than {kit.preprocessing.file >> 20} MiB")
    _must(outcome, "preprocessing")


def pass_gate(sandbox: Sandbox, kit: Kit, kind: str) -> None:
    """Runs the gate in the sandbox. Throws gate.Refused."""
    outcome = sandbox.run(["/usr/bin/python3", "-I", str(kit.folder / "gate.py"), str(kit.folder / kind), kind,
                           f"{sandbox.work}/{kit.task.path}", kit.task.namespace.rstrip(":")], kit.preprocessing)
    if outcome.ended or outcome.status != 0:
        raise gate.Refused(outcome.ended or outcome.output.strip())


def build_object(sandbox: Sandbox, kit: Kit, kind: str, gated: bool = False) -> str:
    """Preprocesses, passes the gate if `gated`, compiles, and hides all symbols but the factory's. Returns the object's name in
    `work`."""
    preprocess(sandbox, kit, kind)
    if gated:
        pass_gate(sandbox, kit, kind)
    tools = kit.tools[kind]
    compile_unit = ["/usr/bin/python3", "-I", str(kit.folder / "tools" / "compile.py"), tools.compiler, *tools.flags,
                    *kit.includes(sandbox), "-fpreprocessed", "-c", f"{kind}.cu", "-o", f"{kind}.o"]
    _must(sandbox.run(compile_unit, kit.compiling), "compiling")
    # COMDAT groups become sections of this unit; otherwise the linker could take another unit's.
    _must(sandbox.run(["ld", "-r", "--force-group-allocation", f"{kind}.o", "-o", f"{kind}.one.o"], kit.compiling), "linking")
    _must(sandbox.run(["objcopy", f"--keep-global-symbol={FACTORY}", f"{kind}.one.o", f"{kind}.unit.o"], kit.compiling), "hiding symbols")
    return f"{kind}.unit.o"


def undefined(sandbox: Sandbox, name: str) -> Set[str]:
    """The undefined symbols of an object."""
    return {line.split()[-1] for line in _must(sandbox.run(["nm", "-u", name], LISTING), "nm").output.splitlines()}


def visible_symbols(sandbox: Sandbox, name: str) -> Set[str]:
    """The visible symbols of an object."""
    output = _must(sandbox.run(["nm", "--defined-only", "-g", name], LISTING), "nm").output
    return {line.split()[-1] for line in output.splitlines() if line.strip()}


def initialisers(sandbox: Sandbox, name: str) -> int:
    """The number of functions that an object runs before main()."""
    output = _must(sandbox.run(["readelf", "-SW", name], LISTING), "readelf").output
    sizes = re.findall(r"\] \.(?:preinit_array|init_array|ctors|fini_array|dtors)\S*\s+\S+\s+[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", output)
    return sum(int(size, 16) for size in sizes) // 8


def check_object(sandbox: Sandbox, kit: Kit, name: str, kind: str) -> None:
    """Throws BuildFailed if the unit uses forbidden symbols, exports symbols or runs code before main()."""
    extra = initialisers(sandbox, name) - (1 if kit.tools[kind].instrumented else 0)  # the sanitizer's own
    if extra > 0:
        raise BuildFailed("refused: a static object runs code before main() (.init_array)")
    seen = visible_symbols(sandbox, name) - {FACTORY}
    if seen:
        raise BuildFailed(f"refused: it defines {demangled(seen)} for other units")
    bad = sorted(symbol for symbol in undefined(sandbox, name) - kit.symbols
                 if len(symbol) > MOST_SYMBOL or not ALWAYS.fullmatch(symbol))
    if bad:
        raise BuildFailed(f"refused: it calls {demangled(bad)}, which is not on this chapter's list")


def demangled(symbols: Collection[str]) -> str:
    """At most three names, demangled."""
    shown = sorted(symbols)[:3]
    lines = trusted(["c++filt", "-p", *shown]).decode(errors="replace").split("\n")
    return ", ".join(lines[:len(shown)]) + (" ..." if len(symbols) > 3 else "")


def link(sandbox: Sandbox, kit: Kit, program: str) -> None:
    """Links the built object with the runner of that build to PROGRAM (plain, race or check) in `work`."""
    tools = kit.tools[program]
    _must(sandbox.run([tools.compiler, *tools.link_flags, *tools.runner, f"{program}.unit.o", "-o", program, *tools.libraries,
                       "-ldl"], kit.compiling), "linking")
