"""Fault: a frozen value that can be pickled, with defaults from its code."""

import copy
import pickle

import msgspec
import pytest
from hypothesis import given

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from tests.strategies import faults, often

FIELDS = (
    *("code", "message", "recovery", "vocabulary", "retry_after", "strategy", "max_retries", "field"),
    *("suggestions", "details", "errors", "trace_id", "doc_uri", "type", "title", "status", "instance"),
    *("intent", "user_message", "actor", "attempt", "max_attempts", "executed", "extensions", "origin"),
)


def test_the_fields_are_those_of_the_design():
    """Design 3: the fields are those of the design, in its order, then those added later."""
    assert Fault.__struct_fields__ == (*FIELDS, "fatal")


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
