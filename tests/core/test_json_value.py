"""Any Python value as plain JSON values."""

import dataclasses
import datetime as dt
import decimal
import doctest
import enum
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec
import pytest

from amends.core import json_value as module
from amends.core.json_value import MARKER, MAX_DEPTH, MAX_NODES, json_value


class Struct(msgspec.Struct):
    a: int


@dataclasses.dataclass
class Data:
    a: int


class Named(NamedTuple):
    a: int


class Model:
    def model_dump(self):
        return {"a": 1}


class Field(NamedTuple):
    name: str


class Attrs:
    """A class as attrs makes it."""

    __attrs_attrs__ = (Field("a"),)
    a = 1


class Colour(enum.Enum):
    RED = "red"


class Raising:
    def model_dump(self):
        raise RuntimeError


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("value", [Struct(1), Data(1), Named(1), Model(), Attrs(), {"a": 1}])
def test_objects(value):
    """Every kind of object with declared fields is an object."""
    assert json_value(value) == {"a": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (Colour.RED, "red"),
        ((1, 2), [1, 2]),
        ({3, 1}, [1, 3]),
        ({"b", 1}, [1, "b"]),
        (b"ok", "ok"),
        (b"", ""),
        (b"\xff", "/w=="),
        (b"a\x00", "YQA="),
        (bytearray(b"a"), "a"),
        (memoryview(b"a"), "a"),
        (float("inf"), None),
        (float("-inf"), None),
        (1.5, 1.5),
        (10**100 - 1, 10**100 - 1),
        (10**100, None),
        (-(10**100), None),
        (1 - 10**100, 1 - 10**100),
        ("\ud800", "?"),
        ("ä", "ä"),
        (KeyError("secret"), "KeyError"),
        (PurePosixPath("a/b"), "a/b"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (decimal.Decimal("1.50"), "1.50"),
        (object(), MARKER),
        (Raising(), MARKER),
    ],
)
def test_values(value, expected):
    """Each kind of value becomes what JSON has for it."""
    assert json_value(value) == expected
    assert json_value([value]) == [expected]


@pytest.mark.parametrize("kind", [Struct, Data])
def test_only_the_member_that_cannot_be_written_is_redacted(kind):
    """The other members of an object are kept."""
    assert json_value([kind(object()), 1]) == [{"a": MARKER}, 1]


def test_keys():
    """Keys are strings, and none hides another."""
    assert json_value({None: 1, True: 2, False: 3, 1.5: 4, Colour.RED: 5}) == {
        "null": 1,
        "true": 2,
        "false": 3,
        "1.5": 4,
        "red": 5,
    }
    assert json_value({1: "a", "1": "b"}) == {"1": "a", "1 1": "b"}
    assert json_value({(1,): "a", (2,): "b"}) == {MARKER: "a", f"{MARKER} 1": "b"}


def test_depth():
    """Values at MAX_DEPTH levels are written, deeper ones are not."""
    value = inner = []
    for _ in range(MAX_DEPTH - 1):
        inner.append([])
        inner = inner[0]
    assert MARKER not in str(json_value(value))
    inner.append([])
    assert MARKER in str(json_value(value))
    inner[0] = 7
    assert MARKER not in str(json_value(value))


def test_size():
    """After the first values a marker shows that there were others."""
    whole = json_value([0] * (MAX_NODES - 1))
    assert whole == [0] * (MAX_NODES - 1)
    cut = json_value([0] * (MAX_NODES + 5))
    assert cut == [*[0] * (MAX_NODES - 1), MARKER]
    many = json_value({str(n): 0 for n in range(MAX_NODES + 5)})
    assert len(many) == MAX_NODES
    assert list(many.values())[-1] == MARKER


def test_the_limits_of_numbers():
    """Whole numbers of up to a hundred digits are written, of either sign."""
    for value in (10**100 - 1, 1 - 10**100):
        assert json_value(value) == value
    for value in (10**100, -(10**100), float("inf"), float("-inf")):
        assert json_value(value) is None


def test_bytes():
    """Printable text, or base64; no bytes are an empty text."""
    assert [
        json_value(value) for value in (b"", b"ok", b"a\x00", b"\xff", bytearray(b"x"), memoryview(b"y"))
    ] == [
        "",
        "ok",
        "YQA=",
        "/w==",
        "x",
        "y",
    ]


def test_other_objects():
    """An exception is its class, a path its text, an object without fields is not written."""

    class Plain:
        pass

    class Model:
        def model_dump(self):
            return {"a": 1}

    class Wrong:
        def model_dump(self):
            return 7

    found = json_value(
        [KeyError("s3cret"), PurePosixPath("/a"), Plain(), Model(), Wrong(), frozenset({2, 1}), "é\ud800"]
    )
    assert found == ["KeyError", "/a", MARKER, {"a": 1}, MARKER, [1, 2], "é?"]


def test_the_keys_of_every_kind():
    """Numbers, booleans and null as JSON writes them; other keys are not written, and none hides another."""
    found = json_value({1: "a", "1": "b", 1.5: "c", None: "d", (): "f", frozenset(): "g", Colour.RED: "h"})
    assert found == {
        "1": "a",
        "1 1": "b",
        "1.5": "c",
        "null": "d",
        MARKER: "f",
        f"{MARKER} 5": "g",
        "red": "h",
    }
    assert json_value({False: 1, True: 2}) == {"false": 1, "true": 2}


class Colour(enum.Enum):
    RED = "red"


def test_how_many_values_are_written():
    """Ten thousand in all; null, true and false cost one too, and are never replaced."""
    assert json_value([1] * (MAX_NODES - 1)) == [1] * (MAX_NODES - 1)
    assert json_value([1] * MAX_NODES) == [1] * (MAX_NODES - 1) + [MARKER]
    assert json_value([1] * (MAX_NODES + 5)) == [1] * (MAX_NODES - 1) + [MARKER]
    assert json_value([None] * MAX_NODES)[-1] is None
    many = json_value({str(number): number for number in range(MAX_NODES + 5)})
    assert len(many) == MAX_NODES
    assert many[str(MAX_NODES - 1)] == MARKER
    assert json_value([[1] * (MAX_NODES - 3), 2, 3]) == [[1] * (MAX_NODES - 3), 2, MARKER][:3]
