"""
Tests of validation errors of pydantic (2 and 1), msgspec, jsonschema and json: fields and suggestions, never
values.

FastAPI is not installed: a stand-in with the same class names is used.
"""

import json
import sys
from collections.abc import Callable
from typing import Annotated, Literal, get_args

import jsonschema
import msgspec
import pydantic
import pytest
from pydantic_core.core_schema import ErrorType

from amends import Fault, from_exception
from amends.foreign.validation import MAX_FIELDS, SUGGESTIONS, pointer, suggestion
from tests.foreign import faults
from tests.foreign.standins import standin


def raised_fault(call: Callable[[], object]) -> Fault:
    """Return the fault of the exception that a call raises, and assert that it shows nothing of the input."""
    fault = faults.raised_fault(call)
    assert b"s3cret" not in msgspec.json.encode(fault)
    return fault


class Item(pydantic.BaseModel, extra="forbid"):
    count: Annotated[int, pydantic.Field(gt=41999)]
    kind: Literal["a", "b"] = "a"


class Order(pydantic.BaseModel, extra="forbid"):
    items: list[Item]
    prices: dict[int, float] = {}
    name: str = ""


def test_pydantic_fields_and_suggestions() -> None:
    """One part for each field, as a JSON Pointer, with our own suggestion and without the limit (A19)."""
    sent = {
        "items": [{"count": "s3cret"}, {"count": 7, "kind": "s3cret"}, {}],
        "prices": {"s3cret": 1, "s3cret2": 1},
        "a/b~c": "s3cret",
    }
    fault = raised_fault(lambda: Order.model_validate(sent))
    assert (fault.code, fault.recovery.value, fault.executed.value) == (
        "VALIDATION_ERROR",
        "correctable",
        "no",
    )
    assert {part.field: part.suggestions for part in fault.errors} == {
        "/items/0/count": ("Send a whole number",),
        "/items/1/count": ("Send a larger number",),
        "/items/1/kind": ("Use one of the allowed values",),
        "/items/2/count": ("Supply this field",),
        "/prices": ("Send a whole number",),
        "/a~1b~0c": ("Leave out what is not known here",),
    }
    assert fault.field == "/items/0/count"
    assert len(fault.suggestions) == len(set(fault.suggestions)) == 5
    assert b"41999" not in msgspec.json.encode(fault)
    assert {part.code for part in fault.errors} == {"VALIDATION_ERROR"}


def test_an_error_of_the_whole_model_has_no_field() -> None:
    """A model's own validator names no field, and its text is the application's."""

    class Pair(pydantic.BaseModel):
        @pydantic.model_validator(mode="after")
        def check(self) -> "Pair":
            raise ValueError("s3cret")

    fault = raised_fault(Pair)
    assert (fault.field, fault.suggestions) == (None, ("Correct this value",))
    assert len(fault.errors) == 1


def test_pydantic_keys_are_cleaned() -> None:
    """Keys come from the sender: long, invisible and secret-looking ones are cut, stripped and redacted."""
    keys = ["k" * 500, "a\u202eb", "postgres://u:s3cret@db.acme.internal/x"]
    fault = raised_fault(lambda: Order.model_validate({"items": [], **dict.fromkeys(keys, 1)}))
    fields = [part.field for part in fault.errors]
    assert fields[:2] == ["/" + "k" * 64, "/ab"]
    assert "acme" not in (fields[2] or "")


def test_the_number_of_fields_is_limited() -> None:
    """A document with many errors gives at most MAX_FIELDS parts."""
    fault = raised_fault(lambda: Order.model_validate({"items": [{}] * 1000}))
    assert len(fault.errors) == MAX_FIELDS


def test_every_error_type_of_pydantic_has_a_suggestion() -> None:
    """Only a few error types get the general suggestion."""
    general = {kind for kind in get_args(ErrorType) if suggestion(kind) == "Correct this value"}
    # Later releases may add error types. They may get the general suggestion only if there is no better one.
    assert general - {"recursion_depth_exceeded"} == {
        *("needs_python_object", "recursion_loop", "default_factory_not_called", "value_error"),
        *("assertion_error", "is_instance_of", "is_subclass_of", "callable_type"),
    }
    assert suggestion("acme_own_kind") == suggestion(None) == suggestion("") == "Correct this value"
    assert all(
        text and not any(sign.isdigit() for sign in text.replace("8601", "")) for text in SUGGESTIONS.values()
    )


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="pydantic 1 ends with Python 3.13")
def test_pydantic_1() -> None:
    """pydantic 1, as pydantic 2 contains it."""
    from pydantic import v1

    class Old(v1.BaseModel):
        count: int
        other: v1.conint(gt=41999)  # type: ignore[valid-type]
        name: v1.constr(min_length=3)  # type: ignore[valid-type]
        missing: str

    fault = raised_fault(lambda: Old(count="s3cret", other=1, name=""))
    assert {part.field: part.suggestions[0] for part in fault.errors} == {
        "/count": "Send a whole number",
        "/other": "Send a larger number",
        "/name": "Send something longer",
        "/missing": "Supply this field",
    }


