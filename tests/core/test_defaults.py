"""What a user may pass to Fault, and what raises."""

from enum import StrEnum
from http import HTTPStatus

import msgspec
import pytest

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY as HTTP


def test_enum_fields_take_strings_or_members():
    """recovery, executed and actor take their spelling on the wire."""
    fault = Fault(code="X", recovery="terminal", executed="yes", actor="provider")
    assert (fault.recovery, fault.executed, fault.actor) == (
        Recovery.TERMINAL,
        Executed.YES,
        Actor.PROVIDER,
    )
    assert Fault(code="X", recovery=Recovery.TERMINAL, executed=Executed.YES, actor=Actor.PROVIDER) == fault


@pytest.mark.parametrize("name", ["recovery", "executed", "actor"])
@pytest.mark.parametrize("value", ["sometimes", "", 5, True, []])
def test_other_values_of_enum_fields_raise(name, value):
    """The message lists the possible values."""
    with pytest.raises((TypeError, ValueError)):
        Fault(code="X", **{name: value})


@pytest.mark.parametrize("code", ["", None, 5, b"X", ["X"]])
def test_a_code_is_a_non_empty_string(code):
    """A fault needs a code."""
    with pytest.raises(ValueError):
        Fault(code=code)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message", None),
        ("message", 5),
        ("vocabulary", 5),
        ("retry_after", "5"),
        ("retry_after", True),
        ("strategy", 5),
        ("max_retries", 1.5),
        ("max_retries", True),
        ("field", ["a"]),
        ("details", []),
        ("trace_id", 5),
        ("doc_uri", b"x"),
        ("type", 5),
        ("title", 5),
        ("status", "429"),
        ("instance", 5),
        ("intent", "x"),
        ("user_message", 5),
        ("attempt", "1"),
        ("max_attempts", 2.0),
        ("extensions", None),
        ("extensions", []),
        ("suggestions", [1]),
        ("suggestions", 5),
        ("errors", ["x"]),
        ("errors", [{"code": "X"}]),
    ],
)
def test_a_value_of_the_wrong_type_raises(name, value):
    """P8: a Fault never holds a member of the wrong type, so none is written."""
    with pytest.raises(TypeError):
        Fault(code="X", **{name: value})


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_a_wait_is_finite(wait):
    """A10: a wait that is not a finite number raises."""
    with pytest.raises(ValueError):
        Fault(code="X", retry_after=wait)


@pytest.mark.parametrize("wait", [0, -5, 0.25, 86400])
def test_any_finite_wait_is_kept(wait):
    """A9: bounds apply when recovery acts, not when a fault is made."""
    assert Fault(code="X", retry_after=wait).retry_after == wait


def test_a_lone_string_is_one_suggestion():
    """A string is one suggestion and not a sequence of letters."""
    assert Fault(code="X", suggestions="Wait").suggestions == ("Wait",)


def test_suggestions_and_parts_may_come_from_anything_iterable():
    """Lists and generators are kept as tuples, in order."""
    child = Fault(code="Y")
    fault = Fault(code="X", suggestions=(text for text in ("a", "b")), errors=iter([child]))
    assert (fault.suggestions, fault.errors) == (("a", "b"), (child,))


def test_the_status_fills_an_unknown_http_code():
    """S1 has no codes, so an unknown code takes the row of its status."""
    assert Fault(code="QUOTA", vocabulary="http", status=429).recovery is Recovery.TRANSIENT
    assert Fault(code="QUOTA", vocabulary="http", status=499).recovery is HTTP.status_row(400).recovery


def test_an_unknown_vocabulary_is_filled_as_everyday():
    """A fault of an unregistered vocabulary takes the everyday row."""
    fault = Fault(code="TIMEOUT", vocabulary="unregistered")
    assert (fault.vocabulary, fault.recovery) == ("unregistered", Recovery.TRANSIENT)


class Text(str):
    """A str subclass, as markupsafe.Markup is one."""

    __slots__ = ()


class Seconds(float):
    """A float subclass, as numpy.float64 is one."""


class Colour(StrEnum):
    """An enum of the user's own."""

    RED = "RED"


def test_subclasses_are_stored_as_the_plain_value():
    """A fault can always be encoded, whatever types the user passed."""
    fault = Fault(
        code=Colour.RED,
        message=Text("<b>no</b>"),
        status=HTTPStatus.NOT_FOUND,
        retry_after=Seconds(1.5),
        suggestions=(Text("Wait"),),
        max_retries=HTTPStatus.OK,
    )
    values = (
        fault.code,
        fault.message,
        fault.status,
        fault.retry_after,
        *fault.suggestions,
        fault.max_retries,
    )
    assert values == ("RED", "<b>no</b>", 404, 1.5, "Wait", 200)
    assert [type(value) for value in values] == [str, str, int, float, str, int]
    assert msgspec.json.encode(fault)
