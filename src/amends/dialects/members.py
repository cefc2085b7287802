"""Members of objects from outside, read by type: a member of the wrong type counts as absent (P8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amends.core.wire import deep

__all__ = [
    "CODE_BYTES",
    "code",
    "mapping",
    "positive",
    "shallow",
    "sort",
    "text",
    "texts",
    "unknown",
    "whole",
]

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


def positive(value: Any) -> int | None:
    """A whole number from 1 on, or None."""
    return whole(value, 1)


Readers = Mapping[Any, tuple[str, type | Callable[[Any], Any]] | None]
"""member → (field, its type or how it is read), or None for a member its dialect reads itself."""


def sort(data: dict[str, Any], readers: Readers) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Fields and extensions of an object, in one pass over what it has.

    A member of the wrong type counts as absent; one that `readers` does not name is kept as an extension.
    """
    fields: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    for name, value in data.items():
        if name in readers:
            reader = readers[name]
            if reader is not None:
                field, kind = reader
                if value.__class__ is kind:
                    fields[field] = value
                elif kind is not str and kind is not dict:
                    read = kind(value)
                    if read is not None:
                        fields[field] = read
        else:
            extensions[name] = value
    return fields, extensions


def unknown(data: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The members a dialect does not know, of an object that mostly has none."""
    if known.issuperset(data):
        return {}
    return {name: value for name, value in data.items() if name not in known}


def mapping(value: Any) -> dict[str, Any] | None:
    """An object, or None."""
    return value if value.__class__ is dict else None


def texts(value: Any) -> tuple[str, ...]:
    """The strings of an array, in order; whatever else it holds is passed over."""
    return tuple(item for item in value if item.__class__ is str) if value.__class__ is list else ()
