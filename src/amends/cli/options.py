"""
The flags every bound command takes: --output, --debug and --retries.

They are taken out of the arguments before the framework sees them, so that they count also where parsing fails. A
flag that the application declares itself stays the application's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence

__all__ = ["OUTPUTS", "USAGE", "Asked", "Declared", "take"]

OUTPUTS = ("text", "json", "problem")
USAGE = "Everywhere: --output text|json|problem, --debug, --retries N (where a repeat is safe)."
"""For the foot of a help text."""
MOST_RETRIES = 100

Declared = Callable[[str], Collection[str] | None]
"""The values an application's own flag of this name accepts (none listed: anything); None where it has no such flag."""


class Asked:
    """What the caller wants from the binding, and the arguments that are left for the framework."""

    __slots__ = ("debug", "mistakes", "output", "rest", "retries")

    def __init__(self) -> None:
        self.output = "text"
        self.debug = False
        self.retries = 0
        self.rest: list[str] = []
        self.mistakes: list[tuple[str, str, str]] = []
        """(flag, what is wrong, what to do)"""

    @property
    def for_program(self) -> bool:
        """Whether a program reads the answer: an envelope or a problem document, and nothing else on stdout."""
        return self.output != "text"


def nothing_declared(_: str) -> None:
    """An application without flags of its own."""


def take(argv: Sequence[str], declared: Declared = nothing_declared, piped: str = "text") -> Asked:
    """
    What `argv` and the environment ask for.

    Args:
        argv: the arguments without the program's name.
        declared: what the application's own flags accept.
        piped: the output when nobody chose one and stdout is no terminal.

    """
    asked, chosen = Asked(), ""
    words = iter(argv)
    for word in words:
        if word == "--":
            asked.rest += [word, *words]
            break
        flag, equals, value = word.partition("=")
        if flag == "--output":
            chosen = _output(asked, declared, words, word, value if equals else None) or chosen
        elif word == "--debug":
            asked.debug = True
            if declared(word) is not None:
                asked.rest.append(word)
        elif flag == "--retries" and declared(flag) is None:
            _retries(asked, value if equals else next(words, ""))
        else:
            asked.rest.append(word)
    asked.output = chosen or _default(piped)
    return asked


def _output(asked: Asked, declared: Declared, words: Iterable[str], word: str, value: str | None) -> str:
    own = declared("--output")
    if value is None:
        value = next(iter(words), None)
        given = [word] if value is None else [word, value]
    else:
        given = [word]
    if own is not None:
        asked.rest += given
        return value if value in OUTPUTS and value in own else ""
    if value in OUTPUTS:
        return value
    asked.mistakes.append(
        ("--output", "--output takes text, json or problem", "Use --output json, text or problem")
    )
    return ""


def _retries(asked: Asked, value: str) -> None:
    if value.isdecimal() and len(value) < 4 and int(value) <= MOST_RETRIES:
        asked.retries = int(value)
    else:
        asked.mistakes.append(
            (
                "--retries",
                f"--retries takes a number from 0 to {MOST_RETRIES}",
                "Say how many repeats may be made",
            )
        )


def _default(piped: str) -> str:
    named = os.environ.get("AMENDS_OUTPUT", "")
    if named in OUTPUTS:
        return named
    return "text" if os.isatty(1) else piped
