"""Completion for bash: one function that walks along the line, one that says what may follow where it came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.places import Place

__all__ = ["script"]

_SCRIPT = """\
# Completion for amends. In ~/.bashrc: eval "$(amends completion bash)"
_amends_words() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
_amends() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" at="amends" words="" i
  # --flag=value comes in three words.
  [ "$current" = "=" ] && current=""
  [ "$before" = "=" ] && before="${{COMP_WORDS[COMP_CWORD-2]}}"
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{COMP_WORDS[i]}}" in
      --) _amends_behind $((i + 1)); return ;;
      -*) ;;
      *) _amends_words "$at ${{COMP_WORDS[i]}}" && at="$at ${{COMP_WORDS[i]}}" ;;
    esac
  done
  words=""
  case "$before" in -*) _amends_words "$at $before" ;; *) false ;; esac ||
    case "$current" in -*) _amends_words "$at -" ;; *) _amends_words "$at" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
_amends_behind() {{
  # Another command begins here; where bash-completion is there, it knows what that takes.
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif [ "$1" -eq "$COMP_CWORD" ]; then
    COMPREPLY=($(compgen -c -- "${{COMP_WORDS[COMP_CWORD]}}"))
  fi
}}
# What is not known is a file.
complete -o default -F _amends amends
"""


def script(places: Iterable[Place]) -> str:
    """The whole of it."""
    return _SCRIPT.format(cases="\n".join(line for place in places for line in _cases(place)))


def _cases(place: Place) -> Iterator[str]:
    """The words at a place, its flags behind a dash, and behind each flag its values."""
    found = {"": place.words, " -": place.flags, **{f" {flag}": each for flag, each in place.values.items()}}
    for behind, words in found.items():
        yield f'    "{place.path}{behind}") words="{" ".join(words)}" ;;'
