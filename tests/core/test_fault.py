"""Fault: a frozen value that can be pickled, with defaults from its code."""

import copy
import pickle

import msgspec
import pytest
from hypothesis import given

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin, check_fault
from tests.strategies import faults, often

FIELDS = (
    *("code", "message", "recovery", "vocabulary", "retry_after", "strategy", "max_retries", "field"),
    *("suggestions", "details", "errors", "trace_id", "doc_uri", "type", "title", "status", "instance"),
    *("intent", "user_message", "actor", "attempt", "max_attempts", "executed", "extensions", "origin"),
)


def test_the_fields_are_those_of_the_design():
    """Design 3: the fields are those of the design, in its order, then those added later."""
    assert Fault.__struct_fields__ == (*FIELDS, "fatal", "raised", "in_doubt")


def test_a_code_alone_is_enough():
    """Design 3: recovery, executed and actor default to the row of vocabulary and code."""
    fault = Fault(code="RATE_LIMITED")
    assert (fault.vocabulary, fault.recovery) == ("everyday", Recovery.TRANSIENT)
    assert (fault.executed, fault.actor) == (Executed.NO, Actor.CALLER)
    assert (fault.suggestions, fault.errors, fault.extensions, fault.origin) == ((), (), {}, None)


def test_defaults_depend_on_the_vocabulary():
    """Design 3: CONFLICT is transient in AdCP and not retryable on a command line."""
    assert Fault(code="CONFLICT", vocabulary="adcp").recovery is Recovery.TRANSIENT
    assert Fault(code="CONFLICT", vocabulary="cli").recovery is Recovery.CORRECTABLE
    assert Fault(code="INTERNAL_ERROR", vocabulary="task").recovery is Recovery.UNCERTAIN
    assert Fault(code="INTERNAL_ERROR", vocabulary="arcp").recovery is Recovery.TRANSIENT


def test_it_is_frozen():
    """Assigning a field raises."""
    with pytest.raises(AttributeError):
        Fault(code="TIMEOUT").code = "CONFLICT"


def test_extensions_are_not_shared():
    """Two faults without extensions do not share a dictionary."""
    first, second = Fault(code="A"), Fault(code="B")
    assert first.extensions is not second.extensions


@pytest.mark.parametrize(
    ("recovery", "expected"),
    [("transient", True), ("uncertain", True), ("correctable", False), ("terminal", False)],
)
def test_retryable(recovery, expected):
    """M2: transient and uncertain faults are retryable."""
    assert Fault(code="X", recovery=recovery).retryable is expected


@often
@given(faults("problem"))
def test_copies_are_equal(fault):
    """Design 3: a fault is equal after pickle, copy and JSON."""
    assert pickle.loads(pickle.dumps(fault)) == fault
    assert copy.copy(fault) == copy.deepcopy(fault) == fault
    assert msgspec.json.decode(msgspec.json.encode(fault), type=Fault) == fault


def test_json_without_the_looked_up_fields_is_completed():
    """A fault read from JSON gets the same defaults as one created in Python."""
    fault = msgspec.json.decode(b'{"code": "TIMEOUT", "vocabulary": "arcp"}', type=Fault)
    assert (fault.recovery, fault.executed) == (Recovery.TRANSIENT, Executed.MAYBE)


def test_origin():
    """Design 3: an origin has dialect, path, layer and the sender's conformance gap, and is compared by value."""
    assert Origin("adcp", "payload").layer == "application"
    assert Origin("adcp") == Origin("adcp", None, "application", None)
    assert Origin("adcp", gap="x") != Origin("adcp")


@pytest.mark.parametrize(
    ("members", "error", "text"),
    [
        ({"code": ""}, ValueError, "code is a non-empty string"),
        ({"code": 7}, ValueError, "code is a non-empty string, not 7"),
        ({"message": None}, TypeError, "message is str, not NoneType"),
        ({"vocabulary": None}, TypeError, "vocabulary is str"),
        ({"extensions": None}, TypeError, "extensions is dict"),
        ({"status": "500"}, TypeError, "status is int, not str"),
        ({"status": True}, TypeError, "status is int, not bool"),
        ({"attempt": 1.5}, TypeError, "attempt is int, not float"),
        ({"details": []}, TypeError, "details is dict, not list"),
        ({"fatal": 1}, TypeError, "fatal is bool, not int"),
        ({"recovery": "never"}, ValueError, "recovery is one of transient, .*, not 'never'"),
        ({"executed": "never"}, ValueError, "executed is one of"),
        ({"actor": "never"}, ValueError, "actor is one of"),
        ({"retry_after": "5"}, TypeError, "retry_after"),
        ({"retry_after": float("inf")}, ValueError, "retry_after is a finite number"),
        ({"suggestions": [7]}, TypeError, "suggestions are strings, not int"),
        ({"errors": ["x"]}, TypeError, "errors are Faults, not str"),
    ],
)
def test_wrong_values(members, error, text):
    """The message says what is expected. A fault with an origin is checked if a field from the table is no member."""
    with pytest.raises(error, match=text):
        Fault(**{"code": "TIMEOUT", **members})


def test_values_are_converted():
    """Enum members from their values, texts and numbers of subclasses to plain ones, one suggestion to a tuple."""

    class Text(str):
        __slots__ = ()

    fault = Fault(
        code=Text("TIMEOUT"),
        recovery="terminal",
        executed="no",
        actor="user",
        retry_after=3,
        suggestions=Text("a"),
        status=None,
    )
    assert (fault.recovery, fault.executed, fault.actor) == (Recovery.TERMINAL, Executed.NO, Actor.USER)
    assert (type(fault.code), fault.code, fault.retry_after) == (str, "TIMEOUT", 3)
    assert (fault.suggestions, type(fault.suggestions[0])) == (("a",), str)
    assert Fault(code="A", suggestions=["a", "b"]).suggestions == ("a", "b")
    assert Fault(code="A", errors=[fault]).errors == (fault,)


@pytest.mark.parametrize("name", ["recovery", "executed", "actor"])
def test_a_received_fault_is_completed_too(name):
    """Each field of the table that a decoder left out, or wrote as text, is set."""
    whole = Fault(code="RATE_LIMITED")
    given = {each: getattr(whole, each) for each in ("recovery", "executed", "actor")}
    for value in (None, getattr(whole, name).value):
        received = Fault(code="RATE_LIMITED", origin=Origin("adcp"), **{**given, name: value})
        assert getattr(received, name) is getattr(whole, name)
    Fault(code="RATE_LIMITED", origin=Origin("adcp"), **given)


def test_an_exception_in_place_of_a_fault():
    """The message says where its fault is."""
    check_fault("decide", Fault(code="TIMEOUT"))
    with pytest.raises(
        TypeError, match=r"decide takes a Fault, not KeyError; an exception carries one as \.fault"
    ):
        check_fault("decide", KeyError("x"))


def test_faults_are_fatal_unless_they_are_remarks():
    """By default."""
    assert Fault(code="TIMEOUT").fatal is True
    assert Fault(code="TIMEOUT", fatal=False).fatal is False
