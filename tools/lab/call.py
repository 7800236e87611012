"""What a command line asks for."""
import dataclasses
from typing import List, Optional


@dataclasses.dataclass
class Call:
    """The command line, taken apart."""

    command: str = ""
    operand: Optional[str] = None  # PROGRAM, NN or NN_NAME
    second: Optional[str] = None  # TASK, MUTANT or FILE
    options: List[str] = dataclasses.field(default_factory=list)  # the command's own, with their values: --to=FOLDER
    arguments: List[str] = dataclasses.field(default_factory=list)  # for the program
    backend: str = ""  # virtual, cuda, or empty: what is here decides
    yes: bool = False
