"""`report` writes one log line per failure, sets the span's attributes, and adds the trace id."""

import logging

from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from amends import Fault, FaultError
from amends.core.fault import Origin
from amends.errors import ConflictError, NotFoundError
from amends.serving.adcp_error import error_object
from amends.serving.reporting import report
from amends.serving.server_errors import Failure, classify

LOG = logging.getLogger("amends.test")
ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{ID}-00f067aa0ba902b7-01"


def failure(*, expected, **more):
    fault = Fault(code="SERVICE_UNAVAILABLE", message="Closed", vocabulary="adcp", **more)
    return Failure(fault, ValueError("hunter2"), expected=expected)


def test_an_expected_failure_is_logged_at_info(caplog):
    """Without a traceback; the fault gets the trace id of the log line, as any other does."""
    caplog.set_level(logging.INFO, "amends.test")
    given = failure(expected=True)
    assert report(given, log=LOG, what="tools/call 'buy'", traceparent=TRACEPARENT).trace_id == ID
    (record,) = caplog.records
    assert record.getMessage() == f"tools/call 'buy': SERVICE_UNAVAILABLE [trace_id={ID}]"
    assert (record.levelno, record.exc_info) == (logging.INFO, None)
    assert (record.trace_id, record.code) == (ID, "SERVICE_UNAVAILABLE")


def test_any_other_failure_is_logged_with_its_traceback(caplog):
    """The fault gets the trace id of the log line."""
    given = failure(expected=False)
    assert report(given, log=LOG, what="a task", traceparent=TRACEPARENT).trace_id == ID
    (record,) = caplog.records
    assert (record.levelno, record.exc_info[1]) == (logging.ERROR, given.cause)


def test_an_upstreams_error_is_not_changed():
    """It has its origin's trace id, if any; `raised`, from which the record is made, has ours."""
    given = failure(expected=False, origin=Origin("adcp"))
    sent = report(given, log=LOG, what="a task", traceparent=TRACEPARENT)
    assert replace(sent, raised=None) == given.fault
    assert sent.raised.trace_id == ID


def test_the_id_that_an_upstream_gave_is_logged(caplog):
    """It is the one that the caller of a relayed error gets. It is a stranger's text, so it is stripped and cut."""
    caplog.set_level(logging.INFO, "amends.test")
    for expected in (True, False):
        given = failure(expected=expected, origin=Origin("adcp"), trace_id="abc\n\x1b[31m" + "x" * 500)
        report(given, log=LOG, what="a task", traceparent=TRACEPARENT)
    for record in caplog.records:
        assert f"[trace_id={ID}] [upstream_trace_id=abc" in record.getMessage()
        assert len(record.getMessage()) < 300
        assert "\n" not in record.getMessage()
    caplog.clear()
    report(failure(expected=True, trace_id=ID), log=LOG, what="a task", traceparent=TRACEPARENT)
    assert "upstream" not in caplog.text


def test_the_current_span_has_the_code(caplog):
    """T10: the standard message of the code, never the text of the exception or the fault."""
    span = TracerProvider().get_tracer("t").start_span("s")
    with trace.use_span(span):
        fault = report(failure(expected=False), log=LOG, what="a task", traceparent=None)
    assert fault.trace_id == f"{span.get_span_context().trace_id:032x}"
    assert span.attributes["error.type"] == "SERVICE_UNAVAILABLE"
    assert "hunter2" not in str(span.attributes)
    assert "Closed" not in str(span.attributes)


def test_the_code_that_was_raised_is_logged(caplog):
    """M5: AdCP's errors do not say it, so the log does; also of a code that no table has."""
    caplog.set_level(logging.INFO, "amends.test")
    for error, codes in (
        (NotFoundError("No such order"), "REFERENCE_NOT_FOUND (NOT_FOUND)"),
        (FaultError("Gone", code="SOLD_OUT_NOW", recovery="terminal"), "CONFIGURATION_ERROR (SOLD_OUT_NOW)"),
        (ConflictError("It changed"), "CONFLICT"),
    ):
        report(classify(error), log=LOG, what="a task", traceparent=TRACEPARENT)
        assert caplog.records[-1].getMessage() == f"a task: {codes} [trace_id={ID}]"


def test_the_suggestion_of_a_class():
    """A caller in another process cannot look it up."""

    class NoSeats(FaultError):
        """No seats are left."""

        code = "REPORTING_NO_SEATS"
        recovery = "correctable"
        suggestion = "Choose another train"

    class NoBeds(FaultError):
        """No beds are left."""

        code = "REPORTING_NO_BEDS"
        recovery = "correctable"

    assert error_object(classify(NoSeats()).fault)["suggestion"] == "Choose another train"
    assert error_object(classify(NoSeats(suggestions=["Wait"])).fault)["suggestion"] == "Wait"
    assert "suggestion" not in error_object(classify(NoBeds()).fault)