def test_fastapi() -> None:
    """The request error lists what pydantic found; the response error is the application's own failure."""
    base = standin("fastapi.exceptions.ValidationException")
    base.errors = lambda self: [{"loc": ("body", "n"), "type": "missing", "input": "s3cret", "msg": "s3cret"}]
    fault = from_exception(standin("fastapi.exceptions.RequestValidationError", base)())
    assert (fault.field, fault.suggestions) == ("/body/n", ("Supply this field",))
    fault = from_exception(standin("fastapi.exceptions.ResponseValidationError", base)())
    assert (fault.code, fault.field) == ("INTERNAL_ERROR", None)


@pytest.mark.parametrize("errors", [None, lambda: [{}], lambda: 7, lambda: [{"loc": 5, "type": "missing"}]])
def test_the_class_decides_if_errors_cannot_be_read(errors: object) -> None:
    """An odd `errors` gives a fault without parts."""
    fault = from_exception(standin("pydantic.error_wrappers.ValidationError", errors=errors)())
    assert (fault.code, fault.errors) == ("VALIDATION_ERROR", ())


class Inner(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    unit_price: int


class Outer(msgspec.Struct):
    items: dict[str, list[Inner]]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"items": {"s3cret": [{"unit-price": "s3cret"}]}}, "/items/*/0/unit-price"),
        ({"items": {"k": [{"unit-price": 1, "s3cret": 2}]}}, "/items/*/0"),
        ({"items": 7}, "/items"),
        ({}, None),
        ({"items": {"k": [{}]}}, "/items/*/0"),
    ],
)
def test_msgspec_fields(sent: object, field: str | None) -> None:
    """The path consists of the schema's names; keys of mappings become `*`."""
    fault = raised_fault(lambda: msgspec.json.decode(msgspec.json.encode(sent), type=Outer))
    assert (fault.code, fault.field) == ("VALIDATION_ERROR", field)
    assert fault.executed.value == "no"


def test_msgspec_keys() -> None:
    """A key of the wrong type, in a mapping at the top and below."""
    fault = raised_fault(
        lambda: msgspec.convert({"items": {"s3cret": {1: 2}}}, dict[str, dict[str, dict[str, int]]])
    )
    assert fault.field == "/*/*"
    assert from_exception(msgspec.ValidationError()).field is None
    assert from_exception(msgspec.ValidationError(7)).code == "VALIDATION_ERROR"


def test_jsonschema() -> None:
    """The path, and the suggestion for the keyword that was violated."""
    schema = {"properties": {"a": {"items": {"minimum": 41999}}}}
    fault = raised_fault(lambda: jsonschema.validate({"a": [99999, 1]}, schema))
    assert (fault.field, fault.suggestions) == ("/a/1", ("Send a larger number",))
    assert b"41999" not in msgspec.json.encode(fault)


def test_documents_that_cannot_be_read() -> None:
    """
    The details have the position and no text.

    It may have been the response to a call that had its effect (M3: maybe).
    """
    fault = raised_fault(lambda: json.loads('{\n "a": s3cret}'))
    assert (fault.code, fault.executed.value) == ("VALIDATION_ERROR", "maybe")
    assert fault.details == {"line": 2, "column": 7}
    for call in (lambda: b"s3cret\xff".decode(), lambda: msgspec.json.decode(b"s3cret")):
        fault = raised_fault(call)
        assert (fault.code, fault.executed.value, fault.details) == ("VALIDATION_ERROR", "maybe", None)
    odd = json.JSONDecodeError("s3cret", "s3cret", 0)
    odd.lineno = "s3cret"  # type: ignore[assignment]
    assert from_exception(odd).details is None


def test_pointers() -> None:
    """RFC 6901, from steps of any kind."""
    assert pointer(()) is None
    assert pointer(["a", 0, "", object()]) == "/a/0//*"
