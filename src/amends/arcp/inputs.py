"""The input of a job as JSON, refused if JSON cannot carry it without changing it."""

from __future__ import annotations

from math import isfinite

import msgspec

from amends.errors.arcp import InvalidRequestError

__all__ = ["encode_input"]

_encode = msgspec.json.Encoder().encode


def encode_input(value: object) -> msgspec.Raw:
    """
    Return the input of a job as encoded JSON.

    >>> bytes(encode_input({"text": "to be"}))
    b'{"text":"to be"}'

    Raises:
        InvalidRequestError: it contains NaN, an infinite number, or text with an unpaired surrogate, or is nested too deeply.
        TypeError: it contains an object that has no JSON form.

    """
    try:
        encoded = _encode(value)
    except UnicodeError:
        raise _refused("text with an unpaired surrogate") from None
    except RecursionError:
        raise _refused("too many levels of nesting") from None
    # The encoder writes null for a number that is not finite. Without a null there is none.
    if b"null" in encoded and not _finite(msgspec.to_builtins(value)):
        raise _refused("a number that is NaN or infinite")
    return msgspec.Raw(encoded)


def _refused(content: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"The input of a job is JSON, which cannot carry {content}", details={"field": "input"}
    )


def _finite(value: object) -> bool:
    """Whether all numbers of plain JSON values are finite."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float):
            if not isfinite(item):
                return False
        elif isinstance(item, dict):
            waiting += item.values()
            waiting += item.keys()
        elif isinstance(item, (list, tuple)):
            waiting += item
    return True
