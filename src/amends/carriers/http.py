"""
HTTP responses: {"status", "headers", "body"}.

Any status from 400 on is a fault, with or without a structured body. A 207 with problems is a fault too, though the
call did not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from amends.carriers import challenge, jsonrpc
from amends.carriers import headers as header_fields
from amends.core.enums import Actor, Executed, Recovery
from amends.core.executed import executed_by_status, may_invite
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.reading import NOT_FAILED, Reading
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import Row
from amends.core.wire import DOCUMENTS, TOO_DEEP, Unreadable
from amends.core.wire import read as read_json
from amends.dialects import members, problem
from amends.dialects.adcp import KEY
from amends.dialects.adcp_document import envelope_error
from amends.dialects.members import truthy
from amends.proof import Claim, Proof, rests_on

__all__ = ["read"]

_BODY = Origin("problem", "body")
_ADCP_BODY = Origin("adcp", "body", "transport")


def read(
    response: Any,
    *,
    now: Callable[[], float] | None = None,
    vendor: str | None = None,
    in_success: bool = False,
    own: bool = False,
) -> Reading:
    """
    Read a response.

    Args:
        response: {"status": int, "headers": {name: value}, "body": object, str or bytes}.
        now: the clock for headers that name a point in time, called only if the response has no `Date` header;
            without either, such a header is ignored.
        vendor: the service that was called, known by its host or by the user's word.
        in_success: also look for a failure inside a successful answer.
        own: the service is part of the user's own system: what it states about its effect counts under any status.

    """
    if not isinstance(response, dict):
        return NOT_FAILED
    status = members.whole(response.get("status"))
    if status is None or (status < 400 and status != 207 and not in_success) or status > 999:
        return NOT_FAILED
    raw = response.get("body")
    body = _body(raw)
    if status == 207:
        return _multi_status(body, vendor)
    fields = header_fields.lower_names(response.get("headers"))
    if status < 400:
        return _in_success(response, fields, raw if body is None else body, vendor, now)
    wait, verdict = header_fields.wait(fields, now), header_fields.verdict(fields)
    if wait is None and status == 429:
        wait = header_fields.reset(fields, now)
    reading = _from_body(body, status, wait) if isinstance(body, dict) and vendor is None else None
    if reading is None:
        reading = _from_vendor(status, fields, raw if body is None else body, wait, vendor, now)
        if reading is None and isinstance(body, dict):
            reading = _from_problem(body, status, wait)
            if reading is not None and reading.fault is not None:
                reading = replace(reading, fault=_with_members(reading.fault, body, fields))
    fault = None if reading is None else reading.fault
    if reading is not None and fault is not None and fault.executed is Executed.NO:
        proved = _with_proof(fault, body, status, known=own or _vendors().is_service(vendor))
        if proved is not fault:
            fault = proved
            reading = replace(reading, fault=fault)
    if reading is None or fault is None:
        path = "status" if wait is None and verdict is None else "header"
        fault = _bare(status, wait, path)
        reading = Reading(True, fault, path, None, True)
    tries = fields.get(TRIES)
    if tries is not None and tries.isdecimal() and len(tries) <= 9:
        # A gateway made them; a larger number only ends recovery earlier.
        made = min(int(tries), _MOST_TRIES)
        if made > (fault.attempt or 1):
            fault = replace(fault, attempt=made)
            reading = replace(reading, fault=fault)
    if fault.trace_id is None and (trace := _vendors().trace_of(fields)) is not None:
        fault = replace(fault, trace_id=trace)
        reading = replace(reading, fault=fault)
    if fault.code == "RATE_LIMITED" and fault.vocabulary == "http" and header_fields.is_used_up(fields):
        fault = replace(fault, code="QUOTA_EXCEEDED", recovery=Recovery.TERMINAL, actor=Actor.USER)
        reading = replace(reading, fault=fault)
    if status in _CHALLENGED and fault.vocabulary == "http":
        asked = challenge.read(fields.get("www-authenticate"))
        if asked:
            fault = replace(fault, details={**(fault.details or {}), **asked})
            reading = replace(reading, fault=fault)
    if verdict is False:
        # "Do not retry" is obeyed whatever the status is. Where nothing was done, the failure is permanent.
        changes: dict[str, Any] = {"max_retries": 0}
        if fault.recovery is Recovery.TRANSIENT and fault.executed is Executed.NO:
            changes |= {"recovery": Recovery.TERMINAL, "actor": Actor.OPERATOR}
        return replace(reading, fault=replace(fault, **changes))
    if verdict is True and fault.vocabulary == "http" and not _has_verdict(body):
        row = VOCABULARY.status_row(status)
        if _by_status(fault, row):
            fault = replace(fault, recovery=Recovery.TRANSIENT, actor=row.actor_under(Recovery.TRANSIENT))
            return replace(reading, fault=fault)
    return reading


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS, Proof.HOST, Proof.USER, Proof.INVITATION)
def _with_proof(fault: Fault, body: Any, status: int, *, known: bool) -> Fault:
    """
    Return a fault that says "no" as it is only if there is a proof: the status, the service, or an error of its own (M3).

    A body that names another status was written for another answer, and passed on.
    """
    if known or executed_by_status(status) is Executed.NO:
        return fault
    own_words = isinstance(body, dict) and body.get("status", status) == status
    if own_words and may_invite(status) and _is_ours(body):
        return fault
    return replace(fault, executed=Executed.MAYBE)


def _is_ours(body: dict[str, Any]) -> bool:
    """Whether a body is an error in one of the five formats, with a wait or a statement of its own."""
    if not _OURS.isdisjoint(body):
        return "executed" in body or problem.own_wait(body) is not None
    found = _from_gateway(body)
    return found is not None and found.fault is not None and found.fault.retry_after is not None


def _body(body: Any) -> Any:
    """Return the value of a body; None if it cannot be parsed."""
    if isinstance(body, DOCUMENTS):
        if not len(body):
            return None
        try:
            body = read_json(body)
        except Unreadable:
            return None
    return None if body is TOO_DEEP else body


def _multi_status(body: Any, vendor: str | None) -> Reading:
    """Read a 207. If it has problems the call did not fail, and each problem is decided by itself."""
    errors = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(errors, list) or not any(isinstance(item, dict) for item in errors):
        parts = None if vendor is None else _batches().in_batch(body, None)
        return NOT_FAILED if parts is None else Reading(False, parts, "body", body, False)
    fault = problem.fault_of(body, 207, None, _BODY)
    items = [item for item in errors[:_MOST_PARTS] if isinstance(item, dict)]
    if (
        fault is not None
        and len(fault.errors) == len(items)
        and any(p.code == _UNKNOWN for p in fault.errors)
    ):
        parts = [
            _known_part(item, vendor) or part if part.code == _UNKNOWN else part
            for item, part in zip(items, fault.errors, strict=True)
        ]
        fault = _batches().partial(parts) if parts != list(fault.errors) else fault
    return Reading(failed=False, fatal=False, path="body", error=body, fault=fault)


def _by_status(fault: Fault, row: Row) -> bool:
    """Whether a fault has the status's own code. A more exact code of the sender is not overridden by a header's yes."""
    return fault.code == row.code or fault.origin is None or fault.origin.dialect == "problem"


def _from_vendor(
    status: int,
    fields: dict[str, str],
    body: Any,
    wait: float | None,
    vendor: str | None,
    now: Callable[[], float] | None,
) -> Reading | None:
    """Read a body in a vendor's format, or the headers and the status if they say more than the status row."""
    if isinstance(body, DOCUMENTS) and not isinstance(body, str):
        body = bytes(body[:_MAX_TEXT]).decode("utf-8", "replace")

    def quoted(inner: Mapping[str, str]) -> float | None:
        return header_fields.wait(inner, now)

    problem_like = isinstance(body, dict) and _is_problem(body)
    fault = _vendors().read(
        status, fields, body, wait=wait, vendor=vendor, now=now, quoted=quoted, specific=problem_like
    )
    if fault is None:
        return None
    if problem_like:
        base = problem.fault_of(body, status, fault.retry_after, _BODY)
        if base is not None:
            names = ("code", "recovery", "actor", "executed", "trace_id", "origin", "field")
            known = {name: value for name in names if (value := getattr(fault, name)) is not None}
            fault = replace(base, **known, details={**(base.details or {}), **(fault.details or {})} or None)
    if isinstance(body, (dict, list)) and body:
        return Reading(True, fault, "body", body, True)
    if isinstance(body, str) and fault.details is not None:
        return Reading(True, fault, "body", None, True)
    path = "status" if wait is None else "header"
    sender = None if fault.details is None or fault.origin is None else fault.origin.dialect
    origin = Origin(sender or "problem", path, "transport")
    return Reading(True, replace(fault, origin=origin), path, None, True)


