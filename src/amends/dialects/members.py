"""
Read members of objects from outside by type. A member of the wrong type counts as absent (P8).

The objects are plain: made of dict, list, str, int, float, bool and None (`amends.core.wire.plain`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from amends.core.enums import Actor, Executed, Recovery
from amends.core.wire import plain

__all__ = [
    "CODE_BYTES",
    "Readers",
    "actor",
    "code",
    "executed",
    "identifier",
    "integer",
    "mapping",
    "plain_mapping",
    "positive",
    "recovery",
    "sort",
    "status",
    "text",
    "texts",
    "truthy",
    "unknown",
    "whole",
]

CODE_BYTES = 64
"""The longest code. A7 sets it for AdCP; the other dialects use the same."""


def plain_mapping(value: Any) -> dict[str, Any] | None:
    """Return a mapping from outside as plain values, or None for anything else and for one nested too deep."""
    return mapping(plain(value))


def text(value: Any) -> str | None:
    """Return a string, or None."""
    return value if isinstance(value, str) else None


def code(value: Any) -> str | None:
    """Return a code, which is a string of 1–64 characters, or None."""
    return value if isinstance(value, str) and 0 < len(value) <= CODE_BYTES else None


def identifier(value: Any) -> str | None:
    """Return an id, which is a string of 1–128 characters, or None."""
    return value if isinstance(value, str) and 0 < len(value) <= 128 else None


def integer(value: Any) -> int | None:
    """Return an integer, or None. 5.0 is 5, because protobuf and JavaScript write it so; booleans are not numbers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def whole(value: Any, low: int = 0) -> int | None:
    """Return an integer from `low` to 2**53, or None."""
    number = value if type(value) is int else integer(value)
    return number if number is not None and low <= number <= 2**53 else None


def positive(value: Any) -> int | None:
    """Return an integer from 1 on, or None."""
    return whole(value, 1)


def status(value: Any) -> int | None:
    """Return an HTTP status, or None."""
    number = whole(value, 100)
    return number if number is not None and number <= 599 else None


_Member = TypeVar("_Member", bound=StrEnum)


def _reader(enum: type[_Member]) -> Callable[[Any], _Member | None]:
    """Return a function that returns the member of an enum for its value, or None."""
    known = {item.value: item for item in enum}

    def read(value: Any) -> _Member | None:
        return known.get(value) if isinstance(value, str) else None

    return read


recovery = _reader(Recovery)
actor = _reader(Actor)
executed = _reader(Executed)


def mapping(value: Any) -> dict[str, Any] | None:
    """Return an object, or None."""
    return value if isinstance(value, dict) else None


def texts(value: Any) -> tuple[str, ...]:
    """Return the strings of an array in order, without its other items."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def truthy(value: Any) -> bool:
    """Whether JavaScript takes a value for true: objects and arrays always, numbers but 0 and NaN, non-empty strings."""
    if value is None or isinstance(value, dict):
        return value is not None
    if isinstance(value, (str, int, float)):
        value = plain(value)  # a subclass may define another __bool__
        return bool(value) and value == value  # noqa: PLR0124 - NaN is the one value that differs from itself
    return True


Readers = Mapping[str, tuple[str, Callable[[Any], Any]] | None]
"""Member → (field, function that returns its value or None), or None for a member that the dialect reads itself."""


def sort(data: dict[str, Any], readers: Readers) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return (fields, extensions) of an object.

    A member of the wrong type is left out; one that `readers` does not name is an extension.
    """
    fields: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    for name, value in data.items():
        if name not in readers:
            extensions[name] = value
        elif (reader := readers[name]) is not None:
            field, read = reader
            if (found := read(value)) is not None:
                fields[field] = found
    return fields, extensions


def unknown(data: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the members that are not in `known`."""
    if known.issuperset(data):
        return {}
    return {name: value for name, value in data.items() if name not in known}
