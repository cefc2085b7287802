"""
The arguments of a call as canonical JSON, and the keys that are made from them.

Two calls with the same meaning have the same text: members and sets are sorted, arguments that were left out have their defaults,
and `1` equals `1.0` and `Decimal("1.00")`. Dataclasses, msgspec and attrs classes, pydantic models, dates, UUIDs and plain objects
are written by their values; of a secret (`SecretStr`) the hash. Connections, files, functions and objects without public attributes
have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from pathlib import PurePath

import msgspec

__all__ = [
    "NoCanonicalForm",
    "canonical",
    "canonical_arguments",
    "derived_key",
    "digest",
    "key_text",
    "owned_key",
    "row_name",
]

_LONGEST = 200
"""Characters of a key that is stored as it is; of a longer one the hash is stored."""
_DEPTH = 64
_RESOURCE = ("close", "aclose", "__enter__", "__aenter__")


class NoCanonicalForm(TypeError):
    """A value that cannot be compared with the value of another call."""


def canonical(value: object) -> bytes:
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
        lower = encoded.lower()
        # msgspec writes null for a float that is no number, and NaN or Infinity for such a Decimal.
        if b"null" not in lower and b"nan" not in lower and b"inf" not in lower:
            if b"." not in lower and b"e" not in lower:
                return encoded
            value = _decode(encoded)
    return _encode(_plain(value, _DEPTH))


def _hook(value: object) -> object:
    """Return the values of an object that msgspec does not know."""
    if isinstance(value, type):
        raise NoCanonicalForm(type(value).__name__)
    dump, secret = getattr(value, "model_dump", None), getattr(value, "get_secret_value", None)
    if callable(dump):
        return _model(value, dump)
    if callable(secret):
        return f"sha256:{digest(canonical(secret()))[:32]}"
    if isinstance(value, PurePath):
        return str(value)
    if callable(value) or any(hasattr(value, name) for name in _RESOURCE) or not hasattr(value, "__dict__"):
        raise NoCanonicalForm(type(value).__name__)
    public = {name: each for name, each in vars(value).items() if not name.startswith("_")}
    if not public:
        # Two such objects may differ in what they hide.
        raise NoCanonicalForm(type(value).__name__)
    return public


def _model(value: object, dump: Callable[..., object]) -> object:
    """Return the values of a pydantic model. Its JSON has sets in the order of this process, so it serves other types only."""
    try:
        values = dump()
        if not isinstance(values, dict):
            return dump(mode="json")
        members: dict[str, object] = {}
        for name, each in values.items():
            try:
                members[name] = msgspec.Raw(canonical(each))
            except NoCanonicalForm:
                plain = dump(mode="json", include={name})
                members[name] = plain[name] if isinstance(plain, Mapping) else plain
    except Exception as error:
        raise NoCanonicalForm(type(value).__name__) from error
    return members


_WIDE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _number(text: str) -> int | Decimal | str:
    """
    Return a number so that equal ones are written alike, with all their digits.

    >>> _number("1.00"), _number("1.50"), _number("nan")
    (1, Decimal('1.5'), 'NaN')
    """
    number = Decimal(text)
    if not number.is_finite():
        return str(number)
    if number.copy_abs() < 2**53 and number == number.to_integral_value():
        return int(number)
    return number.normalize(_WIDE)


_encode = msgspec.json.Encoder(order="sorted", enc_hook=_hook, decimal_format="number").encode
_decode = msgspec.json.Decoder(float_hook=_number).decode


def _plain(value: object, depth: int) -> object:
    """Return a value in which equal numbers are written alike, and which msgspec can encode."""
    if depth == 0:
        raise NoCanonicalForm("a value that is nested too deep")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float | Decimal):
        return _number(str(value))
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_name(key, depth): _plain(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth - 1) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(each, depth - 1) for each in value), key=_encode)
    try:
        return _plain(_decode(_encode(value)), depth - 1)
    except (OverflowError, UnicodeEncodeError):
        return _plain(_hook(value), depth - 1)


def _name(key: object, depth: int) -> str:
    plain = _plain(key, depth - 1)
    return plain if isinstance(plain, str) else _encode(plain).decode()


def canonical_arguments(arguments: Mapping[str, object], *, strict: bool) -> bytes:
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


def key_text(value: object) -> str:
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


def owned_key(owner: str, key: str) -> str:
    """
    Return a key that a caller sent, as the key of this caller only: another caller that sends it must not get the outcome.

    >>> owned_key("", "17"), owned_key("alice", "17")
    ('17', '8c9038777a9c5c17/17')
    """
    return f"{digest(owner)[:16]}/{key}" if owner else key


def row_name(tool: str, key: str) -> str:
    """
    Return the name of an effect in the ledger.

    >>> row_name("pay", "17")
    'pay:17'
    """
    if ":" in tool or "%" in tool:
        # Otherwise the key "a:b" of pay and the key "b" of pay:a would be one effect.
        tool = tool.replace("%", "%25").replace(":", "%3A")
    if len(key) <= _LONGEST and key.isprintable():
        return f"{tool}:{key}"
    return f"{tool}:{digest(key)[:32]}"
