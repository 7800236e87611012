"""./lab: reads the command line, and calls the command's module. The table of commands is commands.txt.

Started by the script lab of the repository's root, as python3 -I tools/lab: nothing but the standard library.
"""
import importlib
import pathlib
import sys
from typing import List

import build
import process
import table
from call import Call
from process import Refusal


class Parser:
    """Takes a command line apart."""

    def __init__(self) -> None:
        self.commands = table.commands()
        self.call = Call()

    def parse(self, words: List[str]) -> Call:
        """What is asked for; Refusal if nobody can tell."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word.startswith("--backend="):
                self.call.backend = word.split("=", 1)[1]
            elif word == "--backend":
                self.call.backend = rest.pop(0) if rest else "nothing"
            elif word == "--yes":
                self.call.yes = True
            elif word == "--":
                self.call.arguments += rest
                rest = []
            elif not self.took_value(word, rest):
                self.take(word)
        return self.checked()

    def took_value(self, word: str, rest: List[str]) -> bool:
        """--to FOLDER or --to=FOLDER, where the table writes it so: an option --to=FOLDER."""
        command = self.commands.get(self.call.command)
        name, equals, value = word.partition("=")
        if command is None or name not in command.spaced:
            return False
        if not equals and not rest:
            raise Refusal(f"{name} needs a value")
        self.call.options.append(f"{name}={value if equals else rest.pop(0)}")
        return True

    def take(self, word: str) -> None:
        """One word that is no option of all commands."""
        call, command = self.call, self.commands.get(self.call.command)
        first = call.operand is None or command is not None and not command.takes("ARGS")  # nothing goes to a program yet
        if command and word in command.options and (first or word in ("--test", "--work")):
            call.options.append(word)
        elif command and command.takes("ARGS") and (call.operand is not None or not command.operand()):
            call.arguments.append(word)
        elif command and word.startswith("--") and "=" in word and command.passes_on() and not command.takes("ARGS"):
            call.arguments.append(word)
        elif word in ("--help", "-h", "help"):
            raise HelpWanted
        elif word.startswith("-"):
            raise Refusal(f"unknown option {word} (--help shows mine; a chapter's own come after its number)")
        elif not call.command:
            if word not in self.commands:
                names = table.listed(list(self.commands), "or")
                raise Refusal(f"unknown command '{word}' ({names}; --help explains them)")
            call.command = word
        elif command and command.operand() and call.operand is None:
            call.operand = word
        elif command and command.second() and call.second is None:
            call.second = word
        else:
            raise Refusal(f"unexpected argument '{word}' (--help shows what is accepted)")

    def checked(self) -> Call:
        """What holds for the command line as a whole."""
        call = self.call
        if call.backend not in ("", "virtual", "cuda"):
            raise Refusal(f"--backend is '{call.backend}'; it is virtual or cuda")
        if call.command == "race" and call.backend == "cuda":
            raise Refusal("the race detector works on virtual GPUs only")
        if call.command == "docs" and call.backend:
            raise Refusal("the documentation is built without GPUs: docs takes no --backend")
        if not call.command:
            raise NothingAsked
        command = self.commands[call.command]
        if call.arguments and (not command.passes_on() or "--test" in call.options):
            names = table.listed([name for name, other in self.commands.items() if other.passes_on()])
            raise Refusal(f"only {names} pass arguments on: {' '.join(call.arguments)}")
        if command.needs_operand() and call.operand is None:
            raise Refusal(f"{command.name} needs one more word: ./lab {command.name} {command.words}")
        return call


class HelpWanted(Exception):
    """--help was among the words."""


class NothingAsked(Exception):
    """There was no command."""


def main(words: List[str]) -> int:
    """Does what the words ask for; the exit status."""
    try:
        call = Parser().parse(words)
        return importlib.import_module(f"commands.{call.command}").main(call)
    except HelpWanted:
        print(table.text(), end="")
        return 0
    except NothingAsked:
        print(table.text().split("\n\n")[0] + "\n./lab --help says more", file=sys.stderr)
    except build.Skip as skip:
        process.say(f"skipped: {skip}")
        return 77
    except Refusal as refusal:
        process.say(str(refusal))
    except OSError as error:
        process.say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 2


if __name__ == "__main__":
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))  # for tools/teaching, which is not ./lab's alone
    process.end_programs_with_us()
    sys.exit(main(sys.argv[1:]))
