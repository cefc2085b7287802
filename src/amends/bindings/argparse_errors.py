"""
Finds every mistake in a command line by parsing it a second time.

argparse stops at the first mistake. For the second pass each argument's type is replaced by one that records an invalid
value and continues, and unknown arguments are collected; argparse itself lists the missing ones. If argparse stops all
the same, the arguments are searched for unknown flags. Only public attributes are replaced, and restored afterwards.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import EnumType
from io import StringIO
from typing import Any, NoReturn

from amends.bindings.argparse_parsers import all_parsers, selected_parsers
from amends.cli.arguments import Mistake, bad_value, surplus, unknown
from amends.cli.type_names import describe_type, type_name

__all__ = ["find_mistakes"]


class _StopError(Exception):
    """A parser called `error` (with a message) or `exit` (without one)."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser


def find_mistakes(parser: argparse.ArgumentParser, argv: list[str], first: Exception) -> list[Mistake]:
    """Return the mistakes in `argv`: at least one, made from `first` if the second pass found none."""
    found: list[Mistake] = []
    commands: dict[int, str] = {}
    rest: list[str] = []
    stopped: Exception | None = None
    with _recording(parser, found, commands), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            _, rest = parser.parse_known_args(argv)
        except Exception as error:  # noqa: BLE001 - an application's own action may fail when it runs a second time
            stopped = error
    if stopped is None:
        found += _unrecognised(parser, argv, rest)
    elif isinstance(stopped, _StopError):
        if str(stopped):  # without a message it is --help or --version, which an earlier mistake overrides
            found += [*_unknown_flags(parser, argv), _parser_mistake(stopped.parser, str(stopped))]
    elif isinstance(stopped, argparse.ArgumentError):
        found += _argument_mistakes(parser, stopped, argv, commands)
    return found or [Mistake("USAGE_ERROR", None, str(first), [f"See {parser.prog} --help"])]


@contextmanager
def _recording(
    parser: argparse.ArgumentParser, found: list[Mistake], commands: dict[int, str]
) -> Iterator[None]:
    """Replace types and error handlers; `found` receives the mistakes, `commands` the command given for each choice."""
    every = list(all_parsers(parser))
    before = [(each, each.exit_on_error) for each in every]
    actions = {id(action): (action, each.prog) for each in every for action in each._actions}  # noqa: SLF001
    kept = [
        (action, action.type, action.choices, program)
        for action, program in actions.values()
        if not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        and (action.type is None or callable(action.type))
    ]
    command_choices = [action for each in every if (action := _subparsers_action(each)) is not None]
    try:
        for choice in command_choices:
            choice.type = _recording_type(choice, commands)
        for each in every:
            each.exit_on_error = False
            each.error = _raise_stop(each)  # type: ignore[method-assign]
            each.exit = _raise_stop(each, silent=True)  # type: ignore[method-assign]
        for action, kind, choices, program in kept:
            action.type = _tolerant_type(action, kind, choices, program, found)
            action.choices = None
        yield
    finally:
        for each, exits in before:
            each.exit_on_error = exits
            each.__dict__.pop("exit", None)
            each.__dict__.pop("error", None)
        for action, kind, choices, _ in kept:
            action.type, action.choices = kind, choices
        for choice in command_choices:
            choice.type = None


def _subparsers_action(parser: argparse.ArgumentParser) -> Any:
    """Return the action that selects one of a parser's commands, or None."""
    subparsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it
    return next((action for action in parser._actions if isinstance(action, subparsers)), None)  # noqa: SLF001


def _recording_type(choice: argparse.Action, commands: dict[int, str]) -> Callable[[str], str]:
    """Return a type that records the given command: the first call, because the command's own arguments follow."""

    def record(text: str) -> str:
        commands.setdefault(id(choice), text)
        return text

    return record


def _raise_stop(parser: argparse.ArgumentParser, *, silent: bool = False) -> Callable[..., NoReturn]:
    def stop(*args: object) -> NoReturn:
        raise _StopError(parser, "" if silent else str(args[0]))

    return stop


def _tolerant_type(
    action: argparse.Action, kind: Any, choices: Any, program: str, found: list[Mistake]
) -> Callable[[str], object]:
    """Return a type that converts like `kind`, but records an invalid value in `found` instead of raising."""
    name = _name(action)
    listed = [str(choice) for choice in choices] if choices is not None else _enum_values(kind)
    wanted = describe_type(type_name(kind))

    def record(message: str, given: str) -> None:
        found.append(
            bad_value(name, f"{name}: {message}", program, choices=listed, given=given, wanted=wanted)
        )

    def convert(text: str) -> object:
        try:
            value = text if kind is None else kind(text)
        except argparse.ArgumentTypeError as error:
            record(str(error), text)
        except (TypeError, ValueError):
            record(f"{text!r} is not {wanted or 'a valid value'}", text)
        else:
            if choices is not None and value not in choices:
                record(f"{text!r} is not a valid value", text)  # the suggestions list the valid ones
            return value
        return None

    return convert