def _batches() -> ModuleType:
    """Return the reader of batches, loaded on first use."""
    from amends.vendors import batches

    return batches


_MOST_PARTS = 1000
_UNKNOWN = "UNKNOWN"


def _known_part(item: dict[str, Any], vendor: str | None) -> Fault | None:
    """Return the fault of a part whose code word has a meaning for a service; None if it has none."""
    found: Fault | None = _vendors().read(400, {}, item, vendor=vendor)
    return None if found is None or found.code == "BAD_REQUEST" else found


def _vendors() -> ModuleType:
    """Return the reader of vendors' formats, loaded on first use."""
    global _READING  # noqa: PLW0603 - an import statement in the function costs 2 of the 15 µs that a reading may take
    if _READING is None:
        from amends.vendors import reading

        _READING = reading
    return _READING


_READING: ModuleType | None = None
_MAX_TEXT = 65536
_OURS = frozenset(
    {"is_retriable", "recovery", "executed", "retry_after_ms", "suggestions", "max_retries", "doc_uri"}
)


_PROBLEM = frozenset({"type", "title", "detail"})


def _is_problem(body: dict[str, Any]) -> bool:
    """Whether a body has the shape of RFC 9457, not only a member of the same name."""
    if _PROBLEM.isdisjoint(body):
        return False
    uri = body.get("type")
    if isinstance(uri, str) and (":" in uri or uri.startswith("/")):
        return True
    if isinstance(body.get("detail"), str):
        return isinstance(body.get("title"), str) or isinstance(body.get("status"), int)
    return isinstance(body.get("title"), str) and "error" not in body and "errors" not in body


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS, Proof.HOST, Proof.USER)
def _in_success(
    response: dict[str, Any],
    fields: dict[str, str],
    body: Any,
    vendor: str | None,
    now: Callable[[], float] | None,
) -> Reading:
    """Look for a failure inside a successful answer, in shapes that a vendor documents."""
    from amends.vendors.successes import read_success

    trailers = response.get("trailers")
    if trailers is not None:
        fields = {**fields, **header_fields.lower_names(trailers)}

    def quoted(inner: Mapping[str, str]) -> float | None:
        return header_fields.wait(inner, now)

    fault = read_success(fields, body, vendor=vendor, now=now, quoted=quoted)
    if fault is None:
        return NOT_FAILED
    whole = fault.executed is not Executed.YES
    sender = None if fault.origin is None else fault.origin.dialect
    if fault.executed is Executed.NO and sender not in _PROTOCOLS and not _vendors().is_service(vendor):
        # All parts of a batch were refused, as its body says.
        fault = replace(fault, executed=Executed.MAYBE)
    if whole and fault.retry_after is None:
        wait = header_fields.wait(fields, now)
        if wait is not None:
            fault = replace(fault, retry_after=wait)
    document = body if isinstance(body, (dict, list)) else None
    path = fault.origin.path if fault.origin is not None else "body"
    return Reading(failed=whole, fatal=whole, path=path, error=document, fault=fault)


