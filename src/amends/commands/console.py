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
from difflib import get_close_matches
from importlib import import_module
from math import isfinite
from typing import Any, NoReturn

import msgspec

from amends._version import __version__
from amends.core.exits import exit_code
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.errors.cli import InternalError, UsageError, ValidationError

__all__ = ["OUTPUTS", "Parser", "emit", "run", "wants_json"]

OUTPUTS = ("text", "json", "problem")

# In the order a newcomer meets them. Each module has add(subparsers) and run(args) -> exit code.
COMMANDS = {
    "try": "tour",
    "decode": "decode",
    "explain": "explain",
    "translate": "translate",
    "schema": "schema",
    "store": "store",
    "run": "run",
    "audit": "audit",
}

_INTERRUPTED = 130
_BROKEN_PIPE = 141


class Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are typed errors instead of a text and an exit."""

    def error(self, message: str) -> NoReturn:
        """Missing arguments and unknown flags: usage (exit 3)."""
        raise UsageError(f"{self.prog}: {message}", suggestions=[f"See {self.prog} --help"])

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse, telling bad values (exit 2) from wrong usage (exit 3)."""
        try:
            return self.parse_args(argv)
        except argparse.ArgumentError as error:
            if error.argument_name in {"command", "COMMAND"}:
                raise self._unknown_command(argv) from None
            raise ValidationError(
                f"{self.prog}: {error}", field=error.argument_name, suggestions=[f"See {self.prog} --help"]
            ) from None

    def _unknown_command(self, argv: Sequence[str]) -> UsageError:
        known = [choice for action in self._actions for choice in action.choices or ()]
        given = next((word for word in argv if not word.startswith("-")), "")
        near = get_close_matches(given, known, n=3)
        return UsageError(
            f"{self.prog} has no command {given!r}",
            suggestions=[f"Did you mean {self.prog} {word}?" for word in near] or [f"See {self.prog} --help"],
        )


def parser(argv: Sequence[str] = ()) -> Parser:
    """
    The command line.

    Where `argv` begins with a command, only that one is loaded: the others would cost their imports for nothing.
    """
    chosen = argv[0] if argv and argv[0] in COMMANDS else None
    top = Parser(
        prog="amends",
        description="Failures an agent can act on: read, decide, translate and look up structured errors.",
        exit_on_error=False,
    )
    top.add_argument("--version", action="version", version=f"amends {__version__}")
    _common(top, default=None)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Command)
    for name in (chosen,) if chosen else COMMANDS:
        import_module(f"amends.commands.{COMMANDS[name]}").add(commands)
    return top


class _Command(Parser):
    """A subcommand's parser: it takes the common options after the command as well as before it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(exit_on_error=False, **options)
        _common(self, default=argparse.SUPPRESS)


def _common(target: argparse.ArgumentParser, default: Any) -> None:
    target.add_argument(
        "--output", choices=OUTPUTS, default=default, help="default: text on a terminal, JSON in a pipe"
    )
    target.add_argument("--debug", action="store_true", default=default or False, help="tracebacks on stderr")


def wants_json(args: argparse.Namespace) -> bool:
    """Whether results go to a program: asked for, or stdout is no terminal."""
    chosen = args.output or os.environ.get("AMENDS_OUTPUT")
    return chosen == "json" if chosen in OUTPUTS else not sys.stdout.isatty()


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

    separators = (",", ":") if indent is None else (",", ": ")
    return dumps(_finite(msgspec.to_builtins(value)), indent=indent, separators=separators)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def run(argv: Sequence[str]) -> int:
    """Run the command line and say its failures."""
    try:
        args = parser(argv).parse(argv)
        code: int = args.run(args)
        sys.stdout.flush()
    except FaultError as error:
        return _say(error.fault, argv, error)
    except KeyboardInterrupt:
        # The person at the keyboard knows; a shell wants the signal's own number.
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has left. Python would complain once more while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last line of defence says that it failed, never how
        return _say(InternalError().fault, argv, error)
    return code


def _say(fault: Fault, argv: Sequence[str], error: Exception) -> int:
    if "--debug" in argv:
        import traceback

        traceback.print_exception(error)
    output = _chosen(argv)
    if output == "text":
        _say_text(fault)
    else:
        from amends.dialects import encode

        sys.stdout.write(
            json_bytes(encode(fault, "problem" if output == "problem" else "envelope")).decode() + "\n"
        )
    return exit_code(fault)


def _chosen(argv: Sequence[str]) -> str:
    """The output asked for, found also where parsing the arguments failed."""
    words = iter(argv)
    for word in words:
        value = next(words, "") if word == "--output" else word.removeprefix("--output=")
        if word.startswith("--output") and value in OUTPUTS:
            return value
        if word == "--":
            break
    named = os.environ.get("AMENDS_OUTPUT", "")
    if named in OUTPUTS:
        return named
    return "text" if sys.stdout.isatty() else "json"


def _say_text(fault: Fault) -> None:
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    red, dim, plain = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if colour else ("", "", "")
    for step in fault.suggestions[:1]:
        sys.stderr.write(f"{step}\n")
    sys.stderr.write(f"{red}{fault.code}{plain} {fault.message}\n")
    for step in fault.suggestions[1:]:
        sys.stderr.write(f"{dim}{step}{plain}\n")
