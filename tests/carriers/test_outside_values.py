"""
Values that are not JSON's own types: enum members, subclasses of str, int and float, other mappings, tuples.

Frameworks pass such values: `HTTPStatus`, `httpx.Headers`, a `MappingProxyType`. They are read like the plain value
they hold, and the resulting fault holds plain values only.
"""

import types
from collections import ChainMap, OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Mapping
from email.message import Message
from enum import Enum, IntEnum, StrEnum
from http import HTTPStatus

import httpx
import msgspec
import pytest
from tests.each import each
from tests.strategies import documents

from amends import decode, extract
from amends.carriers.extraction import VIAS, examine
from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.wire import MAX_DEPTH, TOO_DEEP, plain
from amends.dialects import NAMES, encode

PLAIN = {type(None), bool, int, float, str, dict, list, tuple, Fault, Origin, Recovery, Executed, Actor}


class Text(str):
    """A str subclass whose str() is something else."""

    __slots__ = ()

    def __str__(self):
        return "not the text"


class Whole(int):
    """An int subclass whose int() is something else."""

    def __int__(self):
        return -1


class Fraction(float):
    """A float subclass whose float() is something else."""

    def __float__(self):
        return -1.0


def member(base, value):
    """Return a member with `value`, of an enum made for it."""
    return base("Made", {"MEMBER": value}).MEMBER


def text_of(make):
    """Return a function that converts strings."""
    return lambda value: make(value) if isinstance(value, str) else value


def number_of(kind, make):
    """Return a function that converts numbers of one type, but not booleans."""
    return lambda value: make(value) if isinstance(value, kind) and not isinstance(value, bool) else value


def mapping_of(make):
    """Return a function that converts objects."""
    return lambda value: make(value) if isinstance(value, dict) else value


CONVERSIONS = {
    "str subclass": text_of(Text),
    "StrEnum": text_of(lambda value: member(StrEnum, value)),
    "str and Enum": text_of(lambda value: Enum("Made", {"MEMBER": value}, type=str).MEMBER),
    "int subclass": number_of(int, Whole),
    "IntEnum": number_of(int, lambda value: member(IntEnum, value)),
    "float subclass": number_of(float, Fraction),
    "tuple": lambda value: tuple(value) if isinstance(value, list) else value,
    "named tuple": lambda value: (
        namedtuple("Made", [f"item{place}" for place in range(len(value))])(*value)
        if isinstance(value, list)
        else value
    ),
    "MappingProxyType": mapping_of(types.MappingProxyType),
    "OrderedDict": mapping_of(OrderedDict),
    "defaultdict": mapping_of(lambda value: defaultdict(list, value)),
    "UserDict": mapping_of(UserDict),
    "ChainMap": mapping_of(ChainMap),
}


def converted(value, convert):
    """Return the document with every value inside converted, the inner ones first."""
    if isinstance(value, dict):
        value = {name: converted(item, convert) for name, item in value.items()}
    elif isinstance(value, list):
        value = [converted(item, convert) for item in value]
    return convert(value)


def types_in(value):
    """Return the types of all values inside a value."""
    found = {type(value)}
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        found = found.union(*map(types_in, value))
    return found


@each("conversion", CONVERSIONS)
@each("via", VIAS)
def test_every_via_reads_the_value_behind_the_type(via, conversion):
    """Design 4: what `extract` takes; with `via` and by shape."""
    for document in documents[via]:
        seen = converted(document, CONVERSIONS[conversion])
        for asked in (via, None):
            assert examine(seen, asked) == examine(document, asked)
            fault = extract(seen, asked)
            assert fault is None or types_in(msgspec.structs.asdict(fault)) <= PLAIN
            assert msgspec.json.encode(fault)


@each("conversion", CONVERSIONS)
@each("name", NAMES)
def test_every_dialect_decodes_the_value_behind_the_type(name, conversion):
    """Design 9: `decode` takes a mapping."""
    for document in documents[{"envelope": "cli"}.get(name, name)]:
        seen = converted(document, CONVERSIONS[conversion])
        fault = decode(seen, name)
        assert fault == decode(document, name)
        if fault is not None:
            assert msgspec.json.encode(encode(fault, name))


@pytest.mark.parametrize("via", ["http", None])
def test_a_status_may_be_an_http_status(via):
    """Frameworks use the standard library's enum."""
    response = {"status": HTTPStatus.TOO_MANY_REQUESTS, "headers": {}, "body": {"detail": "Slow down"}}
    fault = extract(response, via)
    assert (fault.code, fault.status, type(fault.status)) == ("RATE_LIMITED", 429, int)


def mail_headers(pairs):
    """Return headers of the class that urllib and http.client use."""
    message = Message()
    for name, value in pairs.items():
        message[name] = value
    return message


