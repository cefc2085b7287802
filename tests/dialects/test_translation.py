"""Translating a fault into another vocabulary, and the fields that are lost."""

import pytest

from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.dialects import NAMES, decode, dialect
from amends.dialects.translation import losses, translate
from amends.errors import TimeoutError as AmendsTimeoutError


def test_translate_returns_the_fault_and_the_losses():
    """Design 4 and 9: the result is the translated fault and the names of the lost fields."""
    translated, lost = translate(Fault(code="NOT_FOUND", retry_after=5, title="t", trace_id="x"), "arcp")
    assert (translated.code, translated.vocabulary, translated.recovery) == (
        "INVALID_REQUEST",
        "arcp",
        Recovery.CORRECTABLE,
    )
    assert {"retry_after", "title", "trace_id"} <= lost
    assert "code" not in lost


@pytest.mark.parametrize("name", [*NAMES, "cli", "http"])
def test_losses_of_a_fault_without_optional_fields(name):
    """`losses` returns only fields that are in LOSSES of the dialect."""
    fault = Fault(code="TIMEOUT", vocabulary="arcp")
    assert losses(fault, name) <= dialect(name).LOSSES


def test_redaction_is_not_a_loss():
    """A field that is only redacted (A19) is not in `losses`."""
    fault = Fault(code="TIMEOUT", vocabulary="adcp", message="10.0.0.5:5432 refused", retry_after=2)
    assert "message" not in losses(fault, "adcp")
    assert "message" not in losses(Fault(code="X", message="10.0.0.5:5432", origin=Origin("task")), "problem")


def test_nested_faults_that_are_kept_are_not_lost():
    """Nested faults count as lost only if more than their origin changes."""
    fault = Fault(code="CONFLICT", errors=(Fault(code="CONFLICT"), Fault(code="CONFLICT")))
    translated, lost = translate(fault, "http")
    assert lost == frozenset()
    assert "errors" not in losses(translated, "adcp")
    assert "errors" in losses(translated, "task")


def test_losses_of_nested_faults_are_reported():
    """A field that a nested fault loses is in `losses`."""
    part = Fault(code="TIMEOUT", vocabulary="http", executed="no")
    assert losses(Fault(code="CONFLICT", vocabulary="http", errors=(part,)), "problem") == frozenset()
    # A wait of less than a millisecond is rounded up.
    part = Fault(code="TIMEOUT", vocabulary="http", retry_after=0.0001)
    assert losses(Fault(code="CONFLICT", vocabulary="http", errors=(part,)), "problem") == {"retry_after"}


def test_what_a_too_large_error_loses():
    """A7: an AdCP error of more than 4096 bytes is cut when it is written; what is cut is lost."""
    fault = Fault(code="X", vocabulary="adcp", message="a" * 5000, details={"a": 1})
    assert losses(fault, "adcp") == {"message", "details"}


@pytest.mark.parametrize("function", [translate, losses])
def test_an_unknown_target_raises(function):
    """An unknown vocabulary or dialect raises LookupError."""
    with pytest.raises(LookupError):
        function(Fault(code="X"), "nowhere")


def test_an_exception_is_not_a_fault():
    """translate raises TypeError for a FaultError."""
    with pytest.raises(TypeError):
        translate(AmendsTimeoutError("late"), "adcp")


@pytest.mark.parametrize("to", ["cli", "task", "adcp", "arcp"])
def test_a_missing_message_is_filled_with_the_codes(to):
    """Only S1 allows an error without a message; other targets get the message of the original code, nested too."""
    fault = decode({"status": 429, "errors": [{"status": 404}]}, "problem")
    translated, _ = translate(fault, to=to)
    assert (fault.message, translated.message) == ("", "Too many requests")
    assert translated.errors[0].message == "The thing asked for does not exist"
    assert translate(fault, to="http")[0].message == ""
