"""
Read JSON from outside into plain, bounded values.

`read` parses documents as they come over the wire: a byte-order mark, NaN, Infinity, 1e400, lone surrogates,
broken UTF-8, UTF-16 and the escape sequences of a terminal do not stop it. `read_strict` accepts JSON only, for text that was not declared to be JSON (AdCP's text
fallback). `plain` does the same for values that were not parsed here: it replaces enum members, tuples, mappings and
other subclasses by JSON's own types. All three bound size and depth; the readers raise `Unreadable` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import NoneType
from typing import Any

import msgspec

from amends.core.text import decoded, uncoloured

__all__ = [
    "DOCUMENTS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "TOO_DEEP",
    "Unreadable",
    "as_dict",
    "compact",
    "plain",
    "read",
    "read_strict",
]

DOCUMENTS = (bytes, str, bytearray, memoryview)
"""The types in which a JSON document comes."""
MAX_BYTES = 8 * 1024 * 1024
"""Larger documents are not parsed."""
MAX_DEPTH = 256
"""More levels than any real error has."""

_SHORT = 2 * MAX_DEPTH
"""Every level takes two brackets, so a shorter document is not too deep."""
_MAX_ITEMS = MAX_BYTES // 2
"""Items in all, more than any document of MAX_BYTES has. A value built in this process may contain another one twice on
every level, so its number of items is not bounded by its depth."""
_MAX_COPIED = 200_000
"""Items in all that `plain` copies."""
_MAX_MEMBERS = 10_000
"""Members of a mapping that is not a dict. Such a mapping may produce its members, and never end."""

TOO_DEEP: object = object()
"""Returned for a value that is nested too deep or has too many items. It was readable, but is not looked into."""

_SCALARS = frozenset({str, int, float, bool, NoneType})
_CONTAINERS = frozenset({dict, list})


class Unreadable(ValueError):
    """The bytes are not a JSON document, or too many. The message gives the position and never quotes the text."""

    def __init__(self, message: str, *, line: int | None = None, too_large: bool = False) -> None:
        super().__init__(message)
        self.line = line
        """The line at which the parser stopped, if known."""
        self.too_large = too_large

    @classmethod
    def size(cls) -> Unreadable:
        """Return the error for more than MAX_BYTES."""
        return cls(f"larger than {MAX_BYTES} bytes", too_large=True)


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read(data: bytes | bytearray | memoryview | str) -> Any:
    """
    Parse a document from the wire. Returns its value, or TOO_DEEP.

    Raises:
        Unreadable: if it is not JSON or is too large.

    """
    if not isinstance(data, bytes):
        # msgspec refuses subclasses of str.
        data = str.__str__(data) if isinstance(data, str) else _bytes(data)
    size = len(data)
    if size > MAX_BYTES:
        raise Unreadable.size()
    try:
        value = _decode(data)
    except RecursionError:
        return TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        return _tolerant(data)
    return TOO_DEEP if size > _SHORT and _may_be_deep(data) and not _is_plain(value) else value


def _bytes(data: bytearray | memoryview) -> bytes | bytearray:
    """Copy a view, which may have gaps and items larger than bytes."""
    if isinstance(data, bytearray):
        return data
    if data.nbytes > MAX_BYTES:
        raise Unreadable.size()
    return data.tobytes()


def read_strict(text: str) -> Any:
    """
    Parse a text that must be JSON. Returns its value, or TOO_DEEP.

    Raises:
        Unreadable: if it is not JSON or is too large.

    """
    if len(text) > MAX_BYTES:
        raise Unreadable.size()
    try:
        value = _decode(text)
    except RecursionError:
        return TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        # Lone surrogates and 1e400 are JSON, though msgspec refuses them.
        value = _stdlib(text, constants=False)
    return TOO_DEEP if len(text) > _SHORT and _may_be_deep(text) and not _is_plain(value) else value


def compact(value: object) -> bytes | None:
    """Return the compact UTF-8 JSON of a value, or None if it is not a JSON value."""
    try:
        return _encode(value)
    except UnicodeError:
        # A lone surrogate counts as the three bytes it would take.
        from json import dumps

        try:
            return dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError):
            return None
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError):
        return None


def plain(value: object) -> Any:
    """
    Return `value` made of JSON's own types, or TOO_DEEP.

    Mappings become dicts, tuples become lists; enum members and other instances of subclasses of str, int and float
    become the str, int or float they hold, and memoryviews bytes. Objects of other types stay (a body may be bytes). A value that is plain
    already is returned as it is, without a copy. Never raises: a mapping that raises while it is read becomes None.

    >>> from http import HTTPStatus
    >>> plain({"status": HTTPStatus.NOT_FOUND, "errors": ()})
    {'status': 404, 'errors': []}
    """
    if type(value) is dict:
        # Most errors are objects of scalars. For them this takes 0.12 µs and `_is_plain` 0.22 (bench/extraction.py).
        for item in value.values():
            if type(item) not in _SCALARS:
                break
        else:
            return value
    return value if _is_plain(value) else _copy(value)


def as_dict(value: object) -> dict[str, Any] | None:
    """
    Return the members of a mapping as a dict, or None for another value.

    For code that looks into a few members only: their values are not made plain.
    """
    # Not isinstance: a subclass of dict may override what is called on it, so it is copied.
    if type(value) is dict:
        return value
    copied = _plain_item(value)
    return copied if isinstance(copied, dict) else None


def _is_plain(value: Any) -> bool:
    """Whether a value consists of JSON's own types, within the bounds. Walks level by level, without recursion."""
    # Exact types, here and below: an instance of a subclass has to be copied.
    if type(value) not in _CONTAINERS:
        return type(value) in _SCALARS
    level, depth, items = [value], 0, 0
    while level and depth < MAX_DEPTH and items <= _MAX_ITEMS:
        below: list[object] = []
        for holder in level:
            items += len(holder)
            for item in holder.values() if isinstance(holder, dict) else holder:
                if type(item) in _SCALARS:
                    continue
                if type(item) not in _CONTAINERS:
                    return False
                below.append(item)
        level = below
        depth += 1
    return not level


