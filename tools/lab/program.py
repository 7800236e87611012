"""PROGRAM of the command line: a chapter, an experiment of one, or a CUDA source of the reader's own."""
import argparse
import contextlib
import dataclasses
import pathlib
import re
from typing import Iterator, List, Optional, Sequence

import chapters
from build import Build, check_path
from command_line import Parser
from process import Refusal
from course import tasks, work


@dataclasses.dataclass
class Program:
    """A target to build, and the program to run."""

    target: str
    path: str  # in the build's folder
    settings: List[str] = dataclasses.field(default_factory=list)  # of CMake
    experiments: List[str] = dataclasses.field(default_factory=list)  # that its chapter has

    @property
    def is_own(self) -> bool:
        """True for the reader's own source, which may read standard input; chapters do not."""
        return self.path.startswith("own/")

    def build(self, build: Build) -> None:
        build.build(self.target, *self.settings)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turns an error of course into a Refusal."""
    try:
        yield
    except (work.WorkError, tasks.TaskError, ValueError, KeyError) as error:
        raise Refusal(str(error)) from None


def add_to(parser: Parser, **more: str) -> None:
    """Declares PROGRAM, --work, and the words that are passed on to the program."""
    parser.add_argument("program", metavar="PROGRAM", help="a chapter (01, 1 or 01_column_split), an experiment of one "
                        "(04/transports), or your own CUDA program (mine.cu)", **more)  # type: ignore[arg-type]
    parser.add_argument("--work", action="store_true", help="use your header instead of the chapter's (after ./lab start NN)")
    parser.pass_on_behind("program", "PROGRAM")
    parser.epilog = (f"{parser.epilog} For mine.cu, the first of them may be the compiler's: mine.cu -- -Iinclude -DN=4 -fopenmp "
                     "more.cu -- words for the program.")


def asked_for(call: argparse.Namespace) -> Optional[Program]:
    """The program of a command line, with --work that of the hand-out; none if no program is named."""
    if not call.work:
        if call.program is not None and call.program.endswith(".cu"):
            return _own(call.program, _build_words(call))
        return None if call.program is None else find(call.program)
    if call.program is None:
        raise Refusal(f"{call.command} --work needs a chapter: ./lab {call.command} NN --work")
    return of_work(work_on(call.program))


def work_on(operand: str) -> pathlib.Path:
    """The folder of a chapter's hand-out. Throws Refusal if there is none."""
    with refusals():
        return work.started(chapters.find(operand))


def of_work(folder: pathlib.Path, kind: str = "work") -> Program:
    """The chapter's program with the headers of a folder that has the chapter's name (cmake/Program.cmake)."""
    with refusals():
        setting = f"-DOVERLAP_{kind.upper()}={work.cmake_path(folder)}"
    return Program(f"{kind}_{folder.name}", f"{kind}/{folder.name}", [setting])


def find(operand: str) -> Program:
    """The program that an operand names. Throws Refusal if there is none."""
    if operand.endswith(".cu"):
        return _own(operand)
    if "/" in operand:
        name = chapters.find_experiment(operand)
        return Program(name, f"bin/{name}")
    name = chapters.find(operand)
    return Program(name, f"bin/{name}", experiments=[f"{name[:2]}/{each}" for each in chapters.experiments(name)])


def _build_words(call: argparse.Namespace) -> List[str]:
    """Removes from the words behind -- the first ones that are for the compiler: -I, -D, -fopenmp, further sources. Returns
    them."""
    words: List[str] = []
    for word in call.behind:
        path = pathlib.Path(word[2:] if word.startswith("-I") else word).resolve()
        if word.startswith("-I") and path.is_dir() or word.endswith((".cu", ".cpp", ".cc")) and path.is_file():
            check_path(path)
            words.append(("-I" if word.startswith("-I") else "") + str(path))
        elif re.fullmatch(r"-D\w+(=[\w.+-]*)?|-fopenmp", word):
            words.append(word)
        else:
            break
    rest = call.behind[len(words):]
    call.arguments = call.arguments[:len(call.arguments) - len(call.behind)] + rest[rest[:1] == ["--"]:]
    return words


def _own(operand: str, words: Sequence[str] = ()) -> Program:
    source = pathlib.Path(operand).resolve()
    if not source.is_file():
        raise Refusal(f"there is no file '{operand}'")
    check_path(source)
    name = re.sub(r"[^\w.+-]", "_", source.stem, flags=re.ASCII)  # as in cmake/Program.cmake
    settings = [f"-DOVERLAP_OWN_OPTIONS={';'.join(words)}", f"-DOVERLAP_OWN_PROGRAM={source}"]
    return Program(f"own_{name}", f"own/{name}", settings)
