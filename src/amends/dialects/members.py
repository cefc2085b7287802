"""Members of objects from outside, read by type: a member of the wrong type counts as absent (P8)."""

from __future__ import annotations

from typing import Any

from amends.core.wire import deep

__all__ = ["CODE_BYTES", "code", "mapping", "shallow", "text", "texts", "whole"]

CODE_BYTES = 64
"""A code is a word, not a text (A7 sets the length for AdCP; the others get the same)."""


def text(value: Any) -> str | None:
    """A string, or None."""
    return value if value.__class__ is str else None


def code(value: Any) -> str | None:
    """A code: a string of 1–64 characters, or None."""
    return value if value.__class__ is str and 0 < len(value) <= CODE_BYTES else None


def whole(value: Any, low: int = 0) -> int | None:
    """A whole number from `low` on, or None. 5.0 is 5: protobuf and JavaScript write it so."""
    if value.__class__ is float and value.is_integer():
        value = int(value)
    return value if value.__class__ is int and low <= value <= 2**53 else None


def shallow(value: Any) -> bool:
    """Whether a value is an object that is not nested without end."""
    return value.__class__ is dict and not deep(value)


def mapping(value: Any) -> dict[str, Any] | None:
    """An object, or None."""
    return value if value.__class__ is dict else None


def texts(value: Any) -> tuple[str, ...]:
    """The strings of an array, in order; whatever else it holds is passed over."""
    return tuple(item for item in value if item.__class__ is str) if value.__class__ is list else ()
