"""What a command line asks for."""
import dataclasses
from typing import List, Optional


@dataclasses.dataclass
class Call:
    """The command line, taken apart."""

    command: str = ""
    operand: Optional[str] = None  # PROGRAM, NN or NN_NAME
    second: Optional[str] = None  # TASK, MUTANT or FILE
    options: List[str] = dataclasses.field(default_factory=list)  # the command's own
    arguments: List[str] = dataclasses.field(default_factory=list)  # for the program
    backend: str = ""  # virtual, cuda, or empty: what is here decides
    yes: bool = False

    def value(self, option: str) -> str:
        """What follows --option= among the arguments; nothing if it is not there."""
        found = [word.partition("=")[2] for word in self.arguments if word.startswith(f"{option}=")]
        return found[-1] if found else ""
