#!/usr/bin/env python3
"""Compiler launcher for .cu files: compile.py g++ ... -c x.cu -o x.o

  g++ -E ... x.cu  |  rewrite  >  x.o.ii      then      g++ -c x.o.ii -o x.o

Every other command is run unchanged. x.o.ii stays next to the object, so that a reader can see the compiled code.
The rewriter does not process a precompiled header (-include): the unit then begins with a line that names it.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import List, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cuda_syntax  # noqa: E402
import cuda_tokens  # noqa: E402
import device_code  # noqa: E402
import rewrite  # noqa: E402

# Options that write dependencies, for the preprocessing call only. Those of the first line take a value.
WITH_VALUE = ("-MF", "-MT", "-MQ")
ALONE = ("-MD", "-MMD", "-MP", "-MG")
TOOLS = [os.path.abspath(path) for path in (__file__, rewrite.__file__, cuda_syntax.__file__, cuda_tokens.__file__,
                                               device_code.__file__)]
HEADERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "include")
SYSTEMS_FILE = re.compile(r'^# \d+ "((?:[^"\\\n]|\\.)*)"(?: [12])* 3', re.MULTILINE)
# Other libraries may have their headers in the same folder (/usr/include).
OF_A_TOOLKIT = re.compile(r"(.*?)/(?:(?:cu(?:da|dnn|blas|fft|rand|sparse|solver|tensor|Complex|file|pti)|npp|nvml|nvrtc|nvjpeg)\w*\.h"
                          r"|(?:thrust|cub|cuda|cooperative_groups)/.+)$")
USERS_FILE = re.compile(r'^# \d+ "((?:[^"\\\n]|\\.)*)"(?: [12])*$', re.MULTILINE)
ASKS_FOR_ARCH = re.compile(r"^[ \t]*#[ \t]*(?:if|elif)[^\n]*\b__CUDA_ARCH__\b", re.MULTILINE)


@dataclass
class Command:
    """A compiler's command line, divided into its parts."""

    compiler: str
    sources: List[str] = field(default_factory=list)  # the .cu files
    target: str = ""
    compiles: bool = False  # -c was given
    dependencies: List[str] = field(default_factory=list)
    included: List[str] = field(default_factory=list)  # -include with its files, for the preprocessing call
    common: List[str] = field(default_factory=list)

    def value(self, *options: str) -> Optional[str]:
        """The value of the last of these options about dependencies, or None."""
        found = None
        for option, value in zip(self.dependencies, self.dependencies[1:]):
            found = value if option in options else found
        return found


def take_apart(arguments: List[str]) -> Command:
    """Sorts the arguments of `compiler arguments...` by their purpose."""
    command = Command(arguments[0])
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "-c":
            command.compiles = True
        elif argument in ALONE:
            command.dependencies.append(argument)
        elif argument[:2] in ("-o", "-x"):  # -x only declares a .cu file as C++, which both calls do anyway.
            value = argument[2:] or next(rest, "")
            command.target = value if argument.startswith("-o") else command.target
        elif argument in WITH_VALUE:
            command.dependencies += [argument, next(rest, "")]
        elif argument[:3] in WITH_VALUE:  # -MFfile
            command.dependencies += [argument[:3], argument[3:]]
        elif argument == "-include":
            command.included += [argument, next(rest, "")]
        elif argument.endswith(".cu") and not argument.startswith("-"):
            command.sources.append(argument)
        else:
            command.common.append(argument)
    return command