@pytest.mark.parametrize(
    "headers",
    [
        httpx.Headers({"Retry-After": "7"}),
        mail_headers({"Retry-After": "7"}),
        types.MappingProxyType({"retry-after": member(IntEnum, 7)}),
        {Text("Retry-After"): Text("7")},
        {member(StrEnum, "Retry-After"): ("7", "8")},
        [("Retry-After", "7"), ("Retry-After", "9")],
        ((b"retry-after", b"7"),),
    ],
    ids=["httpx", "email.message", "proxy", "str subclass", "enum and tuple", "pairs", "asgi"],
)
@pytest.mark.parametrize("via", ["http", None])
def test_headers_of_the_usual_libraries(headers, via):
    """P3: a wait in the headers is read from any of these objects."""
    assert extract({"status": 503, "headers": headers, "body": None}, via).retry_after == 7


@pytest.mark.parametrize("kind", [Text, lambda text: member(StrEnum, text)])
@pytest.mark.parametrize("via", ["adcp", None])
def test_a_document_may_be_a_str_subclass(kind, via):
    """JSON text in a str subclass is parsed like any other."""
    document = '{"code": "CONFLICT", "message": "x"}'
    assert extract(kind(document), via) == extract(document, via)
    assert decode(kind(document), "adcp") == decode(document, "adcp")


@pytest.mark.parametrize(
    ("document", "via"),
    [
        ({"status": True, "headers": {}}, "http"),
        ({"status": True, "headers": {}}, None),
        ({"error": {"code": True}}, None),
    ],
)
def test_a_boolean_is_not_a_number(document, via):
    """True is an int in Python, but not a number in JSON."""
    assert extract(document, via, native=False) is None


@pytest.mark.parametrize("name", ["retry_after", "retry_after_ms", "status", "max_retries", "attempt"])
def test_a_boolean_member_counts_as_absent(name):
    """P8: a member of the wrong type."""
    for dialect in NAMES:
        fault = decode({"code": "TIMEOUT", "title": "x", name: True}, dialect)
        assert fault.retry_after is None
        assert fault.status is None
        assert fault.max_retries is None
        assert fault.attempt is None


class Raising(Mapping):
    """A mapping that raises when it is read."""

    def __getitem__(self, name):
        raise OSError("connection lost")

    def __iter__(self):
        return iter(["code", "status", "error"])

    def __len__(self):
        return 3


class Endless(Mapping):
    """A mapping with an endless number of names, each with another such mapping."""

    def __getitem__(self, name):
        return Endless()

    def __iter__(self):
        number = 0
        while True:
            yield f"name{number}"
            number += 1

    def __len__(self):
        return 1


class Overridden(dict):
    """A dict whose methods raise."""

    def get(self, name, default=None):
        raise OSError("connection lost")

    items = values = keys = __iter__ = get


class Ambiguous:
    """A value without a truth value, like an array of numpy."""

    def __bool__(self):
        raise ValueError("the truth value is ambiguous")

    __eq__ = __bool__
    __hash__ = None


@pytest.mark.parametrize("hostile", [Raising, Overridden, Ambiguous], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("via", [None, *VIAS])
def test_values_that_raise_are_ignored(via, hostile):
    """Design 4: extract never raises on data, wherever such a value is."""
    extract(hostile(), via)
    for found in documents.values():
        for document in found:
            for name in document:
                extract({**document, name: hostile()}, via)
                extract({**document, name: [hostile()]}, via)
                if isinstance(document[name], dict):
                    for inner in document[name]:
                        extract({**document, name: {**document[name], inner: hostile()}}, via)


@pytest.mark.parametrize("via", [None, *VIAS])
def test_a_mapping_without_end(via):
    """The number of members and the depth are limited."""
    assert extract(Endless(), via, native=False) is None
    assert (
        extract({"isError": True, "structuredContent": {"adcp_error": Endless()}}, via, native=False) is None
    )


def test_plain_copies_only_other_types():
    """A value of JSON's own types is returned unchanged."""
    value = {"a": [1, 2.5, None, True, "x", {"b": []}]}
    assert plain(value) is value
    made = plain({"a": (HTTPStatus.OK, Text("x")), "b": types.MappingProxyType({"c": b"bytes"})})
    assert made == {"a": [200, "x"], "b": {"c": b"bytes"}}
    assert types_in(made) == {dict, list, int, str, bytes}


def test_plain_limits_the_depth():
    """Tuples and proxies count like lists and dicts."""
    for wrap in (lambda value: (value,), lambda value: types.MappingProxyType({"a": value})):
        value = 0
        for _ in range(MAX_DEPTH):
            value = wrap(value)
        assert plain(value) is not TOO_DEEP
        assert plain(wrap(value)) is TOO_DEEP
