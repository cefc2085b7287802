"""
What every subcommand shares: arguments, the way results leave, and how the command's own failures are said.

In a pipe and with `--output json` a failure is S2's envelope on stdout; on a terminal it is a short text on stderr,
the fix first. The exit code is the same either way.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import msgspec

from amends._version import __version__
from amends.bindings.argparse import declared, parse
from amends.cli.command_retry import Tries
from amends.cli.options import OUTPUTS, take
from amends.cli.session import conduct

__all__ = ["OUTPUTS", "as_sentence", "emit", "json_bytes", "run", "wants_json", "words_after"]

# In the order a newcomer meets them. Each module has add(subparsers) and run(args) -> exit code.
COMMANDS = {
    "try": "try_",
    "decode": "decode",
    "explain": "explain",
    "translate": "translate",
    "schema": "schema",
    "store": "store",
    "run": "run",
    "audit": "audit",
    "runtime": "runtime",
    "tasks": "tasks",
    "completion": "completion",
}


def parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """
    The command line.

    Where `argv` begins with a command, only that one is loaded: the others would cost their imports for nothing.
    """
    chosen = argv[0] if argv and argv[0] in COMMANDS else None
    top = argparse.ArgumentParser(
        prog="amends",
        usage="amends [options] COMMAND …",  # all of the help fits on one screen, with the next prompt
        description="Failures an agent can act on. `amends COMMAND --help` says more.",
    )
    top.add_argument(
        "--version", action="version", version=f"amends {__version__}", help="show the version and exit"
    )
    _common(top, default=None)
    commands = top.add_subparsers(
        prog="amends",
        dest="command",
        metavar="COMMAND",
        required=True,
        parser_class=_Command,
        title="commands",
    )
    for name in (chosen,) if chosen else COMMANDS:
        import_module(f"amends.commands.{COMMANDS[name]}").add(commands)
    return top


class _Command(argparse.ArgumentParser):
    """A subcommand's parser: it takes the common options after the command as well as before it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        _common(self, default=argparse.SUPPRESS)


def _common(target: argparse.ArgumentParser, default: Any) -> None:
    target.add_argument(
        "--output",
        choices=OUTPUTS,
        default=default,
        metavar="FORMAT",
        help="text (on a terminal), json (in a pipe) or problem",
    )
    target.add_argument("--debug", action="store_true", default=default or False, help="tracebacks on stderr")


def as_sentence(words: str) -> str:
    """A description from what a list of commands says of one: `amends COMMAND --help` begins with it."""
    return f"{words[0].upper()}{words[1:]}."


def wants_json(args: argparse.Namespace) -> bool:
    """Whether results go to a program: asked for, or stdout is no terminal."""
    chosen = args.output or os.environ.get("AMENDS_OUTPUT")
    return chosen == "json" if chosen in OUTPUTS else not sys.stdout.isatty()


def words_after(words: list[str], program: str) -> list[str]:
    """
    The command behind the two dashes.

    Raises:
        UsageError: when there is none; the words that were given show how to write it.

    """
    if words[:1] == ["--"] and len(words) > 1:
        return words[1:]
    from shlex import join

    from amends.errors.cli import UsageError

    meant = join(words) if words[:1] != ["--"] and words else "command …"
    raise UsageError(f"{program} needs a command after --", suggestions=[f"{program} -- {meant}"])


def emit(value: Any) -> None:
    """One JSON document on stdout, readable, with a line end."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        text = _escaped(value, indent=2)
    sys.stdout.write(text + "\n")


def json_bytes(value: Any) -> bytes:
    """A value as JSON, also where it holds lone surrogates from outside."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _escaped(value).encode()


def _escaped(value: Any, indent: int | None = None) -> str:
    """JSON in ASCII, for values with lone surrogates. Numbers that are none become null, as everywhere."""
    from json import dumps

    from amends.cli.documents import finite

    separators = (",", ":") if indent is None else (",", ": ")
    return dumps(finite(msgspec.to_builtins(value)), indent=indent, separators=separators)


def run(argv: Sequence[str]) -> int:
    """Run the command line and say its failures, with the binding that others use for theirs."""
    _legible()
    top = parser(argv)
    asked = take(argv, lambda flag: _NONE if flag == "--retries" else declared(top, argv, flag), piped="json")

    def work(tries: Tries) -> int:
        args = parse(top, asked.rest)
        code: int = args.run(args)
        return code

    return conduct(work, asked, success="own")


def _legible() -> None:
    """A program gets UTF-8, whatever the locale; a terminal that cannot show a character gets a question mark for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


_NONE: tuple[str, ...] = ()
"""No command here may be repeated as a whole, so --retries is no flag of ours."""
