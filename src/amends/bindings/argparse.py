"""
argparse: mistakes in arguments all at once, everything else as S2's envelope.

    from amends.bindings.argparse import main

    main(parser, run)       # run(namespace) -> data
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from amends.cli.command_retry import Tries, operation
from amends.cli.options import USAGE, take

__all__ = ["main", "operation", "parse"]


def main(
    parser: argparse.ArgumentParser,
    function: Callable[[argparse.Namespace], Any],
    argv: Sequence[str] | None = None,
    *,
    piped: str = "text",
    profile: str = "s2",
    success: str = "envelope",
) -> NoReturn:
    """
    Parse, run `function` with the namespace, answer, and exit.

    Args:
        parser: yours, with its subparsers. It is used as it is.
        function: the command. What it returns is the envelope's `data`. With subparsers, a `function` set by
            `set_defaults` may carry the declaration for --retries.
        argv: the arguments; those of the process without one.
        piped: the output when nobody asked for one and stdout is no terminal: text, or json.
        profile: the exit table: s2, or v2.
        success: "own" where the function writes its results to stdout itself, also as JSON.

    """
    from amends.cli.session import conduct

    words = sys.argv[1:] if argv is None else argv
    asked = take(words, lambda flag: declared(parser, words, flag), piped)

    def work(tries: Tries) -> Any:
        args = parse(parser, asked.rest)
        marked = getattr(args, "function", function)
        return tries.run(lambda: function(args), marked, parser.prog, _never)

    if parser.epilog is None:
        parser.epilog = USAGE
    sys.exit(conduct(work, asked, profile=profile, success=success))


def _never(exc: BaseException) -> bool:
    return False


def declared(parser: argparse.ArgumentParser, words: Sequence[str], flag: str) -> tuple[str, ...] | None:
    """The values a flag of the application's own accepts on the way these words lead; None where it has none."""
    for each in path(parser, words):
        for action in each._actions:  # noqa: SLF001 - argparse has no other way to ask
            if flag in action.option_strings:
                return tuple(map(str, action.choices or ()))
    return None


def path(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[argparse.ArgumentParser]:
    """The parsers that the words lead through."""
    through = [parser]
    for word in words:
        for action in through[-1]._actions:  # noqa: SLF001
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:  # noqa: SLF001
                through.append(action.choices[word])
                break
    return through


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all that are below it."""
    yield parser
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in dict.fromkeys(action.choices.values()):
                yield from parsers(below)


class _WrongError(Exception):
    """The parser found a mistake."""


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """
    The namespace.

    Raises:
        FaultError: with every mistake there is.

    """

    def refuse(message: str) -> NoReturn:
        raise _WrongError(message)

    every = list(parsers(parser))
    for each in every:
        each.error = refuse  # type: ignore[method-assign]
    try:
        return parser.parse_args(list(argv))
    except (_WrongError, argparse.ArgumentError) as error:
        from amends.bindings.argparse_errors import mistakes
        from amends.cli.arguments import mistaken

        raise mistaken(mistakes(parser, list(argv), error)) from None
    finally:
        for each in every:
            each.__dict__.pop("error", None)
