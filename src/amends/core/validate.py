"""
Check arguments that users write by hand. The messages say what would have been right.

Structs hold seconds as numbers. Functions also accept a `timedelta`; structs do not, because reading the attribute back
would give a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["check_count", "check_kind", "check_seconds", "in_seconds"]


def check_count(name: str, value: object) -> None:
    """Raise TypeError for anything but a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {_kind(value)}")


def check_seconds(name: str, value: object) -> None:
    """Raise TypeError for anything but a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        instead = f": write {value.total_seconds():g}" if hasattr(value, "total_seconds") else ""
        raise TypeError(f"{name} is a number of seconds, not {_kind(value)}{instead}")


def check_kind(name: str, value: object, kind: type, example: str) -> None:
    """Raise TypeError for anything but an instance of `kind`. The message contains the example."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{name} is {article} {kind.__name__}, not {_kind(value)}: write {example}")


def in_seconds(name: str, value: float | timedelta) -> float:
    """
    Return seconds that are given as a number or as a `timedelta`.

    >>> from datetime import timedelta
    >>> in_seconds("timeout", timedelta(minutes=1)), in_seconds("timeout", 2.5)
    (60.0, 2.5)
    """
    seconds: Any = value
    if hasattr(seconds, "total_seconds"):
        return float(seconds.total_seconds())
    check_seconds(name, seconds)
    return seconds  # type: ignore[no-any-return]


def _kind(value: object) -> str:
    return type(value).__name__
