"""Refused fields with the rule that they have to follow."""

from datetime import date
from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from amends.http.validation import Mistake, fault_from_validation, is_author_text, is_secret, pydantic_mistake


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    amount: Annotated[int, Field(gt=0, le=50)] = 1
    currency: Literal["EUR", "USD"] = "EUR"
    colour: Colour = Colour.RED
    name: Annotated[str, Field(min_length=2, max_length=5)] = "book"
    code: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "ABC"
    lines: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]
    day: Annotated[date, Field(ge=date(2026, 1, 1))] = date(2026, 1, 2)
    step: Annotated[int, Field(multiple_of=5)] = 5
    password: str = "long enough"

    @field_validator("name")
    @classmethod
    def no_spaces(cls, value):
        if " " in value:
            raise ValueError("A name has no spaces")
        return value

    @field_validator("password")
    @classmethod
    def long(cls, value):
        if len(value) < 8:
            raise ValueError(f"{value} is too short")
        return value


def mistakes(**values):
    with pytest.raises(ValidationError) as caught:
        Order(**values)
    return fault_from_validation(map(pydantic_mistake, caught.value.errors()))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"amount": 0}, "Send a value greater than 0"),
        ({"amount": 51}, "Send a value of at most 50"),
        ({"amount": "x"}, "Send a whole number"),
        ({"currency": "GBP"}, "Use one of 'EUR' or 'USD'"),
        ({"colour": "green"}, "Use one of 'red' or 'blue'"),
        ({"name": "x"}, "Send at least 2 characters"),
        ({"name": "xxxxxx"}, "Send at most 5 characters"),
        ({"name": "a b"}, "A name has no spaces"),
        ({"code": "abc"}, "Send a string that matches ^[A-Z]{3}$"),
        ({"lines": []}, "Send at least 1 items"),
        ({"lines": [1, 2, 3]}, "Send at most 2 items"),
        ({"day": "2025-01-01"}, "Send a value of at least 2026-01-01"),
        ({"step": 7}, "Send a multiple of 5"),
    ],
)
def test_the_rule_is_stated(values, rule):
    """P6: bounds, lengths, patterns, allowed values, and the author's own message."""
    (part,) = mistakes(**values).errors
    assert part.suggestions == (rule,)
    (value,) = values.values()
    assert (part.details or {}).get("rejected") == (None if isinstance(value, list) else value)


def test_a_secret_is_not_repeated():
    """Neither as the rejected value nor in the validator's message."""
    fault = mistakes(password="hunt2")
    assert fault.errors[0].suggestions == ("Correct this value",)
    assert "hunt2" not in repr(fault)


@pytest.mark.parametrize(
    "name", ["password", "api_key", "apiKey", "access_token", "card_number", "pin", "clientSecret"]
)
def test_names_of_secrets(name):
    """A field inside of one for secrets is one, too."""
    assert is_secret(("body", name))
    assert is_secret(("body", name, "value"))
    assert not is_secret(("body", "name", 0))


def test_long_values_are_left_out():
    """More than 64 characters, and anything that is not a plain value."""
    for value in ("x" * 65, ["x"], {"x": 1}, 10**100):
        (part,) = fault_from_validation([Mistake(("a",), "int", value=value)]).errors
        assert part.details is None


def test_all_fields_appear():
    """P7: each field once, with all its rules; a document with more than a thousand is bounded."""
    found = fault_from_validation(Mistake(("body", place), "missing") for place in [*range(500), 0])
    assert len(found.errors) == 500
    assert len(found.errors[0].suggestions) == 1
    assert len(fault_from_validation(Mistake((place,), "missing") for place in range(5000)).errors) == 1000
    twice = fault_from_validation([Mistake(("a",), "missing"), Mistake(("a",), "int"), Mistake((), "json")])
    assert [(part.field, len(part.suggestions)) for part in twice.errors] == [("/a", 2), (None, 1)]


