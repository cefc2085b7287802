"""
Every mistake in a command line, found by parsing it once more.

argparse stops at the first. So each argument's type is asked to note what is wrong and go on, what is unknown is
collected, and what is missing argparse lists itself; where it stops all the same, flags that nobody knows are looked
for in the words. Only public attributes are changed, and put back.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import EnumType
from io import StringIO
from typing import Any, NoReturn

from amends.bindings.argparse import parsers, path
from amends.cli.arguments import Mistake, bad_value, surplus, unknown
from amends.cli.type_names import kind_name, words

__all__ = ["mistakes"]


class _StopError(Exception):
    """Parsing cannot go on."""

    def __init__(self, where: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.where = where


def mistakes(parser: argparse.ArgumentParser, argv: list[str], first: Exception) -> list[Mistake]:
    """What is wrong with `argv`: at least one mistake, `first` where nothing better was found."""
    found: list[Mistake] = []
    commands: dict[int, str] = {}
    with _noting(parser, found, commands), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            _, rest = parser.parse_known_args(argv)
        except _StopError as stop:
            if str(stop):  # without a word it is --help or --version, which come too late to be answered
                found += [*_strangers(parser, argv), _stopped(stop.where, str(stop))]
        except argparse.ArgumentError as error:
            found += _refused(parser, error, argv, commands)
        except Exception:  # noqa: BLE001, S110 - an action that was not written to be asked twice
            pass
        else:
            found += _unrecognised(parser, argv, rest)
    return found or [Mistake("USAGE_ERROR", None, str(first), [f"See {parser.prog} --help"])]


@contextmanager
def _noting(
    parser: argparse.ArgumentParser, found: list[Mistake], commands: dict[int, str]
) -> Iterator[None]:
    """`commands` gets the word that was given for each choice of a command."""
    every = list(parsers(parser))
    before = [(each, each.exit_on_error) for each in every]
    actions = {id(action): (action, each.prog) for each in every for action in each._actions}  # noqa: SLF001
    kept = [
        (action, action.type, action.choices, program)
        for action, program in actions.values()
        if not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        and (action.type is None or callable(action.type))
    ]
    choosing = [action for each in every if (action := _choosing(each)) is not None]
    try:
        for choice in choosing:
            choice.type = _recording(choice, commands)
        for each in every:
            each.exit_on_error = False
            each.error = _stopping(each)  # type: ignore[method-assign]
            each.exit = _stopping(each, silent=True)  # type: ignore[method-assign]
        for action, kind, choices, program in kept:
            action.type = _tolerant(action, kind, choices, program, found)
            action.choices = None
        yield
    finally:
        for each, exits in before:
            each.exit_on_error = exits
            each.__dict__.pop("exit", None)
            each.__dict__.pop("error", None)
        for action, kind, choices, _ in kept:
            action.type, action.choices = kind, choices
        for choice in choosing:
            choice.type = None


def _choosing(parser: argparse.ArgumentParser) -> Any:
    """The argument that chooses among a parser's commands, or None."""
    subparsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no other way to ask
    return next((action for action in parser._actions if isinstance(action, subparsers)), None)  # noqa: SLF001


def _recording(choice: argparse.Action, commands: dict[int, str]) -> Callable[[str], str]:
    """A type for what chooses a command: it is asked for the command's own words too, so the first counts."""

    def record(text: str) -> str:
        commands.setdefault(id(choice), text)
        return text

    return record


def _stopping(parser: argparse.ArgumentParser, *, silent: bool = False) -> Callable[..., NoReturn]:
    def stop(*words: Any) -> NoReturn:
        raise _StopError(parser, "" if silent else str(words[0]))

    return stop


