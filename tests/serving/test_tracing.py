"""Trace ids: of the current span, of the request's traceparent, or new."""

import re

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from amends import Fault
from amends.serving.tracing import current_span, further_traces, mark, trace_id

ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_the_traceparent_gives_the_id():
    """P5."""
    assert trace_id(f"00-{ID}-{PARENT}-01") == ID
    assert trace_id(f"01-{ID}-{PARENT}-01-later-versions-may-add-fields") == ID


@pytest.mark.parametrize(
    "invalid",
    [None, "", "x", f"ff-{ID}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{ID.upper()}-{PARENT}-01"],
)
def test_an_invalid_traceparent_is_ignored(invalid):
    """The id is new, and different each time."""
    ids = {trace_id(invalid), trace_id(invalid)}
    assert len(ids) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)


def test_the_callers_trace_comes_first():
    """It is the id that the caller knows. Without one the id is that of the span. A log line has both."""
    assert current_span() is None
    span = TracerProvider().get_tracer("t").start_span("s")
    own = f"{span.get_span_context().trace_id:032x}"
    with trace.use_span(span):
        assert current_span() is span
        assert trace_id(f"00-{ID}-{PARENT}-01") == ID
        assert trace_id(None) == trace_id("none") == own
    assert further_traces(ID, None, span) == f" [span_trace_id={own}]"
    assert further_traces(ID, own, span) == f" [upstream_trace_id={own}]"
    assert further_traces(own, own, span) == ""


def test_the_status_of_a_span_is_set_for_server_failures_only():
    """OpenTelemetry's HTTP conventions: a 4xx leaves the status of a server's span unset."""
    fault = Fault(code="CONFLICT", message="hunter2", vocabulary="adcp")
    for status, code in ((409, trace.StatusCode.UNSET), (500, trace.StatusCode.ERROR)):
        span = TracerProvider().get_tracer("t").start_span("s")
        mark(span, fault, status, "A conflict")
        assert span.status.status_code is code
        assert (span.attributes["error.code"], span.attributes["error.message"]) == ("CONFLICT", "A conflict")


def test_a_span_that_records_nothing_is_left_alone():
    """A sampled-out or ended span."""
    span = TracerProvider().get_tracer("t").start_span("s")
    span.end()
    mark(span, Fault(code="CONFLICT"), 500, "A conflict")
    assert "error" not in span.attributes
