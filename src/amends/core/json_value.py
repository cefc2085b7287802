"""
Any Python value as plain JSON values.

Producers put enum members, dataclasses, pydantic models, sets, bytes, dates and decimals into `details`. `json_value` turns
them into what JSON has: None, bool, int, float, str, list, and dict with string keys.

- An enum member is its value. A dataclass, attrs class, msgspec Struct, pydantic model or named tuple is an object.
- A set is a sorted array. Bytes are their UTF-8 text, or base64 where they are not text.
- A date, time, UUID or Decimal is the string that msgspec writes. A path is its string.
- NaN, the infinities and integers of more than 100 digits are null.
- A lone surrogate becomes "?".
- An exception is its class name, never its text. Any other object becomes `[redacted]`, because its text is unknown.
- Values deeper than 32 levels, and values after the first 10,000, become `[redacted]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

import msgspec

__all__ = ["MARKER", "MAX_DEPTH", "MAX_NODES", "json_value"]

MARKER = "[redacted]"
"""Replaces a value that must not or cannot be written."""
MAX_DEPTH = 32
MAX_NODES = 10_000
"""Bounds that no error worth sending reaches."""

_LARGEST = 10**100


def json_value(value: object) -> Any:
    """
    Return `value` as plain JSON values; see the module for the rules. Never raises, never changes its argument.

    >>> from http import HTTPStatus
    >>> json_value({"status": HTTPStatus.CONFLICT, "tags": {"b", "a"}, "raw": b"ok", "ratio": float("nan")})
    {'status': 409, 'tags': ['a', 'b'], 'raw': 'ok', 'ratio': None}
    """
    return _plain(value, 0, [MAX_NODES])


def _plain(value: object, depth: int, left: list[int]) -> object:
    left[0] -= 1
    if value is None or isinstance(value, bool):
        return value
    if left[0] < 0:
        return MARKER
    try:
        return _convert(value, depth, left)
    except Exception:  # noqa: BLE001 - a Mapping, property or model_dump of the producer's may raise anything
        return MARKER


def _convert(value: Any, depth: int, left: list[int]) -> object:
    if isinstance(value, Enum):
        return _plain(value.value, depth, left)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        number = float(value)
        return number if number - number == 0 else None
    if depth >= MAX_DEPTH:
        return MARKER
    members = _members_of(value)
    if members is not None:
        return _object(members, depth, left)
    if isinstance(value, AbstractSet):
        return _array(sorted(value, key=_sort_key), depth, left)
    if isinstance(value, list | tuple):
        return _array(value, depth, left)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, BaseException):
        return type(value).__name__
    if hasattr(type(value), "__fspath__"):
        return _plain(value.__fspath__(), depth, left)
    # Dates, times, UUIDs and decimals; anything msgspec does not know raises.
    return _plain(msgspec.to_builtins(value), depth, left)


def _members_of(value: object) -> Mapping[object, object] | None:
    """The members of an object: a mapping, or an instance of a class that declares its fields."""
    if isinstance(value, Mapping):
        return value
    cls = type(value)
    names = getattr(cls, "__struct_fields__", None) or getattr(cls, "__dataclass_fields__", None)
    if names is None:
        names = tuple(field.name for field in getattr(cls, "__attrs_attrs__", ()))
    if not names and isinstance(value, tuple):
        names = getattr(cls, "_fields", ())
    if names:
        return {name: getattr(value, name) for name in names}
    dump = getattr(cls, "model_dump", None)
    if callable(dump):
        found = dump(value)
        return found if isinstance(found, Mapping) else None
    return None


def _object(members: Mapping[object, object], depth: int, left: list[int]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in members.items():
        if left[0] < 0:
            break
        name = _key(key)
        while name in found:
            # 1 and "1", or two keys that cannot be written: neither may hide the other.
            name = f"{name} {len(found)}"
        found[name] = _plain(value, depth + 1, left)
    return found


def _array(items: Any, depth: int, left: list[int]) -> list[object]:
    # One more than fits: the marker in its place shows that there were others.
    return [_plain(item, depth + 1, left) for item in items[: max(left[0], 0) + 1]]


def _key(key: object) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return _text(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return str(_plain(key, 0, [1]))
    return MARKER


def _text(value: str) -> str:
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _integer(value: int) -> int | None:
    return value if -_LARGEST < value < _LARGEST else None


def _bytes(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not value):
        return text
    from base64 import b64encode

    return b64encode(value).decode()


_sort_key: Callable[[Any], tuple[str, str]] = lambda item: (type(item).__name__, _key(item))  # noqa: E731
