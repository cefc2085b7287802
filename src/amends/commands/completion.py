"""`amends completion`: a script that completes commands, flags and their values; made from the parsers themselves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from amends.commands.console import parser as whole

__all__ = ["add", "run", "table"]

_BASH = """\
# Completion for amends. Write it where your shell looks, or: source <(amends completion {shell})
_amends_words() {{
  case "$1" in
{cases}
  esac
}}
_amends() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" path="amends" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [ "$word" = "--" ] && {{ COMPREPLY=($(compgen -f -- "$current")); return; }}
    [ -n "$(_amends_words "$path $word")" ] && path="$path $word"
  done
  local words="$(_amends_words "$path $before")"
  case "$before" in -*) ;; *) words="" ;; esac
  COMPREPLY=($(compgen -W "${{words:-$(_amends_words "$path")}}" -- "$current"))
}}
complete -o default -F _amends amends
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "completion",
        help="print a completion script for your shell",
        description="Print a completion script. bash, zsh: source <(amends completion bash); "
        "fish: amends completion fish | source",
    )
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it: a script in a pipe too, because that is where it is read."""
    words = dict(table(whole()))
    if args.shell == "fish":
        sys.stdout.write("".join(_fish(words)))
        return 0
    cases = "\n".join(f'    "{path}") echo "{" ".join(each)}" ;;' for path, each in words.items())
    sys.stdout.write((_ZSH if args.shell == "zsh" else "") + _BASH.format(shell=args.shell, cases=cases))
    return 0


def table(parser: argparse.ArgumentParser, path: str = "amends") -> Iterator[tuple[str, list[str]]]:
    """What may follow each path of words: commands, flags, and behind a flag its values."""
    words: list[str] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below.extend(action.choices.items())
        elif action.option_strings:
            words.extend(each for each in action.option_strings if each.startswith("--"))
            if action.choices:
                for flag in action.option_strings:
                    yield f"{path} {flag}", [str(each) for each in action.choices]
        elif action.choices:
            words.extend(str(each) for each in action.choices)
    yield path, [*(name for name, _ in below), *words]
    for name, each in below:
        yield from table(each, f"{path} {name}")


def _fish(words: dict[str, list[str]]) -> Iterator[str]:
    yield "# Completion for amends: amends completion fish | source\n"
    for path, each in words.items():
        names = path.split()[1:]
        if names and names[-1].startswith("-"):
            flag = names.pop().lstrip("-")
            yield f"complete -c amends {_seen(names)} -l {flag} -x -a '{' '.join(each)}'\n"
            continue
        commands = [word for word in each if not word.startswith("-")]
        if commands:
            yield f"complete -c amends -f {_seen(names, commands)} -a '{' '.join(commands)}'\n"
        for word in each:
            if word.startswith("--"):
                yield f"complete -c amends {_seen(names)} -l {word[2:]}\n"


def _seen(names: list[str], commands: list[str] | None = None) -> str:
    """When a line holds: these words were typed, and none of the commands below them."""
    tests = [f"__fish_seen_subcommand_from {name}" for name in names]
    if commands:
        tests.append(f"not __fish_seen_subcommand_from {' '.join(commands)}")
    return f"-n '{'; and '.join(tests)}'" if tests else ""
