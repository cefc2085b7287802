"""
One trace id per failure: in the response, in the log line and on the span (P5).

It is the id of the current OpenTelemetry trace if there is one, else the id in the incoming `traceparent`, else a new
random id. OpenTelemetry is not imported here: an application that uses it has imported it already.

The `traceparent` of the request or task that is being handled is known to the code inside it (`incoming`), so that the calls
it makes and the tasks it submits belong to the same trace without OpenTelemetry, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextvars import ContextVar, Token
from os import urandom
from typing import TYPE_CHECKING, Any, TypeVar

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = [
    "add_source",
    "continued_trace",
    "current_span",
    "handling",
    "id_of",
    "incoming",
    "mark",
    "trace_id",
    "trace_id_of",
    "traceparent",
]

T = TypeVar("T")

# W3C Trace Context: version, trace id, parent id, flags. Version ff and an id of zeros are invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


_HANDLED: ContextVar[str | None] = ContextVar("amends_traceparent", default=None)
_SOURCES: list[tuple[ContextVar[Any], Callable[[Any], object]]] = []


def add_source(request: ContextVar[T | None], read: Callable[[T], object], *, first: bool = False) -> None:
    """
    Find the `traceparent` in a context variable that a module keeps anyway.

    Args:
        request: the request that is being handled, or None.
        read: returns the `traceparent` of a request.
        first: look here before the sources that were added earlier.

    """
    _SOURCES.insert(0 if first else len(_SOURCES), (request, read))


class handling:  # noqa: N801 - used as a verb
    """A context whose code belongs to a trace. A value that is no `traceparent` changes nothing."""

    __slots__ = ("_token", "_traceparent")

    def __init__(self, traceparent: object) -> None:
        known = isinstance(traceparent, str) and id_of(traceparent) is not None
        self._traceparent = traceparent if known else None
        self._token: Token[str | None] | None = None

    def __enter__(self) -> None:
        if self._traceparent is not None:
            self._token = _HANDLED.set(str(self._traceparent))

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _HANDLED.reset(self._token)


def incoming() -> str | None:
    """
    Return the `traceparent` of the request or task that is being handled, or None.

    >>> with handling("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
    ...     continued_trace()
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    found = _HANDLED.get()
    if found is None:
        for request, read in _SOURCES:
            handled = request.get()
            parent = None if handled is None else read(handled)
            if isinstance(parent, str) and id_of(parent) is not None:
                return parent
    return found


def id_of(traceparent: object) -> str | None:
    """
    Return the trace id in a `traceparent`, or None for any other value.

    >>> id_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), id_of("none")
    ('4bf92f3577b34da6a3ce929d0e0e4736', None)
    """
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found else None


def continued_trace() -> str:
    """Return the id of the trace that is being handled, or a new one."""
    return id_of(incoming()) or urandom(16).hex()


def trace_id(traceparent: str | None = None) -> str:
    """Return the trace id to use now, 32 hexadecimal digits. `traceparent` is the request's header, if it has one."""
    return trace_id_of(current_span(), traceparent)


def trace_id_of(span: Span | None, traceparent: str | None) -> str:
    """Same as `trace_id`, for a span that the caller has looked up."""
    if span is not None:
        return f"{span.get_span_context().trace_id:032x}"
    # A server passes its request's own header, so its request is not asked again.
    return id_of(traceparent) or id_of(_HANDLED.get()) or urandom(16).hex()


def traceparent(trace: str) -> str:
    """
    Return the `traceparent` header of one outgoing request (W3C Trace Context).

    Within an OpenTelemetry span it names that span. Otherwise it names the given trace and a new span, marked as sampled:
    a service that records traces then records this one.

    Args:
        trace: the trace id of the operation, 32 hexadecimal digits.

    """
    span = current_span()
    if span is None:
        # An id of zeros is invalid.
        return f"00-{trace}-{int.from_bytes(urandom(8)) or 1:016x}-01"
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def current_span() -> Span | None:
    """Return the current OpenTelemetry span, or None if there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span: Span = trace.get_current_span()
    return span if span.get_span_context().is_valid else None


def mark(span: Span, fault: Fault, status: int, message: str) -> None:
    """
    Set the error attributes of a span (T10).

    Args:
        span: the span of the failed request.
        fault: the failure; its code and recovery class are written.
        status: the HTTP status of the response.
        message: the standard message of the code. The fault's own message is not written: it may quote an exception.

    """
    if not span.is_recording():
        return
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
