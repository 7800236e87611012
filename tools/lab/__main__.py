"""./lab: reads the command line, and calls the command's module.

Started by the script lab of the repository's root, as python3 -I tools/lab: nothing but the standard library.
"""
import pathlib
import sys
from typing import List

import build
import command_line
import process


def main(words: List[str]) -> int:
    try:
        call = command_line.parse(words)
        return int(call.main(call))
    except build.Skip as skip:
        process.say(f"skipped: {skip}")
        return 77
    except process.Refusal as refusal:
        process.say(str(refusal))
    except OSError as error:
        process.say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 2


if __name__ == "__main__":
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))  # for tools/teaching, which is not ./lab's alone
    process.end_without_a_word()
    sys.exit(main(sys.argv[1:]))
