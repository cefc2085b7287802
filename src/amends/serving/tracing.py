"""
One trace id per failure: in the response, in the log line and on the span (P5).

It is the id of the current OpenTelemetry trace if there is one, else the id in the incoming `traceparent`, else a new
random id. OpenTelemetry is not imported here: an application that uses it has imported it already.

What the caller of the present request sent is known to the code inside it (`amends.recovery.incoming`), so that the calls it
makes and the tasks it submits belong to the same trace without OpenTelemetry, too.
"""

from __future__ import annotations

import sys
from os import urandom
from typing import TYPE_CHECKING

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.text import strip, truncate
from amends.dialects.outgoing import outgoing
from amends.logs import logger
from amends.recovery.incoming import (
    add_source,
    continued_trace,
    current_span,
    handled_trace,
    handling,
    id_of,
    incoming,
    left,
    traceparent,
)

_log = logger("amends.http")

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = [
    "add_source",
    "continued_trace",
    "current_span",
    "further_traces",
    "handling",
    "id_of",
    "incoming",
    "left",
    "mark",
    "trace_id",
    "trace_id_of",
    "traceparent",
]


def trace_id(traceparent: str | None = None) -> str:
    """Return the trace id to use now, 32 hexadecimal digits. `traceparent` is the request's header, if it has one."""
    return trace_id_of(current_span(), traceparent)


def trace_id_of(span: Span | None, traceparent: str | None) -> str:
    """
    Same as `trace_id`, for a span that the caller has looked up.

    The caller's id comes first: it is the one that the caller knows. A server whose span begins a trace of its own logs both.
    """
    # A server passes its request's own header, so its request is not asked again.
    known = id_of(traceparent) or handled_trace()
    if known is not None:
        return known
    return urandom(16).hex() if span is None else f"{span.get_span_context().trace_id:032x}"


def further_traces(trace: str | None, upstream: str | None, span: Span | None) -> str:
    """
    Return what a log line adds to its trace id: other ids, of the service below and of the own span; usually nothing.

    >>> further_traces("4bf92f3577b34da6a3ce929d0e0e4736", None, None)
    ''
    """
    found = ""
    if upstream is not None and upstream != trace:
        found = f" [upstream_trace_id={truncate(strip(upstream), 128)}]"
    if span is not None and (own := f"{span.get_span_context().trace_id:032x}") not in {trace, upstream}:
        found += f" [span_trace_id={own}]"
    return found


def mark(span: Span, fault: Fault, status: int, message: str) -> None:
    """
    Set the error attributes of a span (T10).

    Args:
        span: the span of the failed request.
        fault: the failure; its code and recovery class are written.
        status: the HTTP status of the response.
        message: the standard message of the code. The fault's own message is not written: it may quote an exception.

    """
    try:
        if span.is_recording():
            _mark(span, fault, status, message)
    except Exception as error:  # noqa: BLE001 - the span may be any library's; telemetry that fails loses no answer
        _log.warning("the span of a failed request could not be marked: %s", type(error).__name__)


def _mark(span: Span, fault: Fault, status: int, message: str) -> None:
    code = outgoing(fault, "telemetry").code
    span.set_attributes(
        {
            "error": True,
            "error.type": code,
            "error.code": code,
            "error.message": message,
            "error.recoverable": fault.recovery is not Recovery.TERMINAL,
        }
    )
    if status >= 500:
        # OpenTelemetry's HTTP conventions: only a server's own failures set the status of its span.
        span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