def _copy(value: object) -> object:
    """Return a plain copy of `value`, or TOO_DEEP. Walks without recursion."""
    top = [value]
    level: list[Any] = [top]
    left = _MAX_COPIED
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for holder in level:
            for place, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
                copied = holder[place] = _plain_item(item)
                if isinstance(copied, (dict, list)):
                    left -= len(copied)
                    if left < 0:
                        return TOO_DEEP
                    below.append(copied)
        if not below:
            return top[0]
        level = below
    return TOO_DEEP


def _plain_item(item: Any) -> object:
    """Return one value with a plain type, without converting its items; None if it cannot be read."""
    try:
        if isinstance(item, str):
            # Not str(): an enum or a subclass may define another __str__. The same for int and float.
            return str.__str__(item)
        if isinstance(item, bool):
            return item
        if isinstance(item, int):
            return int.__int__(item)
        if isinstance(item, float):
            return float.__float__(item)
        if isinstance(item, list | tuple):
            return list(islice(item, _MAX_COPIED + 1))
        # The headers of http.client have the methods of a mapping, but are not registered as one.
        if isinstance(item, Mapping) or hasattr(item, "keys"):
            limit = _MAX_COPIED if isinstance(item, dict) else _MAX_MEMBERS
            copied = {
                str.__str__(key) if isinstance(key, str) else key: item[key]
                for key in islice(item.keys(), limit + 1)
            }
            return copied if len(copied) <= limit else None
        if isinstance(item, memoryview):
            # A view cannot be pickled, and one with gaps cannot be written.
            return item.tobytes() if item.nbytes <= MAX_BYTES else None
    except Exception:  # noqa: BLE001 - the methods of a foreign object may raise anything
        return None
    return item


def _may_be_deep(data: str | bytes | bytearray) -> bool:
    """Whether a document has more brackets than levels are allowed; only such a document has to be walked."""
    if isinstance(data, str):
        return data.count("{") + data.count("[") > MAX_DEPTH
    return data.count(b"{") + data.count(b"[") > MAX_DEPTH


def _tolerant(data: str | bytes | bytearray) -> object:
    """Parse what msgspec refused with the standard library, which accepts more."""
    # JSON has no escape characters, so those of a terminal are none of its own.
    value = _stdlib(uncoloured(decoded(data)).removeprefix("\ufeff"), constants=True)
    return value if _is_plain(value) else TOO_DEEP


def _stdlib(text: str, *, constants: bool) -> object:
    """Parse with the standard library; `constants` allows NaN and Infinity."""
    import json

    try:
        return json.loads(text, parse_int=_whole, parse_constant=None if constants else _refuse)
    except RecursionError:
        return TOO_DEEP
    except json.JSONDecodeError as error:
        message = f"not JSON from line {error.lineno} column {error.colno} on"
        raise Unreadable(message, line=error.lineno) from None


def _whole(digits: str) -> int | float:
    # int() of thousands of digits is slow and refused by the interpreter; other JSON readers give Infinity.
    return int(digits) if len(digits) <= 400 else float(digits)


def _refuse(name: str) -> object:
    raise Unreadable(f"{name} is not JSON")
