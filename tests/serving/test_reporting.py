"""`report` writes one log line per failure, sets the span's attributes, and adds the trace id."""

import logging

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from amends import Fault
from amends.core.fault import Origin
from amends.serving.reporting import report
from amends.serving.server_errors import Failure

LOG = logging.getLogger("amends.test")
ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{ID}-00f067aa0ba902b7-01"


def failure(*, expected, **more):
    fault = Fault(code="SERVICE_UNAVAILABLE", message="Closed", vocabulary="adcp", **more)
    return Failure(fault, ValueError("hunter2"), expected=expected)


def test_an_expected_failure_is_logged_at_info(caplog):
    """Without a traceback; the fault is not changed."""
    caplog.set_level(logging.INFO, "amends.test")
    given = failure(expected=True)
    assert report(given, log=LOG, what="tools/call 'buy'", traceparent=TRACEPARENT) is given.fault
    (record,) = caplog.records
    assert record.getMessage() == f"tools/call 'buy': SERVICE_UNAVAILABLE [trace_id={ID}]"
    assert (record.levelno, record.exc_info) == (logging.INFO, None)


def test_any_other_failure_is_logged_with_its_traceback(caplog):
    """The fault gets the trace id of the log line."""
    given = failure(expected=False)
    assert report(given, log=LOG, what="a task", traceparent=TRACEPARENT).trace_id == ID
    (record,) = caplog.records
    assert (record.levelno, record.exc_info[1]) == (logging.ERROR, given.cause)


def test_an_upstreams_error_is_not_changed():
    """It has its origin's trace id, if any."""
    given = failure(expected=False, origin=Origin("adcp"))
    assert report(given, log=LOG, what="a task") is given.fault


def test_the_current_span_has_the_code_and_gives_the_trace_id(caplog):
    """T10: the standard message of the code, never the text of the exception or the fault."""
    span = TracerProvider().get_tracer("t").start_span("s")
    with trace.use_span(span):
        fault = report(failure(expected=False), log=LOG, what="a task", traceparent=TRACEPARENT)
    assert fault.trace_id == f"{span.get_span_context().trace_id:032x}"
    assert span.attributes["error.type"] == "SERVICE_UNAVAILABLE"
    assert "hunter2" not in str(span.attributes)
    assert "Closed" not in str(span.attributes)
