"""
The typed error of a failed call.

Its fault is read, in this order, from an AdCP error in the result or in the JSON-RPC error's `data` (A6), from what an
HttpRecorder recorded, or from the SDK's error number. The fault has an `origin`, so that `relay` translates an error
that is not conformant before it is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from amends.bindings.mcp.http_recorder import recorded_failure, transport_fault
from amends.bindings.mcp.sdk_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    MCPError,
    TextContent,
    code_of,
    member,
)
from amends.carriers.jsonrpc import read as read_rpc
from amends.carriers.mcp import read as read_result
from amends.carriers.native import FRAMED
from amends.carriers.quoted import fault_in_data, quoted_fault
from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabulary import EVERYDAY, row_for
from amends.core.wire import plain
from amends.dialects import adcp
from amends.dialects.adcp import KEY
from amends.errors.base import FaultError
from amends.proof import Claim, Proof, rests_on
from amends.serving.adcp_error import TRACE
from amends.serving.server_errors import modules_of

__all__ = ["check_text", "error_of", "failed_result", "first_error", "not_connected"]

_LONGEST_TEXT = 4096
_MAX_PARTS = 100
_DEPTH = 16
_PLAIN = Origin("mcp", "content")

# The SDK's client also uses these numbers for a response that it could not read, so the call may have run. If a server
# sent them, nothing ran, and the decision is only more careful than necessary.
_UNREADABLE = frozenset({PARSE_ERROR, INVALID_REQUEST})

_GENERAL = frozenset({-32603, -32000})
"""Numbers that say no more than that the call failed."""


def failed_result(result: CallToolResult, vendor: str | None = None) -> FaultError:
    """
    Return the typed error of a failed CallToolResult, with the result as `.result`.

    `vendor`: the service that the server's tools call, whose answers the result may quote.
    """
    content = [
        {"type": "text", "text": item.text} for item in result.content if isinstance(item, TextContent)
    ]
    structured = member(result, "structured_content", "structuredContent")
    fault = read_result(
        {"isError": True, "structuredContent": structured, "content": content, "_meta": result.meta}
    ).fault
    if fault is None:
        document = {"isError": True, "structuredContent": structured, "content": content}
        fault = quoted_fault(plain(document), FRAMED, vendor)
    if fault is None:
        text = content[0]["text"][:_LONGEST_TEXT] if content else ""
        fault = Fault(code="INTERNAL_ERROR", message=text, origin=_PLAIN)
    else:
        fault = _with_trace(_with_parts(fault, structured))
    error = FaultError.from_fault(fault)
    error.result = result  # type: ignore[attr-defined]
    return error


def _with_parts(fault: Fault, structured: object) -> Fault:
    """Add the failures of several upstreams, if the payload layer lists them (A18)."""
    errors = structured.get("errors") if isinstance(structured, dict) else None
    if (
        not isinstance(structured, dict)
        or not isinstance(errors, list)
        or not errors
        or errors == [structured.get(KEY)]
    ):
        return fault
    parts = tuple(part for each in errors[:_MAX_PARTS] if (part := adcp.decode(each)) is not None)
    return replace(fault, errors=parts) if len(parts) > 1 else fault


def _with_trace(fault: Fault) -> Fault:
    trace = fault.extensions.get(TRACE) if fault.trace_id is None else None
    return replace(fault, trace_id=trace) if isinstance(trace, str) and len(trace) <= 128 else fault


def _needs_input(exc: BaseException) -> bool:
    """
    Whether the server asked for input (`input_required`) and the SDK could not answer: no callback, or too many rounds.

    A failure of a round's own request passes through the same module, but is raised elsewhere.
    """
    modules = modules_of(exc)
    return bool(modules) and modules[-1] == "mcp.client._input_required"


_INPUT_REQUIRED = Fault(
    code="VALIDATION_ERROR",
    message="The server needs an answer before it can go on",
    suggestions=("Answer the server's questions, then repeat the call with the answers",),
    executed=Executed.NO,
    origin=Origin("mcp", "input_required"),
)
"""Answer and repeat: the protocol repeats the call with the answers, so the first one had no effect."""


_PAGE_FIRST = Fault(
    code="PERMISSION_DENIED",
    message="The user has to open a page of the server before this call",
    recovery=Recovery.TERMINAL,
    suggestions=("Have the user open the page that the server names, then repeat the call",),
    actor=Actor.USER,
    details={"jsonrpc": URL_ELICITATION_REQUIRED},
    executed=Executed.NO,
    origin=Origin("mcp", "jsonrpc_error", "transport"),
)
"""The pages are in the `data` of the SDK's own error, which is the `__cause__`: a stranger's URL is not passed on."""


_UNSENDABLE = Fault(
    code="VALIDATION_ERROR",
    message="The arguments cannot be written as JSON",
    suggestions=(
        "Send plain JSON values: valid Unicode text, numbers, lists and objects, not nested too deeply",
    ),
    executed=Executed.NO,
    origin=Origin("mcp", None, "transport"),
)
"""Nothing was sent."""


def check_text(*values: object) -> None:
    """
    Check that the text in a request can be sent as UTF-8.

    The SDK would find a lone surrogate in the task that sends the requests of all calls, and end the session.

    Raises:
        FaultError: VALIDATION_ERROR; nothing was sent.

    """
    try:
        msgspec.json.encode(values, enc_hook=lambda _: None)
    except UnicodeEncodeError:
        raise FaultError.from_fault(_UNSENDABLE) from None
    except Exception:  # noqa: BLE001 - the SDK encodes more types, and raises in the caller's task what it cannot encode
        return


def _was_not_written(exc: BaseException) -> bool:
    """Whether pydantic raised the exception when it wrote the request; one for an invalid response is a ValidationError."""
    return modules_of(exc)[-1:] == ["pydantic.main"] and not isinstance(exc, ValidationError)


def error_of(exc: BaseException, vendor: str | None = None) -> tuple[FaultError, bool]:
    """
    Return the typed error of an exception that a call raised, and whether the session expired.

    A FaultError is returned as it is. `vendor`: the service that the server calls, whose answer the error may quote.
    """
    exc = first_error(exc)
    if isinstance(exc, FaultError):
        return exc, False
    fault, expired = _fault(exc, vendor)
    if _tool_has_run(exc):
        fault = replace(fault, recovery=Recovery.TERMINAL, executed=Executed.YES)
    error = FaultError.from_fault(_with_trace(fault))
    error.__cause__ = exc
    return error, expired


def _tool_has_run(exc: BaseException) -> bool:
    """
    Whether the exception was raised in `ClientSession.validate_tool_result`, after the tool had run.

    The SDK may list the tools there, and a failure of that listing is not the call's own failure.
    """
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "validate_tool_result":
            return True
        trace = trace.tb_next
    return False


def first_error(exc: BaseException) -> BaseException:
    """Return the first MCPError or FaultError in nested exception groups, else the first exception."""
    if not isinstance(exc, BaseExceptionGroup):
        return exc
    found = list(_leaves(exc, _DEPTH))[:_MAX_PARTS]
    errors = [each for each in found if isinstance(each, MCPError | FaultError)]
    return (errors or found)[0]


def _leaves(exc: BaseException, depth: int) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup) and depth:
        for each in exc.exceptions:
            yield from _leaves(each, depth - 1)
    else:
        yield exc


def _fault(exc: BaseException, vendor: str | None = None) -> tuple[Fault, bool]:
    if _needs_input(exc):
        return _INPUT_REQUIRED, False
    if _was_not_written(exc):
        return _UNSENDABLE, False
    if isinstance(exc, MCPError):
        recorded = recorded_failure(exc.error.data)
        if recorded is not None:
            return recorded
        fault = read_rpc({"jsonrpc": "2.0", "error": exc.error.model_dump()}).fault
        if fault is not None:
            return fault, False
        if code_of(exc) == URL_ELICITATION_REQUIRED:
            return _PAGE_FIRST, False
        if code_of(exc) in _UNREADABLE:
            return _lost(), False
        answer = fault_in_data(plain(exc.error.data), vendor) if code_of(exc) in _GENERAL else None
        if answer is not None:
            return answer, False
    elif isinstance(exc, ValidationError):
        # The response is not valid MCP.
        return _lost(), False
    elif isinstance(exc, RuntimeError):
        # FastMCP raises it for a session that ended or was never opened.
        cause = exc.__cause__
        return _fault(first_error(cause), vendor) if isinstance(cause, Exception) else (_lost(), False)
    return transport_fault(exc), False


def _lost() -> Fault:
    return transport_fault(ConnectionResetError())


@rests_on(Claim.NOT_HAPPENED, Proof.NOT_SENT)
def not_connected(exc: Exception) -> FaultError:
    """
    Return the typed error of a connection that could not be opened; no call was made.

    Codes that describe a call, such as NOT_FOUND for a missing command, become SERVICE_UNAVAILABLE.
    """
    error, _ = error_of(exc)
    fault = replace(error.fault, executed=Executed.NO)
    if fault.vocabulary == EVERYDAY and fault.code not in _CONNECTION_CODES:
        # A command that does not exist or may not be run will fail the next time too.
        lasting = isinstance(first_error(exc), FileNotFoundError | PermissionError)
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


_CONNECTION_CODES = frozenset({"SERVICE_UNAVAILABLE", "TIMEOUT", "RATE_LIMITED", "UNAUTHENTICATED"})
"""Everyday codes that also describe a failed connection."""
