"""
A failure as an MCP answer: an isError result for tools, a JSON-RPC error for everything else (A1).

It is logged and the current span is marked with the trace id that the caller gets too, where nobody expected it.
"""

from __future__ import annotations

import logging
from typing import Any

from msgspec.structs import replace

from amends.bindings.mcp.handler_errors import Told
from amends.carriers.layers import KEY
from amends.carriers.mcp import result
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.http import tracing
from amends.serving.adcp_error import error_object, sentence

__all__ = ["INTERNAL", "INVALID", "LOG", "TRACE", "marked", "rpc_error", "tool_result"]

LOG = logging.getLogger("amends.mcp")

TRACE = "trace_id"
"""The member of an error object that names the trace; AdCP has none of its own."""

INTERNAL, INVALID = -32603, -32602
_TEXT = 64
_NAMED = "name", "uri"


def marked(said: Told, method: str, params: Any, meta: Any) -> Fault:
    """
    The fault to write, after it was logged: with the trace id where somebody will want to look it up.

    Args:
        said: what to answer.
        method: the request's.
        params: the request's; only the name or URI in it is logged.
        meta: the request's `_meta`, which may hold a `traceparent`.

    """
    span = tracing.current_span()
    fault = said.fault
    if span is not None:
        tracing.mark(span, fault, 500, VOCABULARY.row(fault.code).message)
    if said.expected:
        LOG.info("%s %s: %s", method, _named(params), fault.code)
        return fault
    traceparent = meta.get("traceparent") if isinstance(meta, dict) else None
    trace = tracing.trace_id(traceparent if isinstance(traceparent, str) else None, span)
    LOG.error(
        "%s %s failed with %s, told as %s [trace_id=%s]",
        method,
        _named(params),
        type(said.cause).__name__,
        fault.code,
        trace,
        exc_info=said.cause,
    )
    if fault.origin is not None:
        # A conformant upstream's own error passes as it came.
        return fault
    return replace(fault, trace_id=trace, extensions={**fault.extensions, TRACE: trace})


def _named(params: Any) -> str:
    """The tool, prompt or resource a request names: the caller's text, so it stays one short quoted word."""
    for name in _NAMED:
        value = getattr(params, name, None)
        if value is not None:
            return repr(str(value)[:_TEXT])
    return ""


def tool_result(fault: Fault, protocol: str) -> dict[str, Any]:
    """The isError result of a fault in the adcp vocabulary, in both layers (A2, A5)."""
    error = error_object(_with_trace(fault))
    parts = [error_object(_with_trace(part)) for part in fault.errors if part.vocabulary == VOCABULARY.name]
    return result(error, parts=parts or None, protocol=protocol, sentence=sentence(error))


def rpc_error(fault: Fault) -> tuple[int, str, dict[str, Any]]:
    """
    Number, message and data of a JSON-RPC error for what has no result of its own: a resource, a prompt, a listing.

    S4's three numbers say that nothing ran, so they are not for a handler's failure.
    """
    number = INVALID if fault.recovery is Recovery.CORRECTABLE else INTERNAL
    return number, VOCABULARY.row(fault.code).message, {KEY: error_object(_with_trace(fault))}


def _with_trace(fault: Fault) -> Fault:
    """An author's own trace id goes along; AdCP has no member for it, and keeps those it does not know."""
    if fault.trace_id is None or TRACE in fault.extensions or fault.origin is not None:
        return fault
    return replace(fault, extensions={**fault.extensions, TRACE: fault.trace_id})
