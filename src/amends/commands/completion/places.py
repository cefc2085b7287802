"""Where one can be in a command line, and what may be typed there: read from the parsers, written for each shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Place", "places"]


class Place(NamedTuple):
    """A command, by the words that lead to it."""

    path: str
    words: dict[str, str]
    """Commands below it, or the values of what it takes: each with what it is for."""
    flags: dict[str, str]
    values: dict[str, list[str]]
    """What may stand behind a flag that takes something; an empty list where that can be any text or file."""


def places(parser: argparse.ArgumentParser, path: str = "amends") -> Iterator[Place]:
    """A command and all below it."""
    place = Place(path, {}, {}, {})
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below.update(action.choices)
            place.words.update({each.dest: each.help or "" for each in action._choices_actions})  # noqa: SLF001
        elif action.option_strings:
            _flag(place, action)
        else:
            place.words.update({str(each): "" for each in action.choices or ()})
    yield place
    for name, each in below.items():
        yield from places(each, f"{path} {name}")


def _flag(place: Place, action: argparse.Action) -> None:
    for flag in action.option_strings:
        # The short ones have nothing to complete.
        if flag.startswith("--"):
            place.flags[flag] = action.help or ""
            if action.nargs != 0:
                place.values[flag] = [str(each) for each in action.choices or ()]
