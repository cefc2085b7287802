"""Values that a log can keep, and those that it refuses."""

import dataclasses
import datetime as dt
from decimal import Decimal

import msgspec
import pydantic
import pytest
from mcp import types

from amends.tasks import Agent
from amends.tasks.values import MAX_BYTES, MAX_DEPTH, UnstorableError, to_json_value


@dataclasses.dataclass
class Price:
    amount: Decimal
    of: object = None


class Model(pydantic.BaseModel):
    when: dt.date = dt.date(2026, 1, 2)
    price: Decimal = Decimal("9.90")


class Struct(msgspec.Struct):
    inner: Price


def nested(depth):
    value = inner = {}
    for _ in range(depth):
        inner["in"] = inner = {}
    return value


def cyclic():
    value = []
    value.append(value)
    return value


def cyclic_dataclass():
    value = Price(Decimal(1))
    value.of = value
    return value


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Price(Decimal("1.50")), {"amount": "1.50", "of": None}),
        (Model(), {"when": "2026-01-02", "price": "9.90"}),
        ([Model()], [{"when": "2026-01-02", "price": "9.90"}]),
        (
            Struct(Price(Decimal(1), Model())),
            {"inner": {"amount": "1", "of": {"when": "2026-01-02", "price": "9.90"}}},
        ),
        (types.CallToolResult(content=[types.TextContent(type="text", text="a")]), "a"),
        (types.CallToolResult(content=[], structured_content={"a": 1}), {"a": 1}),
        ((1, {2}), [1, [2]]),
        ({1: 2}, {"1": 2}),
    ],
)
def test_what_can_be_stored(value, stored):
    assert to_json_value(value) == stored


UNSTORABLE = {
    "cyclic": (cyclic, "contains itself"),
    "cyclic dataclass": (cyclic_dataclass, "contains itself"),
    "deep": (lambda: nested(MAX_DEPTH + 1), "levels deep"),
    "very deep": (lambda: nested(100_000), "levels deep"),
    "large": (lambda: "x" * MAX_BYTES, "bytes"),
    "NaN": (lambda: {"a": [float("nan")]}, "NaN"),
    "infinite": (lambda: float("inf"), "infinite"),
    "a Decimal": (lambda: Decimal("NaN"), "NaN"),
    "an object": (object, "JSON"),
    "a surrogate": (lambda: "\ud800", "JSON"),
    "a property that raises": (lambda: type("X", (), {"content": property(lambda self: 1 / 0)})(), "JSON"),
}


@pytest.mark.parametrize("kind", UNSTORABLE)
def test_what_cannot_be_stored(kind):
    make, says = UNSTORABLE[kind]
    with pytest.raises(UnstorableError, match=says):
        to_json_value(make())


@pytest.mark.parametrize("kind", UNSTORABLE)
async def test_a_result_that_cannot_be_stored(manual, kind):
    """The first time, with an error of its own that says that the step did happen; the worker goes on."""
    make, says = UNSTORABLE[kind]
    agent, calls = Agent("worker"), []

    @agent.capability(idempotent=True)
    async def work(payload):
        calls.append(1)
        return make() if payload == "bad" else "fine"

    manual.register(agent)
    handle = await manual.submit("work", "bad")
    await manual.drain()
    error = (await handle.response()).error
    assert (len(calls), error.code, error.executed, error.recovery) == (
        1,
        "INTERNAL_ERROR",
        "yes",
        "terminal",
    )
    assert "The step happened" in error.message
    assert says in error.message
    fine = await manual.submit("work", "fine")
    await manual.drain()
    assert (await fine.response()).result == "fine"


@pytest.mark.parametrize("kind", UNSTORABLE)
async def test_a_payload_that_cannot_be_stored(manual, kind):
    """It is refused with a response, and leaves no row."""
    make, _ = UNSTORABLE[kind]
    manual.register(Agent("worker"))
    response = await manual.run("work", make())
    assert (response.status, response.error.code, response.error.field) == (
        "failed",
        "INVALID_INPUT",
        "/payload",
    )
    assert [row async for row in manual.list()] == []


@pytest.mark.parametrize("options", [{"id": "\ud800"}, {"key": "\ud800"}, {"agent": "\ud800"}])
async def test_names_that_cannot_be_stored(manual, options):
    response = await manual.run("work", **options)
    assert response.error.code == "INVALID_FIELD_VALUE"
    assert [row async for row in manual.list()] == []
