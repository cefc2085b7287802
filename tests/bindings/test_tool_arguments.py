"""The arguments that a tool receives, of those that a model wrote."""

from datetime import date
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from amends.bindings.tool_arguments import by_function, by_schema
from amends.effects.arguments import canonical
from tests.each import each


class Currency(Enum):
    """A currency."""

    EUR = "EUR"


class Item(BaseModel):
    """A line of an order."""

    name: str
    count: int = 1


class Order(BaseModel):
    """The arguments of a tool."""

    order: int
    items: list[Item] = Field(default_factory=list)
    first: Item | None = None
    currency: Currency = Currency.EUR
    text: str = "none"


def pay(
    order: int,
    items: list[Item] = Field(default_factory=list),  # noqa: B008 - as tools of LlamaIndex and ADK declare it
    first: Item | None = None,
    currency: Currency = Currency.EUR,
    text: str = "none",
    day: date = date(2026, 1, 1),
    connection: object = object(),
) -> None:
    """Pay an order."""


PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults": ({"order": 17}, {"order": 17, "first": None, "currency": "EUR", "text": "none"}),
    "number as text": ({"order": 17}, {"order": "17"}),
    "nested defaults": (
        {"order": 1, "items": [{"name": "tea"}]},
        {"order": 1, "items": [{"name": "tea", "count": 1}]},
    ),
    "nested number as text": (
        {"order": 1, "items": [{"name": "tea"}]},
        {"order": 1, "items": [{"name": "tea", "count": "1"}]},
    ),
    "nested in an alternative": (
        {"order": 1, "first": {"name": "tea"}},
        {"order": 1, "first": {"name": "tea", "count": 1, "more": "x"}},
    ),
    "text as number": ({"order": 1, "text": "17"}, {"order": 1, "text": 17}),
    "unknown": ({"order": 1}, {"order": 1, "note": "the model added this"}),
}


def by_order(arguments):
    return by_schema(Order.model_json_schema(), arguments)


def by_pay(arguments):
    return by_function(pay, arguments)


@each("read, name", [(read, name) for read in (by_order, by_pay) for name in PAIRS])
def test_two_ways_to_write_a_call_are_one(read, name):
    """The key is made of what the tool receives."""
    first, second = PAIRS[name]
    assert canonical(read(first)) == canonical(read(second))


@each("read", [by_order, by_pay])
def test_another_value_is_another_call(read):
    """What the tool receives differs."""
    first = {"order": 1, "items": [{"name": "tea"}]}
    second = {"order": 1, "items": [{"name": "tea", "count": 2}]}
    assert canonical(read(first)) != canonical(read(second))


def test_arguments_that_do_not_fit_stay():
    """The framework refuses them; nothing is raised for any value or schema."""
    schemas = [
        None,
        [],
        {},
        {"properties": []},
        {"properties": {"a": None, "b": {"$ref": "#/$defs/b"}, "c": {"anyOf": "x"}, "d": {"items": 1}}},
        {"properties": {"b": {"$ref": "#/properties/b"}}},
    ]
    for schema in schemas:
        for value in (None, "x", 1, [1], {"a": 1}, float("nan"), object()):
            arguments = {name: value for name in "abcd"}
            assert set(by_schema(schema, arguments)) <= set("abcd")
    assert by_schema({"properties": {"a": {"type": "integer"}}}, {"a": "x"}) == {"a": "x"}
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep, "b": [deep]} if len(str(deep)) < 10_000 else {"a": deep}
    assert by_schema(
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"properties": {"a": {}}}}}, deep
    )


def test_what_a_program_injects_is_no_part_of_the_key():
    """A default that has no values, such as a connection, is left out."""
    assert "connection" not in by_function(pay, {"order": 1})
    assert by_function(pay, {"order": 1})["day"] == date(2026, 1, 1)
