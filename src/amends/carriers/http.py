"""
HTTP responses (S1): {"status", "headers", "body"}.

Any status from 400 on is a fault, structured or not; a 207 with problems is one too, though the call did not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from amends.carriers import headers as header_fields
from amends.carriers import jsonrpc
from amends.carriers.layers import KEY, envelope_error, truthy
from amends.carriers.reading import NOT_FAILED, Reading
from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.vocabularies.http import VOCABULARY
from amends.core.wire import TOO_DEEP, Unreadable
from amends.core.wire import read as read_json
from amends.dialects import problem

__all__ = ["read"]

_BODY = Origin("problem", "body")
_ADCP_BODY = Origin("adcp", "body", "transport")


def read(response: Any, *, now: Callable[[], float] | None = None) -> Reading:
    """
    The reading of a response.

    Args:
        response: {"status": int, "headers": {name: value}, "body": object, str or bytes}.
        now: the clock for points in time in headers, asked only where the response carries no `Date` of its own;
            without either such a header says nothing.

    """
    if response.__class__ is not dict:
        return NOT_FAILED
    status = response.get("status")
    if status.__class__ is float and status.is_integer():
        status = int(status)
    if status.__class__ is not int or (status < 400 and status != 207) or status > 999:
        return NOT_FAILED
    body = response.get("body")
    if body.__class__ is not dict:
        body = _body(body)
    if status == 207:
        return _multi_status(body)
    fields = header_fields.telling(response.get("headers"))
    said = header_fields.verdict(fields) if fields else None
    own = None
    if body.__class__ is dict and "error" not in body and KEY not in body:
        own = problem.own_wait(body)
    if own is not None:
        # The usual problem: its own wait beats the headers', which need not be read.
        wait: float | None = own
        reading: Reading | None = Reading(
            True, problem.fault_with(body, status, own, _BODY), "body", body, True
        )
    else:
        wait = header_fields.wait(fields, now) if fields else None
        reading = _from_body(body, status, wait)
    if reading is None or reading.fault is None:
        path = "status" if wait is None and said is None else "header"
        fault = _bare(status, wait, path)
        reading = Reading(True, fault, path, None, True)
    else:
        fault = reading.fault
    if said is False:
        # A "no" is obeyed: no retries are left, whatever the status.
        return replace(reading, fault=replace(fault, max_retries=0))
    if said is True and fault.vocabulary == "http" and not _says_so(body):
        row = VOCABULARY.status_row(status)
        fault = replace(fault, recovery=Recovery.TRANSIENT, actor=row.actor_under(Recovery.TRANSIENT))
        return replace(reading, fault=fault)
    return reading


def _body(body: Any) -> Any:
    """The body as a value, of one that is no object yet; what cannot be read says nothing."""
    if isinstance(body, (str, bytes, bytearray)):
        try:
            body = read_json(body)
        except Unreadable:
            return None
    return None if body is TOO_DEEP else body


def _multi_status(body: Any) -> Reading:
    """A 207 with problems: the call did not fail, and its parts decide one by one."""
    errors = body.get("errors") if body.__class__ is dict else None
    if errors.__class__ is not list or not any(item.__class__ is dict for item in errors):
        return NOT_FAILED
    fault = problem.fault_of(body, 207, None, _BODY)
    return Reading(failed=False, fatal=False, path="body", error=body, fault=fault)


def _from_body(body: Any, status: int, wait: float | None) -> Reading | None:
    """What a structured body says; None when it says nothing structured."""
    if body.__class__ is not dict:
        return None
    found = _from_gateway(body)
    if found is not None and found.fault is not None:
        fault = found.fault
        kept = fault.retry_after if finite(fault.retry_after) is not None else wait
        return replace(found, path="body", fault=replace(fault, status=status, retry_after=kept))
    fault_here = problem.fault_of(body, status, wait, _BODY)
    if fault_here is None:
        return None
    return Reading(True, fault_here, "body", body, True)


def _from_gateway(body: dict[str, Any]) -> Reading | None:
    """A gateway in front of an MCP server answers in JSON-RPC, or with S4's bare key."""
    found = jsonrpc.read(body) if "error" in body else None
    if (found is None or found.fault is None) and KEY in body and truthy(body[KEY]):
        # Gateways like to say {"error": "Too many requests"} beside it.
        return envelope_error(body[KEY], _ADCP_BODY)
    return found


def _bare(status: int, wait: float | None, path: str) -> Fault:
    """What a status alone says."""
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


def _says_so(body: Any) -> bool:
    """Whether the body itself answers if the same request may be sent again; it then beats a header's yes."""
    if body.__class__ is not dict:
        return False
    said = body.get("recovery")
    return body.get("is_retriable").__class__ is bool or (said.__class__ is str and said in _RECOVERY)


_RECOVERY = frozenset(Recovery)
