"""The completion script for bash: one function finds the command on the line, another one has its candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.candidates import Candidates

__all__ = ["script"]

_SCRIPT = """\
# Completion for amends. In ~/.bashrc: eval "$(amends completion bash)"
_amends_candidates() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
_amends() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" at="amends" candidates="" i
  # bash splits --flag=value into three parts.
  [ "$current" = "=" ] && current=""
  [ "$before" = "=" ] && before="${{COMP_WORDS[COMP_CWORD-2]}}"
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{COMP_WORDS[i]}}" in
      --) _amends_other_command $((i + 1)); return ;;
      -*) ;;
      *) _amends_candidates "$at ${{COMP_WORDS[i]}}" && at="$at ${{COMP_WORDS[i]}}" ;;
    esac
  done
  candidates=""
  case "$before" in -*) _amends_candidates "$at $before" ;; *) false ;; esac ||
    case "$current" in -*) _amends_candidates "$at -" ;; *) _amends_candidates "$at" ;; esac
  # bash also splits vendor:word.
  if [ "$current" = ":" ]; then
    _amends_after "$before:" ""
  elif [ "$before" = ":" ]; then
    _amends_after "${{COMP_WORDS[COMP_CWORD-2]}}:" "$current"
  else
    COMPREPLY=($(compgen -W "$candidates" -- "$current"))
  fi
}}
_amends_after() {{
  local each words=""
  for each in $candidates; do
    case "$each" in "$1"*) words="$words ${{each#"$1"}}" ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "$2"))
}}
_amends_other_command() {{
  # Another command starts after --; bash-completion, if it is installed, completes it.
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif [ "$1" -eq "$COMP_CWORD" ]; then
    COMPREPLY=($(compgen -c -- "${{COMP_WORDS[COMP_CWORD]}}"))
  fi
}}
# Without candidates bash completes file names.
complete -o default -F _amends amends
"""


def script(commands: Iterable[Candidates]) -> str:
    """Return the script."""
    return _SCRIPT.format(cases="\n".join(line for command in commands for line in _cases(command)))


def _cases(command: Candidates) -> Iterator[str]:
    """Yield a case for the arguments of a command, one for its flags (" -"), and one for the values of each flag."""
    values = {f" {flag}": each for flag, each in command.values.items()}
    for suffix, candidates in {"": command.arguments, " -": command.flags, **values}.items():
        known = " ".join(candidates)
        if not suffix and command.asked:
            known = f"{known} $({command.asking})".lstrip()
        yield f'    "{command.path}{suffix}") candidates="{known}" ;;'
