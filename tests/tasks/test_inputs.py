"""Payloads are checked against the declared type, and errors name the field."""

import enum
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from amends import FaultError
from amends.tasks.inputs import checker


class Colour(enum.Enum):
    RED = "red"


class Inner(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=0)]


class Input(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    short: Annotated[str, msgspec.Meta(max_length=3)] = ""
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    at: datetime | None = None
    inner: Inner | None = None
    numbers: list[int] = []
    table: dict[str, int] = {}


GOOD = {"title": "x"}


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        ({}, "MISSING_REQUIRED_FIELD", "/title"),
        (GOOD | {"inner": {}}, "MISSING_REQUIRED_FIELD", "/inner/count"),
        ({"title": 3}, "INVALID_FIELD_TYPE", "/title"),
        (GOOD | {"numbers": [1, "2"]}, "INVALID_FIELD_TYPE", "/numbers/1"),
        (GOOD | {"table": {"secret": "x"}}, "INVALID_FIELD_TYPE", "/table/*"),
        (GOOD | {"inner": {"count": "1"}}, "INVALID_FIELD_TYPE", "/inner/count"),
        (GOOD | {"inner": {"count": -1}}, "INVALID_FIELD_VALUE", "/inner/count"),
        (GOOD | {"short": "long"}, "INVALID_FIELD_VALUE", "/short"),
        (GOOD | {"colour": "blue"}, "INVALID_FIELD_VALUE", "/colour"),
        (GOOD | {"kind": "c"}, "INVALID_FIELD_VALUE", "/kind"),
        (GOOD | {"at": "soon"}, "INVALID_FIELD_VALUE", "/at"),
        (GOOD | {"other": 1}, "INVALID_FIELD_VALUE", "/other"),
        # Text of the sender cannot change the reported field.
        (GOOD | {"colour": "x - at `$.title`"}, "INVALID_FIELD_VALUE", "/colour"),
        (GOOD | {"colour": "Object missing required field `title`"}, "INVALID_FIELD_VALUE", "/colour"),
        ([], "INVALID_INPUT", None),
        (None, "INVALID_INPUT", None),
        ("title", "INVALID_INPUT", None),
    ],
)
def test_errors_have_a_code_and_a_pointer(payload, code, field):
    """Three codes for a field, and one for the payload as a whole."""
    with pytest.raises(FaultError) as raised:
        checker(Input)(payload)
    fault = raised.value.fault
    assert (fault.code, fault.field, fault.vocabulary) == (code, field, "task")
    assert fault.executed == "no"
    if field:
        assert fault.details["pointer"] == field


def test_valid_payloads_are_converted():
    """Into the declared type; without one, nothing is checked."""
    assert checker(Input)(GOOD | {"colour": "red"}).colour is Colour.RED
    assert checker(int)(3) == 3
    assert checker(Any) is None


class Address(pydantic.BaseModel):
    city: str


class Order(pydantic.BaseModel):
    amount: int = pydantic.Field(ge=1)
    to: Address


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        ({"amount": 1}, "MISSING_REQUIRED_FIELD", "/to"),
        ({"amount": 1, "to": {}}, "MISSING_REQUIRED_FIELD", "/to/city"),
        ({"amount": "many", "to": {"city": "Rome"}}, "INVALID_FIELD_TYPE", "/amount"),
        ({"amount": 0, "to": {"city": "Rome"}}, "INVALID_FIELD_VALUE", "/amount"),
        ("text", "INVALID_INPUT", None),
    ],
)
@pytest.mark.parametrize("many", [True, False])
def test_pydantic_models(payload, code, field, many):
    """By themselves, and inside other types."""
    check = checker(list[Order] if many else Order)
    good = {"amount": 2, "to": {"city": "Rome"}}
    assert check([good] if many else good) == ([Order(**good)] if many else Order(**good))
    with pytest.raises(FaultError) as raised:
        check([payload] if many else payload)
    fault = raised.value.fault
    if field is not None:
        assert (fault.code, fault.field) == (code, f"/0{field}" if many else field)
    assert "many" not in str(fault.message)