_PROTOCOLS = frozenset({"grpc", "jsonrpc"})
"""Senders of failures in successful answers whose number is the protocol's own."""


def _from_body(body: dict[str, Any], status: int, wait: float | None) -> Reading | None:
    """Read a structured body in one of our formats. Returns None if it has none of their shapes."""
    found = _from_gateway(body)
    if found is not None and found.fault is not None:
        fault = found.fault
        kept = fault.retry_after if finite(fault.retry_after) is not None else wait
        return replace(found, path="body", fault=replace(fault, status=status, retry_after=kept))
    return None if _OURS.isdisjoint(body) else _from_problem(body, status, wait)


def _from_problem(body: dict[str, Any], status: int, wait: float | None) -> Reading | None:
    problem_fault = problem.fault_of(body, status, wait, _BODY)
    if problem_fault is None:
        return None
    return Reading(True, problem_fault, "body", body, True)


def _with_members(fault: Fault, body: dict[str, Any], fields: dict[str, str]) -> Fault:
    """Return the fault of a problem with the code word, request id, field and page of its other members."""
    found = _vendors().beside(body, fields)
    kind = _vendors().by_status(fault.status or 500, None, fault.retry_after is not None)
    if kind is not None and "code" not in body:
        executed = fault.executed if kind.executed is None else kind.executed
        fault = replace(fault, code=kind.code, recovery=kind.recovery, actor=kind.actor, executed=executed)
    word = next((each for each in found.words() if each[0] != "@" and "://" not in each), None)
    changes: dict[str, Any] = {
        name: value
        for name in ("trace_id", "field", "doc_uri")
        if getattr(fault, name) is None and (value := getattr(found, name)) is not None
    }
    if word is not None and word != body.get("type") and word != str(fault.status):
        changes["details"] = {"code": word, **(fault.details or {})}
    return replace(fault, **changes) if changes else fault


def _from_gateway(body: dict[str, Any]) -> Reading | None:
    """Read what a gateway in front of an MCP server sends: a JSON-RPC error, or a bare `adcp_error`."""
    found = jsonrpc.read(body) if "error" in body else None
    if (found is None or found.fault is None) and KEY in body and truthy(body[KEY]):
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
    return isinstance(body.get("is_retriable"), bool) or members.recovery(body.get("recovery")) is not None


TRIES = "amends-tries"
"""The header in which a gateway says how many tries were made behind it."""
_MOST_TRIES = 100
_CHALLENGED = frozenset({401, 403})
