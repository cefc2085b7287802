"""The parsers and subparsers of an argparse application, and the flags they declare."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

__all__ = ["all_parsers", "declared_values", "selected_parsers"]


def declared_values(
    parser: argparse.ArgumentParser, arguments: Sequence[str], flag: str
) -> tuple[str, ...] | None:
    """
    Return the values that the application's own flag accepts (empty: any value), or None if it has no such flag.

    Only the parser and the subparsers that `arguments` select are searched.
    """
    for each in selected_parsers(parser, arguments):
        for action in each._actions:  # noqa: SLF001 - argparse has no public list of a parser's actions
            if flag in action.option_strings:
                return tuple(map(str, action.choices or ()))
    return None


def selected_parsers(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> list[argparse.ArgumentParser]:
    """Return the parser and the subparsers that the arguments select, outermost first."""
    selected = [parser]
    for argument in arguments:
        for action in selected[-1]._actions:  # noqa: SLF001
            if isinstance(action, argparse._SubParsersAction) and argument in action.choices:  # noqa: SLF001
                selected.append(action.choices[argument])
                break
    return selected


def all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and all of its subparsers, at every depth."""
    yield parser
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for subparser in dict.fromkeys(action.choices.values()):
                yield from all_parsers(subparser)
