"""
What a client got, as the typed error of it.

In this order: an AdCP error in the result or in the JSON-RPC error's `data` (A6); what was witnessed on the HTTP below;
what the SDK's numbers mean. Faults read here have an `origin`, so that passing one on translates what is not conformant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, PARSE_ERROR, URL_ELICITATION_REQUIRED, TextContent
from msgspec.structs import replace
from pydantic import ValidationError

from amends.bindings.mcp.http_recorder import failure_in, transport_fault
from amends.bindings.mcp.responses import TRACE
from amends.carriers.jsonrpc import read as read_rpc
from amends.carriers.layers import KEY
from amends.carriers.mcp import read as read_result
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabulary import EVERYDAY, row_for
from amends.dialects import adcp
from amends.errors.base import FaultError

__all__ = ["error_of", "failed_result", "leaf", "not_connected", "untouched"]

_TEXT = 4096
_PARTS = 100
_DEPTH = 16
_PLAIN = Origin("mcp", "content")

# Said by the SDK's client itself of an answer it could not read, so the call may have run; a server that means them
# says that nothing did, and then the decision is only more careful than it has to be.
_UNREADABLE = frozenset({PARSE_ERROR, INVALID_REQUEST})


def untouched(exc: BaseException) -> bool:
    """What is no failure of the call: a person has to open a page first, and the application handles that."""
    return isinstance(exc, MCPError) and exc.code == URL_ELICITATION_REQUIRED


def failed_result(result: Any) -> FaultError:
    """The typed error of a CallToolResult that failed, with the result as `.result`."""
    content = [
        {"type": "text", "text": item.text} for item in result.content if isinstance(item, TextContent)
    ]
    structured = result.structured_content
    seen = read_result({"isError": True, "structuredContent": structured, "content": content}).fault
    if seen is None:
        text = content[0]["text"][:_TEXT] if content else ""
        seen = Fault(code="INTERNAL_ERROR", message=text, origin=_PLAIN)
    else:
        seen = _traced(_with_parts(seen, structured))
    error = FaultError.from_fault(seen)
    error.result = result  # type: ignore[attr-defined]
    return error


def _with_parts(fault: Fault, structured: Any) -> Fault:
    """The failures of several upstreams, where the payload layer tells them (A18)."""
    errors = structured.get("errors") if isinstance(structured, dict) else None
    if not isinstance(errors, list) or not errors or errors == [structured.get(KEY)]:
        return fault
    parts = tuple(part for each in errors[:_PARTS] if (part := adcp.decode(each)) is not None)
    return replace(fault, errors=parts) if len(parts) > 1 else fault


def _traced(fault: Fault) -> Fault:
    trace = fault.extensions.get(TRACE)
    return replace(fault, trace_id=trace) if isinstance(trace, str) and len(trace) <= 128 else fault


def error_of(exc: BaseException) -> tuple[FaultError, bool]:
    """
    The typed error of an exception that a call ended with, and whether the connection has to be made anew.

    A FaultError is itself.
    """
    exc = leaf(exc)
    if isinstance(exc, FaultError):
        return exc, False
    fault, again = _fault(exc)
    if _ran(exc):
        fault = replace(fault, recovery=Recovery.TERMINAL, executed=Executed.YES)
    error = FaultError.from_fault(_traced(fault))
    error.__cause__ = exc
    return error, again


def _ran(exc: BaseException) -> bool:
    """
    Whether the tool has run, and the client failed while it looked at the result.

    The SDK may ask for the listing then, and whatever that fails with is not the call's own failure.
    """
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "validate_tool_result":
            return True
        trace = trace.tb_next
    return False


def leaf(exc: BaseException) -> BaseException:
    """What the task groups of a transport failed with: the answer among it, or the first."""
    if not isinstance(exc, BaseExceptionGroup):
        return exc
    found = list(_leaves(exc, _DEPTH))[:_PARTS]
    answers = [each for each in found if isinstance(each, MCPError | FaultError)]
    return (answers or found)[0]


def _leaves(exc: BaseException, depth: int) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup) and depth:
        for each in exc.exceptions:
            yield from _leaves(each, depth - 1)
    else:
        yield exc


def _fault(exc: BaseException) -> tuple[Fault, bool]:
    if isinstance(exc, MCPError):
        witnessed = failure_in(exc.error.data)
        if witnessed is not None:
            return witnessed
        said = read_rpc({"jsonrpc": "2.0", "error": {"code": exc.code, "data": exc.error.data}}).fault
        if said is not None:
            return said, False
        if exc.code in _UNREADABLE:
            return _lost(), False
    elif isinstance(exc, ValidationError):
        # An answer that is no MCP.
        return _lost(), False
    elif isinstance(exc, RuntimeError):
        # FastMCP's word for a session that ended, or never began.
        cause = exc.__cause__
        return _fault(leaf(cause)) if isinstance(cause, Exception) else (_lost(), False)
    return transport_fault(exc), False


def _lost() -> Fault:
    return transport_fault(ConnectionResetError())


def not_connected(exc: Exception) -> FaultError:
    """A connection that never stood: whatever happened, the call did not; and what was missing was no tool."""
    error, _ = error_of(exc)
    fault = replace(error.fault, executed=Executed.NO)
    if fault.vocabulary == EVERYDAY and fault.code not in _CONNECTING:
        # A command that is not there, or may not be run, is not there the next time either.
        lasting = isinstance(leaf(exc), FileNotFoundError | PermissionError)
        fault = replace(
            fault,
            code="SERVICE_UNAVAILABLE",
            message=row_for(EVERYDAY, "SERVICE_UNAVAILABLE").message,
            recovery=Recovery.TERMINAL if lasting else Recovery.TRANSIENT,
            details=None,
        )
    found = FaultError.from_fault(fault)
    found.__cause__ = exc
    return found


_CONNECTING = frozenset({"SERVICE_UNAVAILABLE", "TIMEOUT", "RATE_LIMITED", "UNAUTHENTICATED"})
"""What a connection may fail with; anything else is a way of not being there."""
