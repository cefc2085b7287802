"""
MCP and A2A failures that carry no AdCP error, for `extract`.

What is looked at are numbers, states and types, never text: the `isError` of a tool result, the state of a task, the number
of a JSON-RPC error, google.rpc's ErrorInfo, BadRequest and RetryInfo (A2A 1.0), and MCP's 404 for a session that the server
does not know. The sender's text becomes the message of the fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from amends.carriers import jsonrpc
from amends.carriers.detection import state_of, task_in, text_items
from amends.carriers.jsonrpc import RESERVED
from amends.carriers.mcp_task import outcome_of
from amends.carriers.quoted import fault_in_data, fault_in_task, quoted_fault
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.instants import bounded, duration
from amends.core.meanings import (
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    LOST,
    NOT_FOUND,
    NOT_SENT,
    REJECTED,
    TIMEOUT,
    Meaning,
    fault_of,
)
from amends.core.reading import Reading
from amends.core.text import truncate
from amends.core.vocabularies.http import VOCABULARY as HTTP
from amends.core.vocabulary import row_for
from amends.core.wire import Unreadable, as_dict, plain
from amends.core.wire import read as read_json
from amends.dialects.members import integer, mapping, text, truthy

__all__ = ["A2A_NUMBERS", "FRAMED", "MCP_NUMBERS", "NUMBERS", "read"]


_NO, _MAYBE = Executed.NO, Executed.MAYBE

NUMBERS: dict[int, Meaning] = {
    -32700: INVALID,
    -32600: INVALID,
    -32601: NOT_FOUND,
    -32602: INVALID,
    -32603: INTERNAL,
    **{
        number + moved: Meaning.of(row_for("adcp", code).everyday, _NO)
        for code, number in RESERVED.items()
        for moved in (0, 1000)
    },
}
"""JSON-RPC's own numbers and AdCP's."""

MCP_NUMBERS: dict[int, Meaning] = {
    408: TIMEOUT,
    -32000: LOST,
    -32001: TIMEOUT,
    -32002: NOT_FOUND,  # a resource; up to 2025-11-25
    -32020: INVALID,
    -32021: INVALID,
    -32022: INVALID,
    -32023: FORBIDDEN,  # an open proposal (SEP-2643); never written
    -32042: FORBIDDEN,  # the user has to open a URL first
}
"""MCP's numbers. Other protocols use them differently: A2A's -32001 is an unknown task."""

FRAMED = {**NUMBERS, **MCP_NUMBERS}
"""The numbers that a frame in the text of a tool's result may have: `MCP error -32602: …`."""

_A2A_REASONS = {
    "TASK_NOT_FOUND": (-32001, NOT_FOUND),
    "TASK_NOT_CANCELABLE": (-32002, CONFLICT),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, INVALID),
    "UNSUPPORTED_OPERATION": (-32004, INVALID),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, INVALID),
    "INVALID_AGENT_RESPONSE": (-32006, INTERNAL),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": (-32007, INVALID),
    "EXTENSION_SUPPORT_REQUIRED": (-32008, INVALID),
    "VERSION_NOT_SUPPORTED": (-32009, INVALID),
}
_A2A_DOMAIN = "a2a-protocol.org"
A2A_NUMBERS: dict[int, Meaning] = dict(_A2A_REASONS.values())
"""A2A's numbers."""

# For a document that may be of either protocol. -32000 is any server's.
_EITHER = {
    number: meaning
    for number, meaning in (MCP_NUMBERS | A2A_NUMBERS).items()
    if number <= -32001 and not (number in MCP_NUMBERS and number in A2A_NUMBERS)
}

_STATES = {
    "failed": INTERNAL,
    "rejected": REJECTED,
    # The task goes on after the sign-in, so it may have done something already.
    "auth-required": Meaning.of("UNAUTHENTICATED", _MAYBE),
}
_STATES |= {f"TASK_STATE_{name.upper().replace('-', '_')}": meaning for name, meaning in _STATES.items()}

# With HTTP status 404: the SDKs' numbers for a session that the server does not know. The spec defines the status only.
_UNKNOWN_SESSION = frozenset({-32600, -32001})

_CONTENT = Origin("mcp", "content")
_SESSION = Origin("mcp", "status", "transport")
_STATUS = Origin("a2a", "status_message")
_RPC = Origin("jsonrpc", "jsonrpc_error", "transport")

_LONGEST = 1024
_NOT_FOUND = 404
_JSONRPC = "jsonrpc"
_LONGEST_REASON = 64
_MAX_FIELDS = 100


def read(document: Any, via: str | None, vendor: str | None = None) -> Reading | None:
    """
    Read a failure of a document without an AdCP error. Returns None if it reports none.

    Args:
        document: a plain document of MCP, A2A or JSON-RPC, or an HTTP response.
        via: mcp, a2a, jsonrpc or http; None: its shape decides.
        vendor: the service that the tool or agent calls, if known: its answers may be quoted.

    """
    if via == "http" and type(document) is dict and integer(document.get("status")) != _NOT_FOUND:
        return None
    found = as_dict(plain(document))
    if found is None:
        return None
    if via == "http":
        return _unknown_session(found)
    if via != "a2a":
        found = outcome_of(found)
    error = found.get("error") if jsonrpc.is_response(found) else None
    if truthy(error):
        return _rpc_error(mapping(error) or {}, via, vendor)
    inner = as_dict(found.get("result")) if jsonrpc.is_response(found) else None
    for result in (found, inner):
        if result is None:
            continue
        if via != "a2a" and result.get("isError") is True:
            quoted = quoted_fault(result, FRAMED, vendor)
            if quoted is not None:
                return Reading(True, quoted, "content", result, True)
            message = " ".join(text_items(result.get("content")))
            return _reading(INTERNAL, _CONTENT, message, result)
        task = task_in(result)
        meaning = None if via == "mcp" else _STATES.get(state_of(task) or "")
        if meaning is INTERNAL and (answer := fault_in_task(task, vendor)) is not None:
            return Reading(True, answer, _STATUS.path, task, True)
        if meaning is not None:
            return _reading(meaning, _STATUS, _status_text(task), task)
    return None