def _enum_values(kind: object) -> list[str]:
    """Return the values of an enumeration that is used as a type; an empty list for any other type."""
    members: Iterable[Any] = kind if isinstance(kind, EnumType) else ()
    return [str(member.value) for member in members]


def _name(action: argparse.Action) -> str:
    if action.option_strings:
        return max(action.option_strings, key=len)
    return str(action.metavar or action.dest)


_ONE_OF = re.compile(r"one of the arguments (.+) is required")
"""argparse's message for a group of which exactly one argument must be given."""


def _parser_mistake(parser: argparse.ArgumentParser, message: str) -> Mistake:
    """Return the mistake for argparse's own message; usually it lists the missing arguments."""
    _, _, listed = message.partition(": ")
    see = f"See {parser.prog} --help"
    if alternatives := _ONE_OF.fullmatch(message):
        needed = " or ".join(alternatives[1].split())
        return Mistake("USAGE_ERROR", None, f"{parser.prog} needs {needed}", [f"Give {needed}", see])
    if not message.startswith("the following arguments are required: "):
        return Mistake(
            "USAGE_ERROR",
            listed or None,
            f"{parser.prog}: {message}",
            [*([f"Give {listed}"] if listed else []), see],
        )
    *others, last = listed.split(", ")
    needed = f"{', '.join(others)} and {last}" if others else last
    step = f"Give {needed}"
    for action in parser._actions:  # noqa: SLF001
        if action.choices is not None and listed == _positional_name(action):
            step = f"Give {needed}, one of {', '.join(map(str, action.choices))}"
    return Mistake("USAGE_ERROR", listed, f"{parser.prog} needs {needed}", [step, see])


def _argument_mistakes(
    parser: argparse.ArgumentParser, error: argparse.ArgumentError, argv: list[str], commands: dict[int, str]
) -> list[Mistake]:
    """Return the mistakes for an unknown command, a flag without its value, or flags that exclude each other."""
    innermost, flags = selected_parsers(parser, argv)[-1], _unknown_flags(parser, argv)
    if error.argument_name is None:  # Python 3.13 raises an ArgumentError for missing arguments
        return [*flags, _parser_mistake(innermost, error.message)]
    for each in all_parsers(parser):
        choice = _subparsers_action(each)
        given = "" if choice is None else commands.get(id(choice), "")
        if given and given not in choice.choices:
            before = argv[argv.index(given) - 1] if argv.index(given) else ""
            if any(flag.field == before for flag in flags):
                return flags  # the argument after an unknown flag is probably its value
            return [*flags, unknown("command", given, choice.choices, each.prog)]
    help_hint = f"See {innermost.prog} --help"
    return [*flags, Mistake("USAGE_ERROR", error.argument_name, f"{innermost.prog}: {error}", [help_hint])]


def _unknown_flags(parser: argparse.ArgumentParser, argv: list[str]) -> list[Mistake]:
    """Return the flags that none of the selected parsers has, for when argparse stopped before it reported them."""
    selected = selected_parsers(parser, argv)
    known = _known_flags(selected)
    arguments = argv[: argv.index("--")] if "--" in argv else argv
    return [
        unknown("flag", flag, known, selected[-1].prog)
        for flag in dict.fromkeys(
            argument.partition("=")[0] for argument in arguments if _FLAG.match(argument)
        )
        if not any(each.startswith(flag) for each in known)
    ]


_FLAG = re.compile(r"--\w|-[A-Za-z]$")
"""Arguments that are certainly flags: long ones and single letters. Numbers and joined letters may be values."""


def _known_flags(selected: list[argparse.ArgumentParser]) -> list[str]:
    every = (action for each in selected for action in each._actions)  # noqa: SLF001
    return list(dict.fromkeys(flag for action in every for flag in action.option_strings))


def _positional_name(action: argparse.Action) -> str:
    """Return the name that an ArgumentError uses for a positional argument."""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest if action.dest != argparse.SUPPRESS else "{" + ",".join(action.choices or ()) + "}"


def _unrecognised(parser: argparse.ArgumentParser, argv: list[str], rest: list[str]) -> Iterator[Mistake]:
    """Yield the mistakes for the arguments that argparse left over."""
    flags = [each.partition("=")[0] for each in rest if each.startswith("-") and each != "--"]
    selected = selected_parsers(parser, argv)
    program = selected[-1].prog
    for flag in flags:
        yield unknown("flag", flag, _known_flags(selected), program)
    positional = [each for each in rest if not each.startswith("-")]
    if positional and not flags:  # the argument after an unknown flag is probably its value
        yield surplus(positional, program, _url_flags(selected[-1], positional))


def _url_flags(parser: argparse.ArgumentParser, given: list[str]) -> list[str]:
    """Return the flags that take a URL, if the only argument left over is one."""
    if len(given) != 1 or "://" not in given[0]:
        return []
    return [_name(each) for each in parser._actions if each.option_strings and each.metavar == "URL"]  # noqa: SLF001
