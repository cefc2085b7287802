"""What may leave: redaction of what we say ourselves, warnings where details are promised."""

import logging

from amends.core.fault import Fault
from amends.core.redaction import URL_MEMBERS
from amends.dialects.outgoing import checked, redacted, warned

LEAK = "connect to 10.0.0.5:5432 failed"


def test_nothing_to_take_out_is_the_same_fault():
    """A fault without free texts is handed on as it is."""
    fault = Fault(code="TIMEOUT", message="It took too long")
    assert redacted(fault) is fault


def test_every_free_text_is_looked_at():
    """A19: message, title, what users are told, suggestions, details, extensions, and the parts."""
    fault = Fault(
        code="TIMEOUT",
        message=LEAK,
        title=LEAK,
        user_message=LEAK,
        suggestions=(LEAK,),
        details={"a": [LEAK], **dict.fromkeys(sorted(URL_MEMBERS), LEAK)},
        extensions={"b": LEAK},
        errors=(Fault(code="X", message=LEAK),),
    )
    clean = redacted(fault)
    texts = (clean.message, clean.title, clean.user_message, *clean.suggestions)
    assert not any("10.0.0.5" in text for text in (*texts, clean.details["a"][0], clean.extensions["b"]))
    assert "10.0.0.5" not in clean.errors[0].message
    assert all(clean.details[name] == LEAK for name in URL_MEMBERS)
    assert fault.message == LEAK, "the fault itself is never changed"


def test_a_warning_names_kinds_and_never_texts(caplog):
    """Design 6: logged, left, and the log does not leak instead."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        warned(Fault(code="TIMEOUT", suggestions=(LEAK,), details={"a": LEAK}), "task")
        warned(Fault(code="TIMEOUT", details={"a": object()}), "task")
        warned(Fault(code="TIMEOUT"), "task")
    assert [record.args[:2] for record in caplog.records] == [("task", "TIMEOUT")]
    assert "10.0.0.5" not in caplog.text


def test_details_that_are_not_as_recommended_are_logged(caplog):
    """A14: checked on the producing side, by kind and never by refusing; nothing to say where there is nothing."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        checked(Fault(code="RATE_LIMITED", vocabulary="adcp"))
        checked(Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": 100}))
        assert not caplog.records
        checked(Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": "many"}))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
