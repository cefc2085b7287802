"""
The options every bound command takes: --output, --debug and --retries.

They are removed from the arguments before the framework parses them, so that they also apply when parsing fails. If the
application declares an option of the same name, that option stays in the arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence

from amends.core.validate import shown

__all__ = ["OUTPUTS", "USAGE", "CommonOptions", "Declared", "parse_common_options"]

OUTPUTS = ("text", "json", "problem")
USAGE = "Common options: --output text|json|problem, --debug, --retries N (only for commands that are safe to repeat)."
"""The epilog of a help text."""
MAX_RETRIES = 100

Declared = Callable[[str], Collection[str] | None]
"""Returns the values the application's own flag of this name accepts (empty: any value), or None if it has no such flag."""


class CommonOptions:
    """The values of the common options, and the arguments left for the framework (`rest`)."""

    __slots__ = ("debug", "mistakes", "output", "rest", "retries")

    def __init__(self) -> None:
        self.output = "text"
        self.debug = False
        self.retries = 0
        self.rest: list[str] = []
        self.mistakes: list[tuple[str, str, str]] = []
        """(flag, what is wrong, what to do)"""

    @property
    def machine_readable(self) -> bool:
        """Whether stdout must hold one JSON document (an envelope or a problem) and nothing else."""
        return self.output != "text"


def nothing_declared(_: str) -> None:
    """A `Declared` for an application without flags of its own."""


def parse_common_options(
    argv: Sequence[str], declared: Declared = nothing_declared, piped: str = "text"
) -> CommonOptions:
    """
    Read the common options from `argv` and the environment.

    Args:
        argv: the arguments without the program's name.
        declared: returns the values that the application's own flags accept.
        piped: the output if none was chosen and stdout is not a terminal.

    """
    if piped not in {"text", "json"}:
        raise ValueError(f'piped is "text" or "json", not {shown(piped)}')
    options, chosen = CommonOptions(), ""
    arguments = iter(argv)
    for argument in arguments:
        if argument == "--":
            options.rest += [argument, *arguments]
            break
        flag, equals, value = argument.partition("=")
        if flag == "--output":
            chosen = _output(options, declared, arguments, argument, value if equals else None) or chosen
        elif argument == "--debug":
            options.debug = True
            if declared(argument) is not None:
                options.rest.append(argument)
        elif flag == "--retries" and declared(flag) is None:
            _retries(options, value if equals else next(arguments, ""))
        else:
            options.rest.append(argument)
    options.output = chosen or _default(piped)
    return options


def _output(
    options: CommonOptions, declared: Declared, arguments: Iterator[str], argument: str, value: str | None
) -> str:
    """Return the output that `argument` chooses, or an empty string."""
    own = declared("--output")
    consumed = [argument]
    if value is None:
        value = next(arguments, None)
        if value is not None:
            consumed.append(value)
    if own is not None:
        options.rest += consumed
        return value if value in OUTPUTS and value in own else ""
    if value in OUTPUTS:
        return value
    options.mistakes.append(
        ("--output", "--output takes text, json or problem", "Use --output json, text or problem")
    )
    return ""


def _retries(options: CommonOptions, value: str) -> None:
    if value.isdecimal() and len(value) < 4 and int(value) <= MAX_RETRIES:
        options.retries = int(value)
    else:
        options.mistakes.append(
            (
                "--retries",
                f"--retries takes a number from 0 to {MAX_RETRIES}",
                "Give the number of retries, for example --retries 3",
            )
        )


def _default(piped: str) -> str:
    chosen = os.environ.get("AMENDS_OUTPUT", "")
    if chosen in OUTPUTS:
        return chosen
    return "text" if os.isatty(1) else piped
