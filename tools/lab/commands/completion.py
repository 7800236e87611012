"""./lab completion: a script for bash, made from the table of commands."""
import table
from call import Call

SCRIPT = r"""# Completion for bash: source <(./lab completion)
_overlap_lab() {
  local word=${COMP_WORDS[COMP_CWORD]} root words=
  root=$(dirname -- "$(readlink -f -- "${COMP_WORDS[0]}")")
  case $COMP_CWORD:${COMP_WORDS[1]} in
    1:*) words='@commands@' ;;
@cases@
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words --backend --yes" -- "$word")
}
_overlap_lab_chapters() { (cd "$1/chapters" 2>/dev/null && printf '%s\n' [0-9][0-9]_*); }
_overlap_lab_programs() {
  _overlap_lab_chapters "$1"
  (cd "$1/chapters" 2>/dev/null && compgen -G '*/experiments/*.cu' | sed 's|_[^/]*/experiments||; s|\.cu$||')
  compgen -f -X '!*.cu' -- "$2"
}
complete -o default -F _overlap_lab ./lab lab
"""


def main(_call: Call) -> int:
    """Prints it."""
    commands = table.commands()
    cases = []
    for command in commands.values():
        words = " ".join([*command.options, *command.spaced])
        if command.takes("PROGRAM"):
            words += ' $(_overlap_lab_programs "$root" "$word")'
        elif command.takes("NN"):
            words += ' $(_overlap_lab_chapters "$root")'
        cases.append(f'    *:{command.name}) words="{words.strip()}" ;;')
    print(SCRIPT.replace("@commands@", " ".join([*commands, "--help"])).replace("@cases@", "\n".join(cases)), end="")
    return 0
