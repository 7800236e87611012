"""./lab, started by the script lab of the repository's root, as python3 -I tools/lab: nothing but the standard library."""
import pathlib
import sys

import command_line
import process

if __name__ == "__main__":
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))  # for course, which is not ./lab's alone
    process.end_without_a_word()
    sys.exit(command_line.main(sys.argv[1:]))
