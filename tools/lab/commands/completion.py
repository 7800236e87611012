"""print the completion for bash: source <(./lab completion)"""
import argparse
import re

import chapters
import command_line

SCRIPT = r"""# Completion for bash: source <(./lab completion)
_overlap_lab() {
  local words=
  case $COMP_CWORD:${COMP_WORDS[1]} in
    1:*) words='@commands@' ;;
@cases@
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _overlap_lab ./lab lab
"""


def main(_call: argparse.Namespace) -> int:
    """Makes the completion from the parsers' options; bash completes files itself."""
    cases = []
    for name in command_line.names():
        usage = command_line.parser_of(name).format_usage()
        words = re.findall(r"--[a-z]+", usage)
        if re.search(r"\b(NN|PROGRAM)\b", usage):
            words += chapters.names()
        if "PROGRAM" in usage:
            words += [f"{chapter[:2]}/{each}" for chapter in chapters.names() for each in chapters.experiments(chapter)]
        cases.append(f"    *:{name}) words='{' '.join(words)}' ;;")
    names = " ".join([*command_line.names(), "--help", "--backend", "--yes"])
    print(SCRIPT.replace("@commands@", names).replace("@cases@", "\n".join(cases)), end="")
    return 0
