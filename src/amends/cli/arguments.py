"""
Mistakes in arguments, all of them at once, each with the nearest thing that would have been right.

Wrong usage (an unknown flag or command, something missing or too much) is exit 3; a value of the wrong kind is exit 2.
They are found before the command ran, and say so: `phase` is "validation", which promises that nothing happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError

__all__ = ["VALIDATION", "Mistake", "bad_value", "missing", "mistaken", "near", "surplus", "unknown"]

VALIDATION = {"phase": "validation"}
FEW = 12
"""Commands that are listed where none is near; more are looked up in the help."""
MOST = 20
"""Mistakes that are told; nobody corrects more at a time."""


class Mistake:
    """One thing that is wrong with the arguments."""

    __slots__ = ("code", "field", "message", "suggestions")

    def __init__(self, code: str, field: str | None, message: str, suggestions: Sequence[str]) -> None:
        self.code, self.field, self.message, self.suggestions = code, field, message, tuple(suggestions)

    def fault(self) -> Fault:
        """The fault this mistake is on its own."""
        return Fault(
            code=self.code,
            message=self.message,
            vocabulary="cli",
            field=self.field,
            suggestions=self.suggestions,
            extensions=VALIDATION,
        )


def near(given: str, known: Iterable[str]) -> list[str]:
    """What was probably meant: at most three, the nearest first."""
    from difflib import get_close_matches

    return get_close_matches(given, list(known), n=3, cutoff=0.6)


def unknown(kind: str, given: str, known: Iterable[str], program: str) -> Mistake:
    """A flag or command that there is none of."""
    words = list(known)
    before = f"{program} " if kind == "command" else ""
    steps = [f"Did you mean {before}{word}?" for word in near(given, words)]
    if not steps and kind == "command" and len(words) <= FEW:
        steps.append(f"Choose one of {', '.join(words)}")
    steps = steps or [f"See {program} --help"]
    return Mistake("USAGE_ERROR", given, f"{program} has no {kind} {given}", steps)


def missing(field: str, program: str, message: str = "") -> Mistake:
    """Something that has to be given was not."""
    return Mistake(
        "USAGE_ERROR", field, message or f"{field} is missing", [f"Give {field}; see {program} --help"]
    )


def surplus(words: Sequence[str], program: str) -> Mistake:
    """More was given than there is a place for."""
    listed = " ".join(words)
    return Mistake("USAGE_ERROR", None, f"{listed} is more than {program} takes", [f"Leave out {listed}"])


def bad_value(
    field: str | None,
    message: str,
    program: str,
    *,
    choices: Sequence[str] = (),
    given: str | None = None,
    wanted: str | None = None,
) -> Mistake:
    """A value that does not fit, with what would: the values there are, or the kind in words."""
    steps = [f"Did you mean {word}?" for word in (near(given, choices) if given and choices else ())]
    place = f" for {field}" if field else ""
    if choices:
        steps.append(f"Use one of {', '.join(choices)}")
    elif wanted:
        steps.append(f"Give {wanted}{place}")
    else:
        steps.append(f"Give another value{place}; see {program} --help")
    return Mistake("VALIDATION_ERROR", field, message, steps)


def mistaken(mistakes: Sequence[Mistake]) -> FaultError:
    """One error for all of them; usage weighs more than values, because then nobody knows what was meant."""
    parts = [mistake.fault() for mistake in mistakes[:MOST]]
    if len(parts) == 1:
        return FaultError.from_fault(parts[0])
    codes = {part.code for part in parts}
    code = "USAGE_ERROR" if "USAGE_ERROR" in codes else "VALIDATION_ERROR"
    steps = tuple(dict.fromkeys(step for part in parts for step in part.suggestions))
    return FaultError.from_fault(
        Fault(
            code=code,
            message=f"{len(parts)} arguments are wrong: {row_for('cli', code).message}",
            vocabulary="cli",
            suggestions=steps,
            errors=tuple(parts),
            extensions=VALIDATION,
        )
    )
