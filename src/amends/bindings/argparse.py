"""
Binding for argparse: reports all mistakes in the arguments at once, and every failure as the CLI agent spec's envelope.

    from amends.bindings.argparse import main

    main(parser, run)       # run(namespace) -> data
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from amends.bindings.argparse_parsers import all_parsers, declared_values
from amends.cli.awaitables import run_awaitable
from amends.cli.command_retry import CommandRetry, operation
from amends.cli.options import USAGE, parse_common_options
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["main", "operation", "parse"]


@explains_wrong_calls
def main(
    parser: argparse.ArgumentParser,
    function: Callable[[argparse.Namespace], object],
    argv: Sequence[str] | None = None,
    *,
    piped: str = "text",
    profile: str = "v1",
    success: str = "envelope",
    errors: Mapping[type[BaseException], str] | None = None,
    docs: str | None = None,
) -> NoReturn:
    """
    Parse the arguments, run `function` with the namespace, write its result or failure, and exit.

        parser = argparse.ArgumentParser(prog="shop")
        parser.add_argument("order")
        main(parser, lambda args: {"order": args.order})

    Args:
        parser: your parser with its subparsers; its error handling is replaced while it parses.
        function: the command, plain or async. Its return value is the envelope's `data`. With subparsers, a `function` set by
            `set_defaults` may have the declaration for --retries.
        argv: the arguments; default: those of the process.
        piped: the output if none was chosen and stdout is not a terminal: text or json.
        profile: the exit table: v1 or v2.
        success: "own" if the function writes its results to stdout itself, with JSON output too.
        errors: the codes of exception classes of yours, `{SeatTaken: "CONFLICT"}`. Their text is not written.
        docs: the URL below which each code has a page (`{docs}/cli/not-found`, as an HTTP binding serves them at
            `/errors`): the base of `type` and `doc_uri`.

    """
    if not isinstance(parser, argparse.ArgumentParser):
        raise TypeError(
            f"parser is an ArgumentParser, not {type(parser).__name__}: write main(parser, function)"
        )
    if not callable(function):
        raise TypeError(
            f"function is a function, not {type(function).__name__}: write main(parser, function)"
        )
    from amends.cli.invocation import run_command

    arguments = sys.argv[1:] if argv is None else argv
    options = parse_common_options(arguments, lambda flag: declared_values(parser, arguments, flag), piped)

    def work(retry: CommandRetry) -> Any:
        args = parse(parser, options.rest)
        declaring = getattr(args, "function", function)
        return retry.run(lambda: run_awaitable(function(args)), declaring, parser.prog, _never)

    if parser.epilog is None:
        parser.epilog = USAGE
    sys.exit(run_command(work, options, profile=profile, success=success, errors=errors, docs=docs))


def _never(exc: BaseException) -> bool:
    return False


class _ParserError(Exception):
    """The parser found a mistake."""


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """
    Parse the arguments and return the namespace.

    `main` calls it. Call it yourself if the program has its own way to run and to report errors.

    >>> parser = argparse.ArgumentParser(prog="shop")
    >>> count, size = parser.add_argument("--count", type=int), parser.add_argument("--size", type=int)
    >>> parse(parser, ["--count", "many", "--size", "big"])
    Traceback (most recent call last):
    amends.errors.cli.ValidationError: 2 arguments are wrong: --count, --size

    Raises:
        FaultError: with every mistake in the arguments.

    """

    def error(message: str) -> NoReturn:
        raise _ParserError(message)

    every = list(all_parsers(parser))
    for each in every:
        each.error = error  # type: ignore[method-assign]
    try:
        return parser.parse_args(list(argv))
    except (_ParserError, argparse.ArgumentError) as first:
        from amends.bindings.argparse_errors import find_mistakes
        from amends.cli.arguments import argument_error

        raise argument_error(find_mistakes(parser, list(argv), first)) from None
    finally:
        for each in every:
            each.__dict__.pop("error", None)