def test_the_first_rule_is_the_message():
    """A field with two mistakes has both rules, and the first one in its message; a rule is not repeated."""
    mistakes = [
        Mistake(("a",), rule="Send one."),
        Mistake(("a",), rule="Send two."),
        Mistake(("a",), rule="Send one."),
    ]
    fault = fault_from_validation(
        [*mistakes, Mistake((), rule="Send a body."), Mistake((), rule="Send JSON.")]
    )
    field, whole = fault.errors
    assert (field.message, field.suggestions) == ("Send one at /a", ("Send one.", "Send two."))
    assert (whole.message, whole.field, fault.field) == ("Send a body.", None, "/a")


def test_which_messages_of_validators_may_be_sent():
    """Those that do not repeat a secret or a long value. A value of two characters is no secret."""
    assert is_author_text("has to be at least 8 characters", ["password"], 8)
    assert is_author_text("has to be at least 8 characters", ["password"], "er")
    assert not is_author_text("hunter2 is too short", ["password"], "hunter2")
    assert is_author_text("hunter2 is too short", ["name"], "hunter2")
    assert not is_author_text("x" * 150 + " is too long", ["name"], "x" * 150)
    assert not is_author_text("one\ntwo", ["name"], "x")
    assert not is_author_text("", ["name"], "x")


@pytest.mark.parametrize(
    ("text", "path", "value", "sent"),
    [
        ("", (), None, False),
        ("x", (), None, True),
        ("x" * 300, (), None, True),
        ("x" * 301, (), None, False),
        ("two\nlines", (), None, False),
        ("abc is wrong", ("name",), "abc", True),
        ("abc is wrong", ("password",), "abc", False),
        ("ab is wrong", ("password",), "ab", True),
        ("is wrong", ("password",), "abc", True),
        ("y" * 64 + " is wrong", ("name",), "y" * 64, True),
        ("y" * 65 + " is wrong", ("name",), "y" * 65, False),
        ("7 is wrong", ("password",), 7, True),
    ],
)
def test_which_messages_of_validators_are_sent(text, path, value, sent):
    """Short ones of one line that repeat no secret and no long value."""
    assert is_author_text(text, path, value) is sent


def test_which_rejected_values_are_sent():
    """Numbers, booleans, null and strings of up to 64 characters; none of a secret field."""
    for value, sent in (
        ("x" * 64, True),
        ("x" * 65, False),
        (7, True),
        (10**63, True),
        (10**64, False),
        (1.5, True),
        (True, True),
        (None, True),
        ([7], False),
        ({}, False),
    ):
        (part,) = fault_from_validation([Mistake(("a",), rule="Wrong", value=value)]).errors
        assert (part.details == {"rejected": value}) is sent
        (part,) = fault_from_validation([Mistake(("token",), rule="Wrong", value=value)]).errors
        assert part.details is None
    (part,) = fault_from_validation([Mistake(("a",), rule="Wrong")]).errors
    assert part.details is None


def test_the_fault_of_many_fields():
    """At most a thousand fields are listed, each with its rules once; the first with a place names the field."""
    found = fault_from_validation(Mistake(("a", number), rule="Wrong") for number in range(1001))
    assert (len(found.errors), found.field) == (1000, "/a/0")
    found = fault_from_validation(
        [
            Mistake((), rule="Whole."),
            Mistake(("b",), rule="One."),
            Mistake(("b",), rule="Two"),
            Mistake(("b",), rule="One."),
        ]
    )
    assert [(part.field, part.suggestions, part.message) for part in found.errors] == [
        (None, ("Whole.",), "Whole."),
        ("/b", ("One.", "Two"), "One at /b"),
    ]
    assert (found.field, found.status, found.suggestions) == ("/b", 422, ("Whole.", "One at /b"))
    assert found.errors[1].status == 422
    assert fault_from_validation([Mistake(("a",), rule="x" * 400)]).errors[0].suggestions == ("x" * 300,)
    assert fault_from_validation([], 400).status == 400
