"""
Every mistake in a command line, found by parsing it once more.

argparse stops at the first. So each argument's type is asked to note what is wrong and go on, what is unknown is
collected, and what is missing argparse lists itself. Only public attributes are changed, and put back.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import EnumType
from io import StringIO
from typing import Any, NoReturn

from amends.bindings.argparse import parsers, path
from amends.cli.arguments import Mistake, bad_value, surplus, unknown
from amends.cli.kinds import kind_name, words

__all__ = ["mistakes"]


class _StopError(Exception):
    """Parsing cannot go on."""

    def __init__(self, where: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.where = where


def mistakes(parser: argparse.ArgumentParser, argv: list[str], first: Exception) -> list[Mistake]:
    """What is wrong with `argv`: at least one mistake, `first` where nothing better was found."""
    found: list[Mistake] = []
    with _noting(parser, found), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            _, rest = parser.parse_known_args(argv)
        except _StopError as stop:
            if str(stop):  # without a word it is --help or --version, which come too late to be answered
                found.append(_stopped(stop.where, str(stop)))
        except argparse.ArgumentError as error:
            # Python 3.13 raises what is missing instead of calling error().
            missing = error.argument_name is None
            where = path(parser, argv)[-1]
            found.append(_stopped(where, error.message) if missing else _refused(parser, error, argv))
        except Exception:  # noqa: BLE001, S110 - an action that was not written to be asked twice
            pass
        else:
            found += _unrecognised(parser, argv, rest)
    return found or [Mistake("USAGE_ERROR", None, str(first), [f"See {parser.prog} --help"])]


@contextmanager
def _noting(parser: argparse.ArgumentParser, found: list[Mistake]) -> Iterator[None]:
    every = list(parsers(parser))
    before = [(each, each.exit_on_error) for each in every]
    actions = {id(action): (action, each.prog) for each in every for action in each._actions}  # noqa: SLF001
    kept = [
        (action, action.type, action.choices, program)
        for action, program in actions.values()
        if not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        and (action.type is None or callable(action.type))
    ]
    try:
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
            note(f"{text!r} is no {getattr(kind, '__name__', 'value')}", text)
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
    return Mistake(
        "USAGE_ERROR", listed or None, f"{parser.prog}: {message}", [*steps, f"See {parser.prog} --help"]
    )


def _refused(parser: argparse.ArgumentParser, error: argparse.ArgumentError, argv: list[str]) -> Mistake:
    """A command that there is none of, a flag that wants a value, flags that exclude each other."""
    for each in parsers(parser):
        for action in each._actions:  # noqa: SLF001
            if isinstance(action, argparse._SubParsersAction) and _argument(action) == error.argument_name:  # noqa: SLF001
                given = next((word for word in argv if _word(word) and word not in action.choices), "")
                return unknown("command", given, action.choices, each.prog)
    return Mistake(
        "USAGE_ERROR", error.argument_name, f"{parser.prog}: {error}", [f"See {parser.prog} --help"]
    )


def _argument(action: argparse.Action) -> str:
    """What an ArgumentError calls a positional argument."""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest if action.dest != argparse.SUPPRESS else "{" + ",".join(action.choices or ()) + "}"


def _word(word: str) -> bool:
    return not word.startswith("-")


def _unrecognised(parser: argparse.ArgumentParser, argv: list[str], rest: list[str]) -> Iterator[Mistake]:
    flags = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "--"]
    known = [
        flag
        for each in path(parser, argv)
        for action in each._actions  # noqa: SLF001
        for flag in action.option_strings
    ]
    program = path(parser, argv)[-1].prog
    for flag in flags:
        yield unknown("flag", flag, known, program)
    words = [word for word in rest if _word(word)]
    if words and not flags:  # the word after an unknown flag is probably its value
        yield surplus(words, program)
