"""The command line. Each module of tools/lab/commands is a command: --help prints the first line of its docstring,
arguments(parser) declares its arguments, and main(call) runs it."""
import argparse
import difflib
import importlib
import pathlib
from typing import List, NoReturn

import build
import process
from process import Refusal

HERE = pathlib.Path(__file__).resolve().parent
OVERVIEW = HERE / "commands.txt"  # the text of ./lab --help; the script lab prints it itself if Python is missing


class Parser(argparse.ArgumentParser):
    """A parser with the options that all commands have. An error is one sentence."""

    def __init__(self, prog: str, **more: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False, **more)  # type: ignore[arg-type]
        self.add_argument("--backend", choices=("virtual", "cuda"), default="",
                          help="virtual GPUs on the CPU, or real ones (default: real ones if they answer)")
        self.add_argument("--yes", action="store_true", help="install missing packages without asking")
        self.add_argument("-h", "--help", action="store_true", help="this text")

    def pass_on_behind(self, word: str, whom: str) -> None:
        """Passes unknown words on to another program if they follow this argument or --."""
        self.set_defaults(passes_on=word)
        self.epilog = f"All other words are passed to {whom}; after --, all words are."

    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message} ({self.prog} --help shows what is accepted)")


def main(words: List[str]) -> int:
    """Runs the command that the words name. Returns the exit status."""
    try:
        call = parse(words)
        return int(call.main(call))
    except build.Skip as skip:
        process.say(f"skipped: {skip}")
        return 77
    except Refusal as refusal:
        process.say(str(refusal))
    except OSError as error:
        process.say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 2


def names() -> List[str]:
    return sorted(path.stem for path in (HERE / "commands").glob("[a-z]*.py"))


def parser_of(command: str) -> Parser:
    module = importlib.import_module(f"commands.{command}")
    parser = Parser(f"./lab {command}", description=module.__doc__)
    parser.set_defaults(main=module.main, passes_on=None)
    if hasattr(module, "arguments"):
        module.arguments(parser)
    return parser


def parse(words: List[str]) -> argparse.Namespace:
    """The parsed call: the command's arguments, its function main, and in `arguments` the words that are passed on to a
    program."""
    own = words[:words.index("--")] if "--" in words else words
    behind = words[len(own) + 1:]
    first = Parser("./lab")
    first.add_argument("command", nargs="?")
    call, rest = first.parse_known_args(own)
    if call.command is None and not call.help:
        first.exit(2, OVERVIEW.read_text(encoding="utf-8"))
    if call.command in (None, "help"):
        print(OVERVIEW.read_text(encoding="utf-8"), end="")
        first.exit()
    if call.command not in names():
        like = difflib.get_close_matches(call.command, names(), 1)
        meant = f"; did you mean {like[0]}?" if like else ""
        raise Refusal(f"unknown command '{call.command}'{meant} (--help shows them)")
    return _parse(parser_of(call.command), call, rest, behind)


def _parse(parser: Parser, call: argparse.Namespace, words: List[str], behind: List[str]) -> argparse.Namespace:
    """Parses the words of one command, and those behind --."""
    passes_on = parser.get_default("passes_on")
    if call.help and (passes_on is None or not words and not hasattr(call, passes_on)):
        _help(parser)
    call, rest = parser.parse_known_intermixed_args(words, call)
    program = getattr(call, passes_on) if passes_on else None
    if call.help and program is None:
        _help(parser)
    line = [call.command, *words]
    # In `run --gpus 2` the 2 is not a chapter: unknown words must follow the program to which they are passed.
    stray = rest and (program is None or rest[0].startswith("-") and line.index(rest[0]) < line.index(program))
    if stray or behind and passes_on is None:
        parser.error(f"unrecognized arguments: {' '.join(rest or behind)}")
    call.arguments = [*rest, *(["--help"] if call.help else []), *behind]
    call.behind = behind  # the words behind --
    return call


def _help(parser: Parser) -> NoReturn:
    parser.print_help()
    parser.exit()


def given(call: argparse.Namespace, *options: str) -> List[str]:
    """The options that were given, as words for another program."""
    values = [(name, getattr(call, name)) for name in options]
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in values if value not in (None, False)]
