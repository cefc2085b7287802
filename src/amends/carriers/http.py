"""
HTTP responses: {"status", "headers", "body"}.

Any status from 400 on is a fault, with or without a structured body. A 207 with problems is a fault too, though the
call did not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from amends.carriers import challenge, jsonrpc
from amends.carriers import headers as header_fields
from amends.carriers.layers import KEY, envelope_error
from amends.carriers.reading import NOT_FAILED, Reading
from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.vocabularies.http import VOCABULARY
from amends.core.wire import TOO_DEEP, Unreadable
from amends.core.wire import read as read_json
from amends.dialects import members, problem
from amends.dialects.members import truthy

__all__ = ["read"]

_BODY = Origin("problem", "body")
_ADCP_BODY = Origin("adcp", "body", "transport")


def read(response: Any, *, now: Callable[[], float] | None = None) -> Reading:
    """
    Read a response.

    Args:
        response: {"status": int, "headers": {name: value}, "body": object, str or bytes}.
        now: the clock for headers that name a point in time, called only if the response has no `Date` header;
            without either, such a header is ignored.

    """
    if not isinstance(response, dict):
        return NOT_FAILED
    status = members.whole(response.get("status"))
    if status is None or (status < 400 and status != 207) or status > 999:
        return NOT_FAILED
    body = _body(response.get("body"))
    if status == 207:
        return _multi_status(body)
    fields = header_fields.lower_names(response.get("headers"))
    wait, verdict = header_fields.wait(fields, now), header_fields.verdict(fields)
    reading = _from_body(body, status, wait) if isinstance(body, dict) else None
    fault = None if reading is None else reading.fault
    if reading is None or fault is None:
        path = "status" if wait is None and verdict is None else "header"
        fault = _bare(status, wait, path)
        reading = Reading(True, fault, path, None, True)
    if status in _CHALLENGED and fault.vocabulary == "http":
        asked = challenge.read(fields.get("www-authenticate"))
        if asked:
            fault = replace(fault, details={**(fault.details or {}), **asked})
            reading = replace(reading, fault=fault)
    if verdict is False:
        # "Do not retry" is obeyed whatever the status is.
        return replace(reading, fault=replace(fault, max_retries=0))
    if verdict is True and fault.vocabulary == "http" and not _has_verdict(body):
        row = VOCABULARY.status_row(status)
        fault = replace(fault, recovery=Recovery.TRANSIENT, actor=row.actor_under(Recovery.TRANSIENT))
        return replace(reading, fault=fault)
    return reading


def _body(body: Any) -> Any:
    """Return the value of a body; None if it cannot be parsed."""
    if isinstance(body, (str, bytes, bytearray, memoryview)):
        try:
            body = read_json(body)
        except Unreadable:
            return None
    return None if body is TOO_DEEP else body


def _multi_status(body: Any) -> Reading:
    """Read a 207. If it has problems the call did not fail, and each problem is decided by itself."""
    errors = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(errors, list) or not any(isinstance(item, dict) for item in errors):
        return NOT_FAILED
    fault = problem.fault_of(body, 207, None, _BODY)
    return Reading(failed=False, fatal=False, path="body", error=body, fault=fault)


def _from_body(body: dict[str, Any], status: int, wait: float | None) -> Reading | None:
    """Read a structured body. Returns None if it has no known shape."""
    found = _from_gateway(body)
    if found is not None and found.fault is not None:
        fault = found.fault
        kept = fault.retry_after if finite(fault.retry_after) is not None else wait
        return replace(found, path="body", fault=replace(fault, status=status, retry_after=kept))
    problem_fault = problem.fault_of(body, status, wait, _BODY)
    if problem_fault is None:
        return None
    return Reading(True, problem_fault, "body", body, True)


def _from_gateway(body: dict[str, Any]) -> Reading | None:
    """Read what a gateway in front of an MCP server sends: a JSON-RPC error, or a bare `adcp_error`."""
    found = jsonrpc.read(body) if "error" in body else None
    if (found is None or found.fault is None) and truthy(body.get(KEY)):
        # Some gateways send {"error": "Too many requests"} beside it.
        return envelope_error(body[KEY], _ADCP_BODY, beside=(body,))
    return found


def _bare(status: int, wait: float | None, path: str) -> Fault:
    """Return the fault for a status without a structured body."""
    row = VOCABULARY.status_row(status)
    return Fault(
        code=row.code,
        message=row.message,
        recovery=row.recovery,
        vocabulary="http",
        retry_after=wait,
        status=status,
        actor=row.actor,
        executed=row.executed,
        origin=Origin("problem", path, "transport"),
    )


def _has_verdict(body: Any) -> bool:
    """Whether the body itself says if the same request may be sent again. It then overrides a header's yes."""
    if not isinstance(body, dict):
        return False
    return isinstance(body.get("is_retriable"), bool) or members.text(body.get("recovery")) in _RECOVERY


_RECOVERY = frozenset(Recovery)
_CHALLENGED = frozenset({401, 403})
