"""
The arguments of a call as canonical JSON, and the keys that are made from them.

Two calls with the same meaning have the same text: members and sets are sorted, arguments that were left out have their defaults,
and `1` equals `1.0` and `Decimal("1.00")`. Dataclasses, msgspec and attrs classes, pydantic models, dates, UUIDs and plain objects
are written by their values; of a secret (`SecretStr`) the hash. Connections, files, functions and objects without public attributes
have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from pathlib import PurePath
from uuid import UUID

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
        encoded = None if _has_sets_without_order(value) else _encode(value)
    except RecursionError:
        raise NoCanonicalForm("a value that contains itself") from None
    except (OverflowError, ValueError):
        encoded = None  # a lone surrogate, or a number of more than 4,300 digits
    except TypeError as error:
        if isinstance(error, NoCanonicalForm):
            raise
        encoded = None
    if encoded is not None:
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


_ORDERED = (str, bytes, int, float, Decimal, date, time, timedelta, UUID)
"""What msgspec writes in the same order in every process. Sets are compared by what they contain: they have no order."""


def _has_sets_without_order(value: object) -> bool:
    """Return whether a set is in the value whose order msgspec would take from this process, such as a set of sets."""
    if value is None or isinstance(value, _ORDERED):
        return False
    if isinstance(value, set | frozenset):
        return not all(map(_is_ordered, value))
    if isinstance(value, list | tuple):
        return any(map(_has_sets_without_order, value))
    members = value if isinstance(value, Mapping) else _members(value)
    return any(map(_has_sets_without_order, members.values()))


def _is_ordered(value: object) -> bool:
    return all(map(_is_ordered, value)) if isinstance(value, tuple) else isinstance(value, _ORDERED)


def _members(value: object) -> Mapping[str, object]:
    """Return the attributes of a dataclass, a msgspec or attrs class, or a plain object; none of another value."""
    if isinstance(value, type):
        return {}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(value, "__struct_fields__", ()), *slots, *getattr(value, "__dict__", ())]
    return {
        name: getattr(value, name)
        for name in names
        if isinstance(name, str) and not name.startswith("_") and hasattr(value, name)
    }


_WIDE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_DIGITS = 400
"""Whole numbers with fewer digits, among them all floats, are written with all of them; larger ones as 1E+400."""


def _number(number: Decimal) -> int | Decimal | str:
    """
    Return a number so that equal ones are written alike.

    >>> _number(Decimal("1.00")), _number(Decimal("1.50")), _number(Decimal("1E+20")), _number(Decimal("nan"))
    (1, Decimal('1.5'), Decimal('100000000000000000000'), 'NaN')
    """
    if not number.is_finite():
        return str(number)
    if number.adjusted() < _DIGITS and number == number.to_integral_value():
        whole = int(number)
        return whole if -(2**63) <= whole < 2**64 else Decimal(whole)
    return number.normalize(_WIDE)


def _number_in(text: str) -> int | Decimal | str:
    return _number(Decimal(text))


_encode = msgspec.json.Encoder(order="sorted", enc_hook=_hook, decimal_format="number").encode
_text = msgspec.json.Decoder(str).decode
_decode = msgspec.json.Decoder(float_hook=_number_in).decode


def _plain(value: object, depth: int) -> object:
    """Return a value in which equal numbers are written alike, and which msgspec can encode."""
    if depth == 0:
        raise NoCanonicalForm("a value that is nested too deep")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return _number_in(repr(float(value)))
    if isinstance(value, int | Decimal):
        return _number(Decimal(value))
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_name(key, depth): _plain(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth - 1) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(each, depth - 1) for each in value), key=_encode)
    if _has_sets_without_order(value):
        return _plain(_members(value), depth - 1)
    try:
        return _plain(_decode(_encode(value)), depth - 1)
    except (OverflowError, ValueError):
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
    if value is None or (isinstance(value, str | bytes | Iterable) and not value):
        raise ValueError("key must identify the effect, but it is empty: name an argument that differs")
    if isinstance(value, str):
        return str.__str__(value)  # the value of a member of an enumeration
    written = canonical(value)
    return _text(written) if written.startswith(b'"') else written.decode()


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
