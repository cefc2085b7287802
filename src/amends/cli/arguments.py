"""
Mistakes in a command's arguments: every mistake at once, each with the closest valid alternative.

Wrong usage (an unknown flag or command, a missing or an unexpected argument) exits with 3, an invalid value with 2. All
of them are found before the command runs. Their `phase` is "validation", which promises that the command had no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError

__all__ = [
    "VALIDATION",
    "Mistake",
    "argument_error",
    "bad_value",
    "close_matches",
    "missing",
    "surplus",
    "unknown",
]

VALIDATION = {"phase": "validation"}
MAX_LISTED = 12
"""A suggestion lists all commands only if there are at most this many; otherwise it points to --help."""
MUCH_LESS = 0.1
"""A name whose similarity is lower than the closest one's by this much is not suggested."""
_MAX_WORD = 100
"""A longer word is no misspelt name."""
MAX_MISTAKES = 20
"""The most mistakes that one error reports."""


class Mistake:
    """One mistake in the arguments."""

    __slots__ = ("code", "field", "message", "suggestions")

    def __init__(self, code: str, field: str | None, message: str, suggestions: Sequence[str]) -> None:
        self.code, self.field, self.message, self.suggestions = code, field, message, tuple(suggestions)

    def to_fault(self) -> Fault:
        """Return this mistake as a fault."""
        return Fault(
            code=self.code,
            message=self.message,
            vocabulary="cli",
            field=self.field,
            suggestions=self.suggestions,
            extensions=VALIDATION,
        )


def close_matches(given: str, known: Iterable[str]) -> list[str]:
    """
    Return up to three of the known names that resemble `given`, the closest first.

    The dashes of flags do not count, and neither do names that are much less alike than the closest. A name is close if
    at most about a third of its letters are wrong, or if one of both contains the other.

    >>> close_matches("--onec", ["--once", "--json", "--store"])
    ['--once']
    >>> close_matches("nope", ["envelope", "openai"]), close_matches("limit", ["max-limit"])
    ([], ['max-limit'])
    """
    from difflib import SequenceMatcher, get_close_matches

    bare = {name.lstrip("-"): name for name in known}
    word = given.lstrip("-")
    if len(word) > _MAX_WORD:
        return []
    found = [name for name in get_close_matches(word, bare, n=3, cutoff=0.6) if _is_close(word, name)]
    alike = [SequenceMatcher(None, name, word).ratio() for name in found]
    return [bare[name] for name, ratio in zip(found, alike, strict=True) if ratio > alike[0] - MUCH_LESS]


def _is_close(word: str, name: str) -> bool:
    """Whether one is the other with a few wrong letters, or contains it. difflib also finds letters that are far apart."""
    return word in name or name in word or _edits(word, name) <= (len(word) + len(name) + 3) // 6


def _edits(word: str, name: str) -> int:
    """Return how many letters have to be added, removed, replaced or swapped with their neighbour."""
    last: list[int] = []
    row = list(range(len(name) + 1))
    for i, letter in enumerate(word, 1):
        before, last, row = last, row, [i]
        for j, other in enumerate(name, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == name[j - 2] and word[i - 2] == other:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


def unknown(kind: str, given: str, known: Iterable[str], program: str) -> Mistake:
    """Return the mistake for an unknown flag or command (`kind`)."""
    names = list(known)
    before = f"{program} " if kind == "command" else ""
    steps = [f"Did you mean {before}{name}?" for name in close_matches(given, names)]
    if not steps and kind == "command" and len(names) <= MAX_LISTED:
        steps.append(f"Choose one of {', '.join(names)}")
    steps = steps or [f"See {program} --help"]
    return Mistake("USAGE_ERROR", given, f"{program} has no {kind} {given}", steps)


def missing(field: str, program: str, message: str = "") -> Mistake:
    """Return the mistake for a required argument that is missing."""
    return Mistake(
        "USAGE_ERROR", field, message or f"{field} is missing", [f"Give {field}; see {program} --help"]
    )


def surplus(arguments: Sequence[str], program: str, flags: Iterable[str] = ()) -> Mistake:
    """Return the mistake for arguments that the command does not take; `flags` take such a value."""
    listed = " ".join(arguments)
    noun = "argument" if len(arguments) == 1 else "arguments"
    steps = [f"Did you mean {flag} {listed}?" for flag in flags] or [f"Remove {listed}"]
    return Mistake("USAGE_ERROR", None, f"{program} does not take the {noun} {listed}", steps)


def bad_value(
    field: str | None,
    message: str,
    program: str,
    *,
    choices: Sequence[str] = (),
    given: str | None = None,
    wanted: str | None = None,
) -> Mistake:
    """Return the mistake for an invalid value. It suggests the valid `choices`, or a description of the type (`wanted`)."""
    steps = [
        f"Did you mean {choice}?" for choice in (close_matches(given, choices) if given and choices else ())
    ]
    place = f" for {field}" if field else ""
    if choices:
        steps.append(f"Use one of {', '.join(choices)}")
    elif wanted:
        steps.append(f"Give {wanted}{place}")
    else:
        steps.append(f"Give another value{place}; see {program} --help")
    return Mistake("VALIDATION_ERROR", field, message, steps)


def argument_error(mistakes: Sequence[Mistake]) -> FaultError:
    """
    Return one error for all mistakes.

    It is a USAGE_ERROR if any mistake is one, because the values cannot be judged while the usage is unclear.
    """
    parts = [mistake.to_fault() for mistake in mistakes[:MAX_MISTAKES]]
    if len(parts) == 1:
        return FaultError.from_fault(parts[0])
    codes = {part.code for part in parts}
    code = "USAGE_ERROR" if "USAGE_ERROR" in codes else "VALIDATION_ERROR"
    steps = tuple(dict.fromkeys(step for part in parts for step in part.suggestions))
    names = dict.fromkeys(part.field for part in parts if part.field)
    return FaultError.from_fault(
        Fault(
            code=code,
            message=f"{len(parts)} arguments are wrong: {', '.join(names) or row_for('cli', code).message}",
            vocabulary="cli",
            suggestions=steps,
            errors=tuple(parts),
            extensions=VALIDATION,
        )
    )
