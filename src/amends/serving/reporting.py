"""One log line, one span and one trace id for each failure that a server answers."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from amends.core import recording
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.dialects import record
from amends.dialects.outgoing import outgoing_code
from amends.foreign.trust import record_for
from amends.recovery.incoming import left
from amends.serving.server_errors import Failure
from amends.serving.tracing import current_span, further_traces, mark, trace_id_of

__all__ = ["record_beside", "report"]


def record_beside(fault: Fault) -> dict[str, object]:
    """
    Return the record that is sent beside an AdCP error: signed for a caller with the secret of the system, brief for others.

    Without a secret in this process, every caller gets the whole record.
    """
    return {record.KEY: record_for(fault, "adcp", left().call)}


def _codes(fault: Fault) -> str:
    """Return the code that is sent, and in parentheses the one that the application raised, if AdCP has another (M5)."""
    raised = fault.raised
    if raised is None or raised.origin is not None or raised.code == fault.code:
        return fault.code
    return f"{fault.code} ({outgoing_code(raised, 'telemetry')})"


def report(failure: Failure, *, log: logging.Logger, what: str, traceparent: str | None = None) -> Fault:
    """
    Log a failure, set the error attributes of the current span, and return the fault to send.

    An expected failure is logged at INFO. Any other failure is logged at ERROR with its traceback. The returned fault has the trace
    id of that log line. An error that was received from an upstream is passed on unchanged: only its record has the id, and an id
    that the upstream gave is logged as well, so that the id that the caller gets is always in the log.

    Args:
        failure: the failure to answer.
        log: the logger of the binding.
        what: what failed, for the log line.
        traceparent: the request's W3C trace context.

    """
    fault = failure.fault
    span = current_span()
    trace = trace_id_of(span, traceparent)
    upstream = fault.trace_id if fault.trace_id not in {None, trace} else None
    if span is not None:
        mark(span, fault, 500, VOCABULARY.row(fault.code).message)
    log.log(
        logging.INFO if failure.expected else logging.ERROR,
        "%s: %s [trace_id=%s]%s",
        what,
        _codes(fault),
        trace,
        further_traces(trace, upstream, span),
        exc_info=None if failure.expected else failure.cause,
        extra={"trace_id": trace, "code": fault.code},
    )
    recording.emit(f"{log.name.rpartition('.')[2]} server", "sent", fault, name=what, trace_id=trace)
    raised = fault.raised
    if fault.origin is not None:
        # A received error stays as it is; the record names the trace.
        return replace(fault, raised=replace(fault if raised is None else raised, trace_id=trace))
    return replace(fault, raised=None if raised is None else replace(raised, trace_id=trace), trace_id=trace)