def _tolerant(
    action: argparse.Action, kind: Any, choices: Any, program: str, found: list[Mistake]
) -> Callable[[str], Any]:
    name = _name(action)
    listed = [str(choice) for choice in choices] if choices is not None else _members(kind)
    wanted = words(kind_name(kind))

    def note(message: str, given: str) -> None:
        found.append(
            bad_value(name, f"{name}: {message}", program, choices=listed, given=given, wanted=wanted)
        )

    def convert(text: str) -> Any:
        try:
            value = text if kind is None else kind(text)
        except argparse.ArgumentTypeError as error:
            note(str(error), text)
        except (TypeError, ValueError):
            note(f"{text!r} is not {wanted or 'a value it takes'}", text)
        else:
            if choices is not None and value not in choices:
                note(f"{text!r} is none of {', '.join(listed)}", text)
            return value
        return None

    return convert


def _members(kind: Any) -> list[str]:
    """The values of an enumeration that is used as a type."""
    members: Iterable[Any] = kind if isinstance(kind, EnumType) else ()
    return [str(member.value) for member in members]


def _name(action: argparse.Action) -> str:
    if action.option_strings:
        return max(action.option_strings, key=len)
    return str(action.metavar or action.dest)


def _stopped(parser: argparse.ArgumentParser, message: str) -> Mistake:
    """What argparse says itself: mostly, what is missing."""
    _, _, listed = message.partition(": ")
    steps = [f"Give {listed}"] if listed else []
    choice = _choosing(parser)
    if choice is not None and listed == _argument(choice):
        steps = [f"Give {listed}, one of {', '.join(choice.choices)}"]
    return Mistake(
        "USAGE_ERROR", listed or None, f"{parser.prog}: {message}", [*steps, f"See {parser.prog} --help"]
    )


def _refused(
    parser: argparse.ArgumentParser, error: argparse.ArgumentError, argv: list[str], commands: dict[int, str]
) -> list[Mistake]:
    """A command that there is none of, a flag that wants a value, flags that exclude each other."""
    where, strangers = path(parser, argv)[-1], _strangers(parser, argv)
    if error.argument_name is None:  # Python 3.13 raises what is missing instead of calling error()
        return [*strangers, _stopped(where, error.message)]
    for each in parsers(parser):
        choice = _choosing(each)
        given = "" if choice is None else commands.get(id(choice), "")
        if given and given not in choice.choices:
            before = argv[argv.index(given) - 1] if argv.index(given) else ""
            if any(flag.field == before for flag in strangers):
                return strangers  # the word after an unknown flag is probably its value
            return [*strangers, unknown("command", given, choice.choices, each.prog)]
    what = Mistake("USAGE_ERROR", error.argument_name, f"{where.prog}: {error}", [f"See {where.prog} --help"])
    return [*strangers, what]


def _strangers(parser: argparse.ArgumentParser, argv: list[str]) -> list[Mistake]:
    """The flags that no parser on the way knows, where argparse stopped before it could say so."""
    through = path(parser, argv)
    known = _flags(through)
    words = argv[: argv.index("--")] if "--" in argv else argv
    return [
        unknown("flag", flag, known, through[-1].prog)
        for flag in dict.fromkeys(word.partition("=")[0] for word in words if _LONG.match(word))
        if not any(each.startswith(flag) for each in known)
    ]


_LONG = re.compile(r"--\w|-[A-Za-z]$")
"""What is surely meant as a flag: a long one, or a single letter; not a number, and not letters that are joined."""


def _flags(through: list[argparse.ArgumentParser]) -> list[str]:
    every = (action for each in through for action in each._actions)  # noqa: SLF001
    return list(dict.fromkeys(flag for action in every for flag in action.option_strings))


def _argument(action: argparse.Action) -> str:
    """What an ArgumentError calls a positional argument."""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest if action.dest != argparse.SUPPRESS else "{" + ",".join(action.choices or ()) + "}"


def _word(word: str) -> bool:
    return not word.startswith("-")


def _unrecognised(parser: argparse.ArgumentParser, argv: list[str], rest: list[str]) -> Iterator[Mistake]:
    flags = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "--"]
    through = path(parser, argv)
    program = through[-1].prog
    for flag in flags:
        yield unknown("flag", flag, _flags(through), program)
    words = [word for word in rest if _word(word)]
    if words and not flags:  # the word after an unknown flag is probably its value
        yield surplus(words, program)
