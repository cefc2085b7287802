"""
Bytes from outside, made into values with bounds.

Two readers. `read` takes documents from the wire as they come: a byte-order mark, NaN, Infinity, 1e400, lone
surrogates and broken UTF-8 do not stop it. `read_strict` is JSON and nothing else, for text that was not declared
to be JSON (S4's text fallback). Both know bounds on size and depth, and neither raises anything but `Unreadable`.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["MAX_BYTES", "MAX_DEPTH", "TOO_DEEP", "Unreadable", "compact", "deep", "read", "read_strict"]

MAX_BYTES = 8 * 1024 * 1024
"""A larger document is not read at all."""
MAX_DEPTH = 256
"""A document nested deeper holds no error anybody meant; reading it costs more than it can tell."""

_SURELY_SHALLOW = 2 * MAX_DEPTH
"""Every level takes two bytes, so a shorter document cannot be too deep."""

_MAX_ITEMS = MAX_BYTES // 2
"""Items in all, more than any document of that size has. Values built in this process may hold themselves twice, and
double on every level."""

TOO_DEEP: Any = object()
"""What reading gives for a document nested too deep: it was readable, and nothing in it is looked at."""


class Unreadable(ValueError):
    """The bytes are not a JSON document, or too many. Says where, never what: the text is not ours to show."""

    def __init__(self, message: str, *, line: int | None = None, too_large: bool = False) -> None:
        super().__init__(message)
        self.line = line
        """The line reading stopped at, where that is known."""
        self.too_large = too_large

    @classmethod
    def size(cls) -> Unreadable:
        """For more than MAX_BYTES."""
        return cls(f"larger than {MAX_BYTES} bytes", too_large=True)


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read(data: bytes | bytearray | memoryview | str) -> Any:
    """
    The value of a document from the wire; TOO_DEEP for one nested too deep.

    Raises:
        Unreadable: when it is no JSON or too large.

    """
    if data.__class__ is memoryview:
        data = _bytes(data)
    if len(data) > MAX_BYTES:
        raise Unreadable.size()
    try:
        value = _decode(data)
    except RecursionError:
        return TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        return _tolerant(data)
    return value if len(data) <= _SURELY_SHALLOW or not _deep(data, value) else TOO_DEEP


def _bytes(view: Any) -> bytes:
    """What a view shows: it may have gaps, and items larger than bytes."""
    if view.nbytes > MAX_BYTES:
        raise Unreadable.size()
    return view.tobytes()  # type: ignore[no-any-return]


def read_strict(text: str) -> Any:
    """
    The value of a text that is JSON to the letter; TOO_DEEP for one nested too deep.

    Raises:
        Unreadable: when it is anything else.

    """
    if len(text) > MAX_BYTES:
        raise Unreadable.size()
    try:
        value = _decode(text)
    except RecursionError:
        return TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        # Lone surrogates and 1e400 are JSON too, though msgspec refuses them.
        value = _stdlib(text, constants=False)
    return value if len(text) <= _SURELY_SHALLOW or not _deep(text, value) else TOO_DEEP


def compact(value: Any) -> bytes | None:
    """The compact UTF-8 JSON of a value, or None when it is no JSON value."""
    try:
        return _encode(value)
    except UnicodeError:
        # A lone surrogate counts as the three bytes it would take.
        from json import dumps

        try:
            return dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError):
            return None
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


def deep(value: Any) -> bool:
    """Whether a value is nested deeper than MAX_DEPTH, or larger than any document. Walks without recursion."""
    level = [value]
    left = _MAX_ITEMS
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if item.__class__ is dict:
                below.extend(item.values())
            elif item.__class__ is list:
                below.extend(item)
            if len(below) > left:
                return True
        level = [item for item in below if item.__class__ is dict or item.__class__ is list]
        if not level:
            return False
        left -= len(below)
    return True


def _deep(data: Any, value: Any) -> bool:
    """The same for a document: walked only when it has more brackets than levels are allowed."""
    curly, square = ("{", "[") if data.__class__ is str else (b"{", b"[")
    return data.count(curly) + data.count(square) > MAX_DEPTH and deep(value)


def _tolerant(data: Any) -> Any:
    """Read again with the forgiving parser; only what msgspec refused comes here."""
    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    value = _stdlib(text.removeprefix("\ufeff"), constants=True)
    return TOO_DEEP if value is TOO_DEEP or deep(value) else value


def _stdlib(text: str, *, constants: bool) -> Any:
    """Parse with the standard library, which takes what other producers' JSON writers let through."""
    import json

    try:
        return json.loads(text, parse_int=_whole, parse_constant=None if constants else _refuse)
    except RecursionError:
        return TOO_DEEP
    except json.JSONDecodeError as error:
        message = f"no JSON from line {error.lineno} column {error.colno} on"
        raise Unreadable(message, line=error.lineno) from None


def _whole(digits: str) -> int | float:
    # int() of thousands of digits is slow and refused by the interpreter; to other readers of JSON it is Infinity.
    return int(digits) if len(digits) <= 400 else float(digits)


def _refuse(name: str) -> Any:
    raise Unreadable(f"{name} is no JSON")
