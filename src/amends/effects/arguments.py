"""
The arguments of a call as canonical JSON, and the keys that are made from them.

Two calls with the same meaning have the same text: members are sorted, arguments that were left out have their defaults, and
`1` equals `1.0`. Dataclasses, msgspec and attrs classes, pydantic models, dates, decimals, UUIDs and plain objects are written
by their values. Connections, files and functions have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any

import msgspec

__all__ = [
    "NoCanonicalForm",
    "canonical",
    "canonical_arguments",
    "derived_key",
    "digest",
    "key_text",
    "row_name",
]

_LONGEST = 200
"""Characters of a key that is stored as it is; of a longer one the hash is stored."""
_DEPTH = 64
_RESOURCE = ("close", "aclose", "__enter__", "__aenter__")


class NoCanonicalForm(TypeError):
    """A value that cannot be compared with the value of another call."""


def canonical(value: Any) -> bytes:
    """
    Return a value as canonical JSON.

    >>> canonical({"b": 1.0, "a": [True, None]})
    b'{"a":[true,null],"b":1}'

    Raises:
        NoCanonicalForm: the value is a connection, a function or another object without values.

    """
    try:
        encoded = _encode(value)
    except RecursionError:
        raise NoCanonicalForm("a value that contains itself") from None
    except (OverflowError, UnicodeEncodeError):
        pass
    except TypeError as error:
        if isinstance(error, NoCanonicalForm):
            raise
    else:
        if b"." not in encoded and b"e" not in encoded.lower():
            return encoded
        value = msgspec.json.decode(encoded)
    return _encode(_plain(value, _DEPTH))


def _hook(value: Any) -> Any:
    """Return the values of an object that msgspec does not know."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    if callable(value) or any(hasattr(value, name) for name in _RESOURCE) or not hasattr(value, "__dict__"):
        raise NoCanonicalForm(type(value).__name__)
    return {name: each for name, each in vars(value).items() if not name.startswith("_")}


_encode = msgspec.json.Encoder(order="sorted", enc_hook=_hook).encode


def _plain(value: Any, depth: int) -> Any:
    """Return a value in which equal numbers are written alike, and which msgspec can encode."""
    if depth == 0:
        raise NoCanonicalForm("a value that is nested too deep")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_name(key, depth): _plain(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth - 1) for each in value]
    try:
        return _plain(msgspec.json.decode(_encode(value)), depth - 1)
    except (OverflowError, UnicodeEncodeError):
        return _plain(_hook(value), depth - 1)


def _name(key: Any, depth: int) -> str:
    plain = _plain(key, depth - 1)
    return plain if isinstance(plain, str) else _encode(plain).decode()


def canonical_arguments(arguments: Mapping[str, Any], *, strict: bool) -> bytes:
    """
    Return the arguments of a call as canonical JSON.

    Args:
        arguments: by name.
        strict: refuse an argument without a canonical form; otherwise it is left out.

    Raises:
        NoCanonicalForm: with the names of the arguments.

    """
    try:
        return canonical(arguments)
    except NoCanonicalForm:
        parts, wrong = {}, []
        for name, value in arguments.items():
            try:
                parts[name] = msgspec.Raw(canonical(value))
            except NoCanonicalForm as error:
                wrong.append(f"{name} ({error})")
        if strict:
            raise NoCanonicalForm(", ".join(wrong)) from None
        return _encode(parts)


def digest(*parts: str | bytes) -> str:
    """Return a hash of the parts, which cannot run into each other."""
    joined = sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        joined.update(b"%d:" % len(raw))
        joined.update(raw)
    return joined.hexdigest()


def derived_key(scope: str, tool: str, arguments: bytes) -> str:
    """Return the key of a call without one: from the scope, the tool and the canonical arguments."""
    return digest(scope, tool, arguments)[:32]


def key_text(value: Any) -> str:
    """
    Return the key that an author's `key` gave as text.

    >>> key_text(17), key_text(("eu", 17))
    ('17', '["eu",17]')

    Raises:
        ValueError: there is none, so that different calls would share it.

    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or (isinstance(value, str | bytes | Iterable) and not value):
        raise ValueError("key must identify the effect, but it is empty: name an argument that differs")
    return value if isinstance(value, str) else canonical(value).decode().strip('"')


def row_name(tool: str, key: str) -> str:
    """
    Return the name of an effect in the ledger.

    >>> row_name("pay", "17")
    'pay:17'
    """
    if len(key) <= _LONGEST and key.isprintable():
        return f"{tool}:{key}"
    return f"{tool}:{digest(key)[:32]}"
