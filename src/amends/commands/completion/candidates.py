"""The completion candidates of each command, read from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Candidates", "all_candidates"]


class Candidates(NamedTuple):
    """What can be completed after a command."""

    path: str
    """The command with its parents, for example "amends store info"."""
    arguments: dict[str, str]
    """Its subcommands, or the values of its positional arguments; each with its help text."""
    flags: dict[str, str]
    """Its long flags, each with its help text."""
    values: dict[str, list[str]]
    """The values of each flag that takes one; an empty list if it can be any text or file."""
    asked: list[str]
    """Kinds of arguments that are only known when they are asked for: `amends completion KIND` prints them."""

    @property
    def asking(self) -> str:
        """The command line that prints the candidates that are asked for, or an empty string."""
        return "; ".join(f"amends completion {kind} 2>/dev/null" for kind in self.asked)


def all_candidates(parser: argparse.ArgumentParser, path: str = "amends") -> Iterator[Candidates]:
    """Yield the candidates of a command and of all its subcommands."""
    candidates = Candidates(path, {}, {}, {}, list(getattr(parser, "completes", ())))
    subparsers: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of a parser's actions
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            subparsers.update(action.choices)
            # A command without a line in the help has only its description.
            candidates.arguments.update(
                {name: each.description or "" for name, each in action.choices.items()}
            )
            candidates.arguments.update({each.dest: each.help or "" for each in action._choices_actions})  # noqa: SLF001
        elif action.option_strings:
            _add_flags(candidates, action)
        else:
            candidates.arguments.update({str(each): "" for each in action.choices or ()})
    yield candidates
    for name, subparser in subparsers.items():
        yield from all_candidates(subparser, f"{path} {name}")


def _add_flags(candidates: Candidates, action: argparse.Action) -> None:
    help = "" if action.help in (None, argparse.SUPPRESS) else action.help
    for flag in action.option_strings:
        # Short flags are complete as they are.
        if flag.startswith("--"):
            candidates.flags[flag] = help
            if action.nargs != 0:
                candidates.values[flag] = [str(each) for each in action.choices or ()]
