"""Canonical arguments: equal meaning, equal text; what has no value is refused or left out."""

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import msgspec
import pydantic
import pytest

from amends.effects.arguments import (
    NoCanonicalForm,
    canonical,
    canonical_arguments,
    derived_key,
    digest,
    key_text,
    row_name,
)

NAMES = {"tea", "coffee", "milk", "sugar", "cups"}


@dataclass
class Data:
    a: int


class Model(pydantic.BaseModel):
    a: int


class Card(pydantic.BaseModel):
    number: pydantic.SecretStr


class Tags(pydantic.BaseModel):
    tags: set[str]
    nested: dict[str, set[str]]
    link: pydantic.AnyUrl


class Currency(str, Enum):  # noqa: UP042 - its text differs from its value
    EUR = "eur"


class Size(int, Enum):
    BIG = 3


class Plain(Enum):
    TEXT = 'a"b'


class Money:
    def __init__(self, amount):
        self._amount = amount


class Broken(pydantic.BaseModel):
    a: int = 1

    @pydantic.field_serializer("a")
    def fail(self, value):
        raise RuntimeError("no")


class Struct(msgspec.Struct):
    a: int


def test_equal_meaning_has_equal_text():
    """Order of members, whole floats, classes with the same values, and numbers beyond 64 bits."""
    for first, second in (
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        (Data(1), {"a": 1}),
        (Model(a=1), {"a": 1}),
        (Struct(1), {"a": 1}),
        (SimpleNamespace(a=1, _cached=object()), {"a": 1}),
        ((1, 2), [1, 2]),
        ([1e3, -0.0], [1000, 0]),
        (UUID(int=1), str(UUID(int=1))),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("1.50"), 1.5),
        (Decimal(100), 1e2),
        (Decimal("1E+99999999"), Decimal("10E+99999998")),
        ({1, "a", None}, {None, "a", 1}),
        ({10, 2}, frozenset([2, 10])),
        ([{10, 2}, None], [frozenset([2, 10]), None]),
        ({1: "a"}, {"1": "a"}),
        (10**20, 1e20),
        (10**20, Decimal("1E+20")),
        ({"a": 10**20, "b": 1}, {"a": 10**20, "b": 1.0}),
        (10**5000, Decimal("1E+5000")),
        (Data(10**5000), {"a": 10**5000}),
    ):
        assert canonical(first) == canonical(second), (first, second)
    for first, second in (
        (1, 2),
        ("1.0", 1.0),
        ({"a": 1}, {"a": None}),
        (True, 1),
        ("a\ud800", "a\udc00"),
        (0.5, 0.25),
        (Decimal("1.000000000000000001"), 1),
        (float("nan"), None),
        (float("inf"), float("-inf")),
        (Decimal("NaN"), None),
        (Card(number="4111"), Card(number="4222")),
        (10**20, 10**20 + 1),
        (10**20, str(10**20)),
        (10**5000, 10**5000 + 1),
    ):
        assert canonical(first) != canonical(second), (first, second)


def test_what_has_no_value():
    """Connections, functions and cycles; with `strict` the error names the argument, otherwise it is left out."""
    cycle = []
    cycle.append(cycle)
    with socket.socket() as connection:
        hidden = (Money(5), SimpleNamespace(), Broken())
        for value in (connection, print, object(), cycle, SimpleNamespace(close=1), Model, *hidden):
            with pytest.raises(NoCanonicalForm):
                canonical(value)
        with pytest.raises(NoCanonicalForm, match="connection"):
            canonical_arguments({"a": 1, "connection": connection}, strict=True)
        assert canonical_arguments({"a": 1, "connection": connection}, strict=False) == b'{"a":1}'


def test_keys():
    """Parts do not run into each other; an empty key is refused; a long or unprintable one is hashed."""
    assert digest("a", "bc") != digest("ab", "c")
    assert derived_key("", "pay", b"{}") != derived_key("task-42", "pay", b"{}")
    assert [key_text(value) for value in ("a", 7, ("a", 7), UUID(int=0))] == [
        "a",
        "7",
        '["a",7]',
        str(UUID(int=0)),
    ]
    assert [key_text(value) for value in (Currency.EUR, Size.BIG, Plain.TEXT, 10**20, 1e20)] == [
        "eur",
        "3",
        'a"b',
        "100000000000000000000",
        "100000000000000000000",
    ]
    for empty in (None, "", (), b""):
        with pytest.raises(ValueError, match="empty"):
            key_text(empty)
    assert row_name("pay", "7") == "pay:7"
    assert len(row_name("pay", "x" * 999)) == len(row_name("pay", "a\nb")) == 36


def test_sets_are_the_same_in_every_process():
    """The order of a set of texts differs from process to process, and a repeat may come from another one."""
    groups = "{frozenset([each, each * 2]) for each in t.NAMES}"
    pairs = "{(each, frozenset([each, 'a'])) for each in t.NAMES}"
    values = (
        "t.Tags(tags=t.NAMES, nested={'a': t.NAMES}, link='https://x.example/')",
        groups,
        f"t.Data({groups})",
        f"t.Struct({groups})",
        f"t.SimpleNamespace(a={groups})",
        pairs,
        f"sorted({pairs}, key=str)",
    )
    program = (
        f"import test_arguments as t\nfor each in ({', '.join(values)}): print(t.canonical(each).decode())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1, texts
    model, of_sets, *with_sets, unordered, ordered = texts.pop().splitlines()
    assert "https://x.example/" in model
    assert with_sets == [f'{{"a":{of_sets}}}'] * 3
    assert unordered == ordered


def test_a_secret_is_not_written():
    """Only its hash, so that two cards are two calls."""
    assert b"4111" not in canonical(Card(number="4111"))
