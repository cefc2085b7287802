"""Saying a fault in other words, and what is lost there."""

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
    """Where a field is empty nothing is lost."""
    fault = Fault(code="TIMEOUT", vocabulary="arcp")
    assert losses(fault, name) <= dialect(name).LOSSES


def test_redaction_is_no_loss_of_the_dialect():
    """What is taken out of our own texts is another matter (A19)."""
    fault = Fault(code="TIMEOUT", vocabulary="adcp", message="10.0.0.5:5432 refused", retry_after=2)
    assert "message" not in losses(fault, "adcp")
    assert "message" not in losses(Fault(code="X", message="10.0.0.5:5432", origin=Origin("task")), "problem")


def test_parts_that_come_back_are_not_lost():
    """Where a part was found differs after a round trip; what it says does not."""
    fault = Fault(code="CONFLICT", errors=(Fault(code="CONFLICT"), Fault(code="CONFLICT")))
    told, lost = translate(fault, "http")
    assert lost == frozenset()
    assert "errors" in losses(told, "adcp")


def test_what_a_part_loses_is_named():
    """A loss below is a loss."""
    part = Fault(code="TIMEOUT", vocabulary="http", executed="no")
    assert losses(Fault(code="CONFLICT", vocabulary="http", errors=(part,)), "problem") == frozenset()
    # A wait of less than a millisecond is rounded up.
    part = Fault(code="TIMEOUT", vocabulary="http", retry_after=0.0001)
    assert losses(Fault(code="CONFLICT", vocabulary="http", errors=(part,)), "problem") == {"retry_after"}


def test_what_cannot_be_carried_at_all_is_lost_whole():
    """A7: an error beyond 4096 bytes is none."""
    fault = Fault(code="X", vocabulary="adcp", message="a" * 5000, details={"a": 1})
    assert {"code", "message", "details", "recovery"} <= losses(fault, "adcp")


@pytest.mark.parametrize("function", [translate, losses])
def test_unknown_words_are_lookup_errors(function):
    """Whose mistake it is is in the type: this one is ours."""
    with pytest.raises(LookupError):
        function(Fault(code="X"), "nowhere")


def test_an_exception_is_not_a_fault():
    """The message says where it keeps one; the type says whose mistake it is."""
    with pytest.raises(TypeError):
        translate(AmendsTimeoutError("late"), "adcp")


@pytest.mark.parametrize("to", ["cli", "task", "adcp", "arcp"])
def test_a_problem_without_a_detail_says_what_its_code_means(to):
    """Only S1 may say nothing; the words are those of the code that was raised, in the parts as well."""
    fault = decode({"status": 429, "errors": [{"status": 404}]}, "problem")
    told, _ = translate(fault, to=to)
    assert (fault.message, told.message) == ("", "Too many requests")
    assert told.errors[0].message == "The thing asked for does not exist"
    assert translate(fault, to="http")[0].message == ""
