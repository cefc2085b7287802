"""Translating a fault, and the fields lost in the target."""

import pytest

from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.dialects import NAMES, decode, dialect
from amends.dialects.translation import losses, translate
from amends.errors import TimeoutError as AmendsTimeoutError


def test_translating_gives_the_fault_and_what_is_lost():
    """Design 4 and 9: (Fault, losses)."""
    told, lost = translate(Fault(code="NOT_FOUND", retry_after=5, title="t", trace_id="x"), "arcp")
    assert (told.code, told.vocabulary, told.recovery) == ("INVALID_REQUEST", "arcp", Recovery.CORRECTABLE)
    assert {"retry_after", "title", "trace_id"} <= lost
    assert "code" not in lost


@pytest.mark.parametrize("name", [*NAMES, "cli", "http"])
def test_an_empty_fault_loses_nothing_but_what_the_rows_disagree_on(name):
    """An empty field is not lost."""
    fault = Fault(code="TIMEOUT", vocabulary="arcp")
    assert losses(fault, name) <= dialect(name).LOSSES


def test_redaction_does_not_count_as_a_loss():
    """It is not caused by the dialect (A19)."""
    fault = Fault(code="TIMEOUT", vocabulary="adcp", message="10.0.0.5:5432 refused", retry_after=2)
    assert "message" not in losses(fault, "adcp")
    assert "message" not in losses(Fault(code="X", message="10.0.0.5:5432", origin=Origin("task")), "problem")


def test_parts_that_are_restored_are_not_lost():
    """The origin of a part differs after a round trip, its other fields do not."""
    fault = Fault(code="CONFLICT", errors=(Fault(code="CONFLICT"), Fault(code="CONFLICT")))
    told, lost = translate(fault, "http")
    assert lost == frozenset()
    assert "errors" in losses(told, "adcp")


def test_the_losses_of_parts_are_included():
    """A field that a part loses is reported."""
    part = Fault(code="TIMEOUT", vocabulary="http", executed="no")
    assert losses(Fault(code="CONFLICT", vocabulary="http", errors=(part,)), "problem") == {"executed"}


def test_all_fields_of_a_fault_that_cannot_be_carried_are_lost():
    """A7: an object beyond 4096 bytes is not an error."""
    fault = Fault(code="X", vocabulary="adcp", message="a" * 5000, details={"a": 1})
    assert {"code", "message", "details", "recovery"} <= losses(fault, "adcp")


@pytest.mark.parametrize("function", [translate, losses])
def test_unknown_names_are_lookup_errors(function):
    """Of vocabularies and of dialects."""
    with pytest.raises(LookupError):
        function(Fault(code="X"), "nowhere")


def test_an_exception_is_not_a_fault():
    """The message names the attribute that has the fault."""
    with pytest.raises(TypeError):
        translate(AmendsTimeoutError("late"), "adcp")


@pytest.mark.parametrize("to", ["cli", "task", "adcp", "arcp"])
def test_a_missing_message_is_that_of_the_code(to):
    """Only S1 allows an error without a message. The message is that of the original code, also in parts."""
    fault = decode({"status": 429, "errors": [{"status": 404}]}, "problem")
    told, _ = translate(fault, to=to)
    assert (fault.message, told.message) == ("", "Too many requests")
    assert told.errors[0].message == "The thing asked for does not exist"
    assert translate(fault, to="http")[0].message == ""
