"""The trace of a call: its requests continue the trace that is being handled, or begin one, in the `traceparent` header."""

from __future__ import annotations

from a2a.client.client import ClientCallContext
from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.recovery.incoming import HEADER, new_left
from amends.recovery.scope import time_left, tries_left
from amends.serving.adcp_error import TRACE
from amends.serving.tracing import continued_trace, id_of, traceparent

__all__ = ["limited", "traced", "with_trace"]

_HEADER = "traceparent"
_LONGEST = 128


def traced(
    operation: Operation, context: ClientCallContext | None
) -> tuple[Operation, ClientCallContext | None]:
    """
    Return the operation with its trace id, and a call context that sends the trace.

    A `traceparent` in the caller's context is sent as it is. The caller's context is not changed.
    """
    given = {} if context is None else context.service_parameters or {}
    own = next((value for name, value in given.items() if name.lower() == _HEADER), None)
    if own is not None:
        return replace(operation, trace_id=id_of(own) or operation.trace_id), context
    trace = continued_trace()
    members = {**given, _HEADER: traceparent(trace)}
    sent = (
        ClientCallContext(service_parameters=members)
        if context is None
        else context.model_copy(update={"service_parameters": members})
    )
    return replace(operation, trace_id=trace), sent


def limited(
    context: ClientCallContext | None, attempts: int | None
) -> tuple[ClientCallContext | None, str | None]:
    """Return a call context that states what is left for one attempt, and the id of the attempt."""
    stated, call = new_left(tries_left(attempts), time_left())
    if stated is None:
        return context, call
    given = {} if context is None else context.service_parameters or {}
    members = {**given, HEADER: stated}
    if context is None:
        return ClientCallContext(service_parameters=members), call
    return context.model_copy(update={"service_parameters": members}), call


def with_trace(fault: Fault) -> Fault:
    """Return the fault with the trace id that the agent sent in its error object."""
    trace = fault.extensions.get(TRACE) if fault.trace_id is None else None
    return replace(fault, trace_id=trace) if isinstance(trace, str) and len(trace) <= _LONGEST else fault