def _reading(meaning: Meaning, origin: Origin, message: str, error: Any, **more: Any) -> Reading:
    fault = replace(fault_of(meaning, origin=origin, **more), message=truncate(message, _LONGEST))
    return Reading(True, fault, origin.path, error, True)


def _status_text(task: dict[str, Any]) -> str:
    message = mapping((mapping(task.get("status")) or {}).get("message")) or {}
    parts = message.get("parts")
    texts = (
        text(part.get("text"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
    )
    return " ".join(filter(None, texts))


def _unknown_session(response: dict[str, Any]) -> Reading | None:
    """Read MCP's 404 with a JSON-RPC error: nothing ran, and the call succeeds in a new session."""
    if integer(response.get("status")) != _NOT_FOUND:
        return None
    body = response.get("body")
    if isinstance(body, str | bytes | bytearray):
        if (_JSONRPC not in body) if isinstance(body, str) else (_JSONRPC.encode() not in bytes(body)):
            return None
        try:
            body = read_json(body)
        except Unreadable:
            return None
    error = mapping(body.get("error")) if isinstance(body, dict) and "jsonrpc" in body else None
    if error is None or integer(error.get("code")) not in _UNKNOWN_SESSION:
        return None
    return _reading(NOT_SENT, _SESSION, text(error.get("message")) or "", body, status=404)


def _rpc_error(error: dict[str, Any], via: str | None, vendor: str | None) -> Reading:
    """Read a JSON-RPC error by google.rpc's details, else by its number, or by the answer in `data` if that says more."""
    number = integer(error.get("code"))
    info: dict[str, Any] = {}
    fields: list[Fault] = []
    wait = None
    for kind, item in _typed(error):
        if kind == "ErrorInfo" and not info:
            info = {
                name: value for name in ("reason", "domain") if (value := _short(item.get(name))) is not None
            }
        elif kind == "BadRequest":
            fields += _violations(item)
        elif kind == "RetryInfo" and wait is None:
            wait = _delay(item)
    details = {**({} if number is None else {"jsonrpc": number}), **info}
    meaning = INVALID if fields else _meaning(number, info, via)
    if (meaning is INTERNAL or meaning is LOST) and not info and wait is None:
        answer = fault_in_data(error.get("data"), vendor)
        if answer is not None:
            shown = details if answer.details is None else {**answer.details, **details}
            return Reading(True, replace(answer, details=shown or None), _RPC.path, error, True)
    if wait is not None and meaning.code == "INTERNAL_ERROR":
        meaning = LOST
    return _reading(
        meaning,
        _RPC,
        text(error.get("message")) or "",
        error,
        details=details or None,
        retry_after=wait,
        field=fields[0].field if fields else None,
        errors=tuple(fields) if len(fields) > 1 else (),
    )


def _meaning(number: int | None, info: dict[str, Any], via: str | None) -> Meaning:
    if info.get("domain") == _A2A_DOMAIN and info.get("reason") in _A2A_REASONS:
        return _A2A_REASONS[info["reason"]][1]
    if number is None:
        return INTERNAL
    own = {"mcp": MCP_NUMBERS, "a2a": A2A_NUMBERS}.get(via or "", _EITHER)
    found = NUMBERS.get(number) or own.get(number)
    if found is not None:
        return found
    if 400 <= number <= 599:
        # A2A over REST has the HTTP status there.
        row = HTTP.status_row(number)
        return Meaning.of(row.everyday, row.executed, row.recovery)
    return INTERNAL


def _typed(error: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield google.rpc's objects by name: an array in `data`, over REST in `details`."""
    for items in (error.get("data"), error.get("details")):
        for item in items if isinstance(items, list) else ():
            kind = text(item.get("@type")) if isinstance(item, dict) else None
            if kind is not None and "google.rpc." in kind:
                yield kind.rpartition("google.rpc.")[2], item


def _violations(item: dict[str, Any]) -> Iterator[Fault]:
    """Yield a fault for every field of a BadRequest."""
    listed = item.get("fieldViolations", item.get("field_violations"))
    for violation in listed[:_MAX_FIELDS] if isinstance(listed, list) else ():
        field = text(violation.get("field")) if isinstance(violation, dict) else None
        if field:
            message = truncate(text(violation.get("description")) or "", _LONGEST)
            yield Fault(
                code="VALIDATION_ERROR",
                message=message,
                field=truncate(field, _LONGEST),
                executed=_NO,
                origin=_RPC,
            )


def _delay(item: dict[str, Any]) -> float | None:
    """Return the seconds of a RetryInfo: protobuf's JSON writes "5s" or "1.5s"."""
    written = text(item.get("retryDelay", item.get("retry_delay")))
    return bounded(duration(written or "")) or None


def _short(value: Any) -> str | None:
    found = text(value)
    return found if found and len(found) <= _LONGEST_REASON else None
