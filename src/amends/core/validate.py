"""
Check arguments that users write by hand. The messages say what would have been right.

Structs hold seconds as numbers. Functions also accept a `timedelta`; structs do not, because reading the attribute back
would give a number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["check_count", "check_flag", "check_kind", "check_seconds", "in_seconds", "member", "shown"]

_MAX_SHOWN = 80
_Member = TypeVar("_Member", bound=StrEnum)


def shown(value: object) -> str:
    """
    Return a wrong value for a message: its repr, cut, or its type if it has none.

    >>> shown("RATE LIMITED"), shown([]), len(shown("x" * 1_000_000))
    ("'RATE LIMITED'", '[]', 80)
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a number of 5,000 digits, a list in itself, a __repr__ that raises
        text = f"a {_kind(value)}"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def member(name: str, value: object, members: type[_Member]) -> _Member:
    """
    Return the member of an enum for its value.

    Raises:
        ValueError: there is none; the message lists the values.

    """
    for each in members:
        if isinstance(value, str) and each.value == str.__str__(value):
            return each
    raise ValueError(f"{name} is one of {', '.join(members)}, not {shown(value)}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError for anything but True and False: the text "no" would count as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {_kind(value)}")


def check_count(name: str, value: object) -> None:
    """Raise TypeError for anything but a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {_kind(value)}")


def check_seconds(name: str, value: object) -> None:
    """Raise TypeError for anything but a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        from datetime import timedelta

        instead = f": write {value.total_seconds():g}" if isinstance(value, timedelta) else ""
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
    if not isinstance(value, int | float):
        from datetime import timedelta

        if isinstance(value, timedelta):
            return value.total_seconds()
    check_seconds(name, value)
    return value


def _kind(value: object) -> str:
    return type(value).__name__
