"""The completion script for zsh, with descriptions. Evaluate it, or save it as `_amends` in a directory of `fpath`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.candidates import Candidates

__all__ = ["script"]

_SCRIPT = """\
#compdef amends
# Completion for amends. In ~/.zshrc: eval "$(amends completion zsh)"
_amends_candidates() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
_amends() {{
  local at=amends current="${{words[CURRENT]}}" before="${{words[CURRENT-1]}}" i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    if [[ "${{words[i]}}" == -- ]]; then
      # Another command starts after --.
      shift $i words
      ((CURRENT -= i))
      _normal
      return
    fi
    [[ "${{words[i]}}" != -* ]] && _amends_candidates "$at ${{words[i]}}" && at="$at ${{words[i]}}"
  done
  found=()
  if [[ "$current" == --*=* ]]; then
    compset -P '*='
    _amends_candidates "$at ${{current%%=*}}"
  elif [[ "$before" == -* ]] && _amends_candidates "$at $before"; then
    :
  elif [[ "$current" == -* ]]; then
    _amends_candidates "$at -"
  else
    _amends_candidates "$at"
  fi
  if (($#found)); then
    _describe 'amends' found
  else
    _files
  fi
}}
if [[ "${{funcstack[1]}}" == _amends ]]; then
  _amends "$@"
else
  (($+functions[compdef])) || {{ autoload -Uz compinit && compinit }}
  compdef _amends amends
fi
"""


def script(commands: Iterable[Candidates]) -> str:
    """Return the script."""
    return _SCRIPT.format(cases="\n".join(line for command in commands for line in _cases(command)))


def _cases(command: Candidates) -> Iterator[str]:
    """Yield a case for the arguments of a command, one for its flags (" -"), and one for the values of each flag."""
    values = {f" {flag}": dict.fromkeys(each, "") for flag, each in command.values.items()}
    for suffix, candidates in {"": command.arguments, " -": command.flags, **values}.items():
        known = " ".join(map(_quote, candidates.items()))
        if not suffix and command.asked:
            # A colon in a value would begin its description.
            known = f'{known} ${{${{(f)"$({command.asking})"}}//:/\\\\:}}'.lstrip()
        yield f'    "{command.path}{suffix}") found=({known}) ;;'


def _quote(candidate: tuple[str, str]) -> str:
    """Return a candidate and its description as zsh's `_describe` reads them, quoted."""
    return "'" + ":".join(filter(None, candidate)).replace("'", "'\\''") + "'"
