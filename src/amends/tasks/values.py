"""
Convert payloads, results and answers into the values that a log can keep, and refuse what it cannot.

A value is stored as JSON. Besides JSON's own types it may hold dataclasses, msgspec Structs, Decimals (stored as text), dates,
UUIDs, sets, pydantic models, and results of MCP tools (their structured content, or their texts).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from amends.errors.task import InvalidInputError

__all__ = ["MAX_BYTES", "MAX_DEPTH", "UnstorableError", "storable", "to_json_value"]

MAX_BYTES = 900_000
"""The largest value, as JSON. NATS accepts messages of 1 MiB by default, and an entry holds more than the value."""
MAX_DEPTH = 100
"""How deeply arrays and objects of a value may be nested."""


class UnstorableError(ValueError):
    """A value that cannot be stored. The message says why, and does not contain any part of the value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def to_json_value(value: object) -> object:
    """
    Return a value as it reads back from the log, so that later steps get the same value with or without a crash.

    >>> from decimal import Decimal
    >>> to_json_value({"price": Decimal("9.90"), "tags": ("a", "b")})
    {'price': '9.90', 'tags': ['a', 'b']}

    Raises:
        UnstorableError: it contains itself, is nested too deeply, is too large, has NaN, or is of a type without JSON.
    """
    try:
        plain = msgspec.to_builtins(value, builtin_types=(Decimal,), enc_hook=_convert, str_keys=True)
        _check(plain, MAX_DEPTH)
        encoded = _encode(plain)
    except RecursionError:
        raise UnstorableError(f"it contains itself, or is nested more than {MAX_DEPTH} levels deep") from None
    except UnstorableError:
        raise
    except Exception:  # noqa: BLE001 - a value may have properties and methods that raise anything
        raise UnstorableError("it has a value that cannot be written as JSON") from None
    if len(encoded) > MAX_BYTES:
        raise UnstorableError(f"it has {len(encoded)} bytes as JSON, and at most {MAX_BYTES} are stored")
    decoded: object = msgspec.json.decode(encoded)
    return decoded


def storable(value: object, name: str) -> object:
    """
    Return a value that a caller sent as it reads back from the log.

    Raises:
        InvalidInputError: it cannot be stored. The message has its name and the reason.
    """
    try:
        return to_json_value(value)
    except UnstorableError as problem:
        raise InvalidInputError(
            f"The {name} cannot be stored: {problem.reason}",
            field=f"/{name}",
            details={"name": name, "pointer": f"/{name}"},
        ) from None


_encode = msgspec.json.Encoder().encode
_ABSENT = object()


def _check(value: object, depth: int) -> None:
    """Check the nesting and the numbers of a value that consists of plain types."""
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise UnstorableError("it has NaN or an infinite number, which JSON cannot express")
        return
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return
    if depth == 0:
        raise UnstorableError(f"it is nested more than {MAX_DEPTH} levels deep")
    for item in value.values() if isinstance(value, dict) else value:
        _check(item, depth - 1)


def _convert(value: object) -> object:
    """Convert a value that msgspec does not know: a result of an MCP tool, or a pydantic model."""
    content = getattr(value, "content", None)
    structured = getattr(value, "structured_content", _ABSENT)
    if structured is not _ABSENT and isinstance(content, list | tuple):
        return structured if structured is not None else _texts(content)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        dumped: object = dump(mode="json")
        return dumped
    raise TypeError


def _texts(content: Iterable[object]) -> object:
    texts = [getattr(part, "text", None) for part in content if getattr(part, "type", "") == "text"]
    return texts[0] if len(texts) == 1 else texts
