"""Completion for zsh, with what each word is for; to be evaluated, or kept as `_amends` where `fpath` looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.places import Place

__all__ = ["script"]

_SCRIPT = """\
#compdef amends
# Completion for amends. In ~/.zshrc: eval "$(amends completion zsh)"
_amends_words() {{
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
      # Another command begins here.
      shift $i words
      ((CURRENT -= i))
      _normal
      return
    fi
    [[ "${{words[i]}}" != -* ]] && _amends_words "$at ${{words[i]}}" && at="$at ${{words[i]}}"
  done
  found=()
  if [[ "$current" == --*=* ]]; then
    compset -P '*='
    _amends_words "$at ${{current%%=*}}"
  elif [[ "$before" == -* ]] && _amends_words "$at $before"; then
    :
  elif [[ "$current" == -* ]]; then
    _amends_words "$at -"
  else
    _amends_words "$at"
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


def script(places: Iterable[Place]) -> str:
    """The whole of it."""
    return _SCRIPT.format(cases="\n".join(line for place in places for line in _cases(place)))


def _cases(place: Place) -> Iterator[str]:
    """The words at a place, its flags behind a dash, and behind each flag its values."""
    values = {f" {flag}": dict.fromkeys(each, "") for flag, each in place.values.items()}
    for behind, words in {"": place.words, " -": place.flags, **values}.items():
        yield f'    "{place.path}{behind}") found=({" ".join(map(_described, words.items()))}) ;;'


def _described(word: tuple[str, str]) -> str:
    return "'" + ":".join(filter(None, word)).replace("'", "'\\''") + "'"
