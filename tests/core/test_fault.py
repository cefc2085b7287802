"""The Fault as a value: frozen, compared by value, serializable, complete with a code alone."""

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
    """Design 3: the union of the five dialects' members, in the order of the design."""
    assert Fault.__struct_fields__ == FIELDS


def test_a_code_alone_is_a_whole_fault():
    """Design 3: recovery, executed and actor default to those of the row of (vocabulary, code)."""
    fault = Fault(code="RATE_LIMITED")
    assert (fault.vocabulary, fault.recovery) == ("everyday", Recovery.TRANSIENT)
    assert (fault.executed, fault.actor) == (Executed.NO, Actor.CALLER)
    assert (fault.suggestions, fault.errors, fault.extensions, fault.origin) == ((), (), {}, None)


def test_the_meaning_of_a_code_depends_on_its_vocabulary():
    """Design 3: CONFLICT is transient in AdCP and not retryable on a command line."""
    assert Fault(code="CONFLICT", vocabulary="adcp").recovery is Recovery.TRANSIENT
    assert Fault(code="CONFLICT", vocabulary="cli").recovery is Recovery.CORRECTABLE
    assert Fault(code="INTERNAL_ERROR", vocabulary="task").recovery is Recovery.UNCERTAIN
    assert Fault(code="INTERNAL_ERROR", vocabulary="arcp").recovery is Recovery.TRANSIENT


def test_it_is_frozen():
    """Assigning to a field raises."""
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
def test_retryable_is_transient_or_uncertain(recovery, expected):
    """M2, first column."""
    assert Fault(code="X", recovery=recovery).retryable is expected


@often
@given(faults("problem"))
def test_it_survives_pickling_copying_and_json(fault):
    """Design 3: compared by value, picklable; copies and JSON give an equal value."""
    assert pickle.loads(pickle.dumps(fault)) == fault
    assert copy.copy(fault) == copy.deepcopy(fault) == fault
    assert msgspec.json.decode(msgspec.json.encode(fault), type=Fault) == fault


def test_json_without_the_looked_up_fields_is_completed():
    """A fault decoded from JSON gets its defaults from the table, like one written by hand."""
    fault = msgspec.json.decode(b'{"code": "TIMEOUT", "vocabulary": "arcp"}', type=Fault)
    assert (fault.recovery, fault.executed) == (Recovery.TRANSIENT, Executed.MAYBE)


def test_an_origin_has_dialect_path_layer_and_gap():
    """Design 3: `gap` says what a conformant sender would have done."""
    assert Origin("adcp", "payload").layer == "application"
    assert Origin("adcp") == Origin("adcp", None, "application", None)
    assert Origin("adcp", gap="x") != Origin("adcp")
