"""How long a caller waits for an answer, as it says in a header."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

__all__ = ["LIMITS", "seconds_left"]

_LONGEST = 7 * 86_400.0


def _seconds(text: str) -> float | None:
    """Return a positive number of seconds, or None."""
    try:
        value = float(text) if len(text) <= 20 else 0.0
    except ValueError:
        return None
    return min(value, _LONGEST) if isfinite(value) and value > 0 else None


def seconds_left(text: str) -> float | None:
    """
    Return the seconds in a value of `Amends-Left`, or None.

    >>> seconds_left("3;deadline-ms=4500"), seconds_left("3")
    (4.5, None)
    """
    for part in text.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip() == "deadline-ms" and value.isdecimal() and len(value) <= 12:
            return min(int(value) / 1000, _LONGEST)
    return None


LIMITS: dict[bytes, Callable[[str], float | None]] = {
    b"request-timeout": _seconds,
    b"x-stainless-read-timeout": _seconds,
    b"x-stainless-timeout": _seconds,
    b"x-server-timeout": _seconds,
    b"amends-left": seconds_left,
}
"""Header → its reader. Several limits: the shortest counts.

`x-stainless-*` is what the SDKs of OpenAI, Anthropic and others send; `x-server-timeout` is Google's.
"""
