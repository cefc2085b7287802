"""
Shared code of the subcommands: common arguments, output, and the command's own failures.

In a pipe and with `--output json` (short: `--json`) a failure is the CLI agent spec's envelope on stdout; on a terminal it is
a short text on stderr, the error first and then the fix. The exit code is the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Protocol

import msgspec

from amends._version import __version__
from amends.bindings.argparse import parse
from amends.bindings.argparse_parsers import declared_values
from amends.cli.command_retry import CommandRetry
from amends.cli.invocation import run_command
from amends.cli.options import OUTPUTS, parse_common_options

__all__ = [
    "OUTPUTS",
    "TEXT_HELP",
    "Subparsers",
    "as_sentence",
    "command_after_dashes",
    "emit",
    "json_bytes",
    "run",
    "wants_json",
]

# In the order of the help. Each module has add(subparsers) and run(args) -> exit code.
COMMANDS = {
    "try": "try_",
    "decode": "decode",
    "explain": "explain",
    "translate": "translate",
    "schema": "schema",
    "vendors": "vendors",
    "store": "store",
    "run": "run",
    "audit": "audit",
    "rehearse": "rehearse",
    "runtime": "runtime",
    "tasks": "tasks",
    "effects": "effects",
    "gateway": "gateway",
    "trace": "trace",
    "watch": "watch",
    "completion": "completion",
}
TEXT_IN_PIPES = frozenset({"try"})
"""Commands whose results are text in a pipe, too; the others print JSON there. Failures are envelopes for all of them."""
TEXT_HELP = "text, json (short: --json) or problem"
"""The help of --output for these commands."""
# Commands without a line of their own in the help, so that it fits a terminal.
_UNLISTED = ("translate", "schema", "vendors", "store", "effects", "completion")


def parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """
    Return the parser of the command line.

    If `argv` begins with a command, only that command's module is imported.
    """
    chosen = argv[0] if argv and argv[0] in COMMANDS else None
    top = argparse.ArgumentParser(
        prog="amends",
        usage="amends [options] COMMAND …",  # short, so that the help fits into 23 lines
        description=f"Also: {', '.join(_UNLISTED)}.",
    )
    top.add_argument(
        "--version", action="version", version=f"amends {__version__}", help="show the version and exit"
    )
    _common(top, default=None)
    commands = top.add_subparsers(
        prog="amends",
        dest="command",
        metavar="COMMAND",
        required=False,  # without a command the help is printed
        parser_class=_Command,
        title="commands",
    )
    for name in (chosen,) if chosen else COMMANDS:
        target = _Unlisted(commands) if name in _UNLISTED else commands
        import_module(f"amends.commands.{COMMANDS[name]}").add(target)
    return top


class Subparsers(Protocol):
    """What a subcommand's `add` is given: it adds the parser of the subcommand."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,
        description: str,
        usage: str | None = None,
        output_help: str = "",
        completes: Sequence[str] = (),
    ) -> argparse.ArgumentParser:
        """Add a parser and return it; `output_help` and `completes` are those of `_Command`."""


class _Unlisted:
    """Adds a subcommand without a line of its own in the help."""

    def __init__(self, subparsers: argparse._SubParsersAction[_Command]) -> None:
        self._subparsers = subparsers

    def add_parser(self, name: str, *, help: str, **options: Any) -> argparse.ArgumentParser:
        """Add the parser of a subcommand. argparse lists a command if it has a help text, so it gets none."""
        return self._subparsers.add_parser(name, **options)


class _Command(argparse.ArgumentParser):
    """
    A subcommand's parser. It accepts the common options after the command, too.

    Args:
        output_help: the help of --output, where the common one does not fit.
        completes: what `amends completion KIND` prints as the values of its arguments.
        options: those of `argparse.ArgumentParser`.

    """

    def __init__(self, *, output_help: str = "", completes: Sequence[str] = (), **options: Any) -> None:
        super().__init__(**options)
        self.completes = tuple(completes)
        _common(self, default=argparse.SUPPRESS, output_help=output_help)


def _common(target: argparse.ArgumentParser, default: str | None, output_help: str = "") -> None:
    target.add_argument(
        "--output",
        choices=OUTPUTS,
        default=default,
        metavar="FORMAT",
        help=output_help or "text (terminal), json (pipe, --json) or problem",
    )
    target.add_argument(
        "--json", action="store_const", const="json", dest="output", default=default, help=argparse.SUPPRESS
    )
    target.add_argument(
        "--debug", action="store_true", default=default or False, help="print tracebacks to stderr"
    )


def as_sentence(summary: str) -> str:
    """Return a command's summary as a sentence, for its description."""
    return f"{summary[0].upper()}{summary[1:]}."


def wants_json(args: argparse.Namespace) -> bool:
    """Return whether the output is JSON: by --output, --json or AMENDS_OUTPUT, else if stdout is a pipe and it is usual there."""
    chosen = args.output or os.environ.get("AMENDS_OUTPUT")
    if chosen in OUTPUTS:
        return chosen == "json"
    return getattr(args, "command", None) not in TEXT_IN_PIPES and not sys.stdout.isatty()


def command_after_dashes(argv: list[str], program: str) -> list[str]:
    """
    Return the command that follows `--`.

    Raises:
        UsageError: if there is none; its suggestion puts the given arguments after `--`.

    """
    if argv[:1] == ["--"] and len(argv) > 1:
        return argv[1:]
    from shlex import join

    from amends.errors.cli import UsageError

    command = join(argv) if argv[:1] != ["--"] and argv else "command …"
    raise UsageError(f"{program} needs a command after --", suggestions=[f"{program} -- {command}"])


def emit(value: object) -> None:
    """Print one indented JSON document to stdout."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        text = _escaped(value, indent=2)
    sys.stdout.write(text + "\n")


def json_bytes(value: object) -> bytes:
    """Return a value as JSON; lone surrogates in received text are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _escaped(value).encode()


def _escaped(value: object, indent: int | None = None) -> str:
    """Return JSON in ASCII, for values with lone surrogates. NaN and infinities become null."""
    from json import dumps

    from amends.cli.documents import finite

    separators = (",", ":") if indent is None else (",", ": ")
    return dumps(finite(msgspec.to_builtins(value)), indent=indent, separators=separators)


def run(argv: Sequence[str]) -> int:
    """Run the command line with the argparse binding and return the exit code. Without a command it prints the help."""
    _set_encodings()
    argv = _with_long_output(argv)
    top = parser(argv)

    def declared(flag: str) -> Collection[str] | None:
        # No subcommand can be repeated as a whole, so --retries is left in the arguments and refused as unknown.
        return () if flag == "--retries" else declared_values(top, argv, flag)

    options = parse_common_options(argv, declared, piped="json")

    def work(retry: CommandRetry) -> int:
        args = parse(top, options.rest)
        if args.command is None:
            top.print_help()
            return 0
        try:
            code: int = args.run(args)
        except ImportError as error:
            from amends.commands.missing_extra import from_import_error

            raise from_import_error(error) or error from None
        return code

    return run_command(work, options, success="own")


def _with_long_output(argv: Sequence[str]) -> list[str]:
    """Return the arguments with `--output json` for `--json`, up to `--`: what follows belongs to another command."""
    own = list(argv).index("--") if "--" in argv else len(argv)
    return [
        part
        for place, each in enumerate(argv)
        for part in (("--output", "json") if each == "--json" and place < own else (each,))
    ]


def _set_encodings() -> None:
    """Write UTF-8 to pipes and files in any locale; on a terminal replace characters its encoding lacks with "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
