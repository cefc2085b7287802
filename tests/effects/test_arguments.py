"""Canonical arguments: equal meaning, equal text; what has no value is refused or left out."""

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
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


@dataclass
class Data:
    a: int


class Model(pydantic.BaseModel):
    a: int


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
        (Decimal("1.50"), "1.50"),
        ({1: "a"}, {"1": "a"}),
    ):
        assert canonical(first) == canonical(second), (first, second)
    for first, second in (
        (1, 2),
        ("1.0", 1.0),
        ({"a": 1}, {"a": None}),
        (True, 1),
        ("a\ud800", "a\udc00"),
        (0.5, 0.25),
    ):
        assert canonical(first) != canonical(second), (first, second)


def test_what_has_no_value():
    """Connections, functions and cycles; with `strict` the error names the argument, otherwise it is left out."""
    cycle = []
    cycle.append(cycle)
    with socket.socket() as connection:
        for value in (connection, print, object(), cycle, SimpleNamespace(close=1)):
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
    for empty in (None, "", (), b""):
        with pytest.raises(ValueError, match="empty"):
            key_text(empty)
    assert row_name("pay", "7") == "pay:7"
    assert len(row_name("pay", "x" * 999)) == len(row_name("pay", "a\nb")) == 36
