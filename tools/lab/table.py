"""The one table of commands, commands.txt: what --help prints, and the grammar of the command line.

A line that begins with ./lab is a command: its name, then the words that it takes: PROGRAM, NN or NN_NAME, in brackets if
it can be left out; then TASK, MUTANT or FILE, a second word; ARGS... if all that follows goes on to a program. Its options stand there and in the indented lines
below it; one with a value (--gpus=2,8) goes on to what the command calls; one that is written --to FOLDER is the
command's own.
"""
import dataclasses
import pathlib
import re
from typing import Dict, List

PATH = pathlib.Path(__file__).resolve().parent / "commands.txt"
COMMAND = re.compile(r"\./lab (\w+)((?: \S+)*)  ")
OPTION = re.compile(r"--[a-z]+(?:=| (?=[A-Z]))?")


@dataclasses.dataclass
class Command:
    """A line of the table."""

    name: str
    words: str  # what it takes, as the table writes it
    options: List[str]  # --all; --gpus= if it has a value
    spaced: List[str]  # those of the command itself that have a value, which may be a word of its own

    def add_options(self, text: str) -> None:
        """Takes in the options of a piece of the table."""
        for option in OPTION.findall(text):
            (self.spaced if option.endswith(" ") else self.options).append(option.strip())

    def takes(self, word: str) -> bool:
        """Whether PROGRAM, NN, NN_NAME or ARGS is among its words."""
        return re.search(rf"\b{word}\b", self.words) is not None

    def operand(self) -> bool:
        """Whether a word may follow its name."""
        return any(self.takes(word) for word in ("PROGRAM", "NN", "NN_NAME"))

    def second(self) -> bool:
        """Whether another word may follow that."""
        return any(self.takes(word) for word in ("TASK", "MUTANT", "FILE"))

    def needs_operand(self) -> bool:
        """Whether a word must follow."""
        return self.operand() and "[PROGRAM]" not in self.words and "[NN]" not in self.words

    def passes_on(self) -> bool:
        """Whether it has arguments for another program."""
        return self.takes("ARGS") or any(option.endswith("=") for option in self.options)


def text() -> str:
    """What --help prints."""
    return PATH.read_text(encoding="utf-8")


def commands() -> Dict[str, Command]:
    """All commands by name, in the table's order."""
    found: Dict[str, Command] = {}
    last = None
    for line in text().splitlines():
        match = COMMAND.match(line)
        if match:
            last = found[match.group(1)] = Command(match.group(1), match.group(2).strip(), [], [])
            last.add_options(match.group(2))
        elif last is not None and line.startswith("     "):
            last.add_options(line)
        else:
            last = None
    return found


def listed(names: List[str], last: str = "and") -> str:
    """a, b and c"""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