def compile_unit(command: Command) -> int:
    """Preprocesses, rewrites and compiles. Returns the exit status; if it fails, there is no object."""
    if len(command.sources) > 1:
        print("compile.py: one .cu file a call, not " + " ".join(command.sources), file=sys.stderr)
        return 1
    source = command.sources[0]
    target = command.target or os.path.splitext(os.path.basename(source))[0] + ".o"
    unit = target + ".ii"
    rules = command.value("-MF") or os.path.splitext(target)[0] + ".d"
    wants_dependencies = "-MD" in command.dependencies or "-MMD" in command.dependencies
    for old in (target, unit):
        if os.path.exists(old):
            os.remove(old)
    # Every unit begins with this header, as with nvcc, or with a precompiled header, which must be the first.
    included = [*command.included, *(["-fpch-preprocess"] if command.included else []), "-include", "cuda_runtime.h",
                "-isystem", HEADERS]
    first = [command.compiler, *command.common, *included, *command.dependencies, "-E", "-x", "c++", source]
    if wants_dependencies:  # Without -o, g++ would derive both names from the source.
        first += [] if command.value("-MF") else ["-MF", rules]
        first += [] if command.value("-MT", "-MQ") else ["-MQ", target]
    preprocessed = subprocess.run(first, stdout=subprocess.PIPE, check=False)
    if preprocessed.returncode != 0:
        return preprocessed.returncode
    if wants_dependencies:
        depend_on_tools(rules)
    # Bytes that are not UTF-8 stay unchanged.
    text = preprocessed.stdout.decode("utf-8", "surrogateescape")
    strange = header_of_a_toolkit(text)
    if strange:
        print("%s is a header of CUDA's toolkit that virtual GPUs do not have: README.md of virtual_gpu says what they support" %
              strange, file=sys.stderr)
        return 1
    try:
        text = rewrite.rewrite(text, notes_on_arch(text, command))
    except rewrite.Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    with open(unit, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    second = [command.compiler, *command.common, "-x", "c++-cpp-output", "-c", unit, "-o", target]
    return subprocess.run(second, check=False).returncode


def header_of_a_toolkit(text: str) -> Optional[str]:
    """The first header of an installed CUDA toolkit in this text, such as cudnn.h."""
    for path in dict.fromkeys(SYSTEMS_FILE.findall(text)):
        found = None if os.path.abspath(path).startswith(HEADERS) else OF_A_TOOLKIT.match(path)
        if found and os.path.exists(os.path.join(found.group(1), "cuda_runtime_api.h")):
            return path
    return None


def notes_on_arch(text: str, command: Command) -> List[str]:
    """A sentence if a user's file tests __CUDA_ARCH__, because the preprocessor has already evaluated the condition."""
    defined = any(word.startswith("-D__CUDA_ARCH__") for word in command.common)
    meaning = ("defined here for the code of the host, too: one compilation serves both" if defined else
               "undefined here, in kernels too: what stands there for GPUs is left out. -D__CUDA_ARCH__=900 defines it, "
               "then for the code of the host, too")
    for path in sorted(set(USERS_FILE.findall(text))):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                source = file.read()
        except OSError:  # <command-line>
            continue
        asked = ASKS_FOR_ARCH.search(source)
        if asked:
            return ["%s:%d: asks for __CUDA_ARCH__, which is %s" % (path, source.count("\n", 0, asked.start()) + 1, meaning)]
    return []


def depend_on_tools(path: str) -> None:
    """Adds the rewriter to the object's dependencies, in the file that g++ has written."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        rules = file.read()
    # Extends the first rule, because a build tool need not merge two rules of one target.
    tools = "".join(" " + tool.replace(" ", "\\ ") for tool in TOOLS)
    rules = re.sub(r"(?<!\\)\n", lambda end: tools + end.group(), rules, count=1)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(rules)


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    command = take_apart(arguments)
    try:
        if not command.compiles or not command.sources:
            os.execvp(arguments[0], arguments)
        status = compile_unit(command)
    except OSError as error:  # no such compiler, or a file that cannot be written
        print("compile.py: %s: %s" % (error.filename or arguments[0], error.strerror), file=sys.stderr)
        return 1
    return status if status >= 0 else 128 - status  # ended by a signal: the status that a shell returns


if __name__ == "__main__":
    sys.exit(main())
