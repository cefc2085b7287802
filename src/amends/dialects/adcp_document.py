"""
AdCP's two layers: `adcp_error` for what failed, `errors[]` in the payload for both failures and remarks (A5, A6, A7).

The first truthy value under `adcp_error` decides, where truthy has JavaScript's meaning; if it is invalid, none is found.
`errors[]` beside it become the parts of the fault, and a server writes them beside it again. Without `adcp_error`, the error is
the first of `payload.errors`, else the first of `errors`.

A document without a transport is a protocol envelope, which has a `status` and a `payload`, or the payload of a task. A payload
without a status reports a failure if it has no data beside its errors: AdCP's schemas define a task's response as either data
or errors. With data beside them, the errors are remarks.

A webhook reports a failed task with its `status`, and the error in its `result`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Origin
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.core.wire import as_dict, plain
from amends.dialects import members
from amends.dialects.adcp_object import BARE, KEY, NAME, fault_of, parts_in, plain_error
from amends.dialects.record import read_beside

__all__ = [
    "FAILED_STATES",
    "FINISHED_STATES",
    "document_error",
    "envelope_error",
    "has_error",
    "listed",
    "payload_error",
    "webhook_error",
]

FAILED_STATES = frozenset({"failed", "rejected", "TASK_STATE_FAILED", "TASK_STATE_REJECTED"})
FINISHED_STATES = frozenset({"completed", "TASK_STATE_COMPLETED"})

_RESULT = Origin(NAME, "payload")

GAP = "a fatal failure belongs in adcp_error as well as in errors[]"
"""The gap of a sender that reports a failure in the payload alone (A5)."""

# Members of an envelope or a payload that are not the task's data.
_NO_DATA = frozenset(
    {
        *(
            "errors",
            "payload",
            KEY,
            "status",
            "message",
            "timestamp",
            "context",
            "context_id",
            "task_id",
            "ext",
        ),
        *("adcp_version", "adcp_major_version", "push_notification_config", "governance_context", "replayed"),
    }
)


def envelope_error(
    error: Any,
    origin: Origin,
    executed: Executed | None = None,
    beside: tuple[dict[str, Any], ...] = (),
    within: int | None = None,
    meta: Any = None,
) -> Reading:
    """
    Read a truthy value found under `adcp_error`. Its presence alone means that the call failed.

    The fault's parts are the errors inside the object, then those of the first of `beside` that has any. A list with
    nothing but the error itself is no list of parts (A5).

    Args:
        error: the value.
        origin: where it was found.
        executed: used instead of the code's own, if given.
        beside: objects in which further `errors` may be.
        within: size in bytes of the document that the value was parsed from, if it was.
        meta: the object with what was sent beside the error: the tries made below, and `executed` (M8).

    """
    found = plain_error(error, within)
    if found is None:
        return FAILED
    fault = fault_of(found, origin, executed)
    if "errors" in found:
        # Written back inside the object, which is passed on unchanged.
        fault = replace(fault, extensions={**fault.extensions, "errors": found["errors"]})
    for holder in beside:
        if "errors" in holder or "payload" in holder:
            errors = listed(holder)
            if errors is None:
                continue
            if len(errors) > 1 or plain_error(errors[0], within) != found:
                fault = replace(fault, errors=fault.errors + parts_in(errors, origin, executed))
            break
    if meta is not None:
        fault = read_beside(fault, as_dict(meta))
    return Reading(True, fault, origin.path, found, True)


def payload_error(payload: Any, *, failed: bool, finished: bool) -> Reading | None:
    """
    Read `payload.errors[0]`, else `errors[0]`. Returns None if neither is there.

    Args:
        payload: what the tool or task returned.
        failed: whether the response reports a failure.
        finished: whether it reports a success: the call then had its effect, whatever the remark is about (M3).

    """
    errors = listed(payload)
    if errors is None:
        return None
    found = plain_error(errors[0])
    if found is None:
        return FAILED if failed else NOT_FAILED
    origin = Origin(NAME, "payload", gap=GAP if failed else None)
    executed = None if failed else Executed.YES if finished else Executed.MAYBE
    fault = fault_of(found, origin, executed, fatal=failed)
    if len(errors) > 1:
        fault = replace(fault, errors=parts_in(errors, origin, executed, fatal=failed))
    return Reading(failed, fault, origin.path, found, failed)


def webhook_error(document: dict[str, Any]) -> Reading | None:
    """
    Read a webhook that reports a failed task. Returns None for another document.

    >>> webhook_error({"task_id": "t", "status": "failed", "result": {"adcp_error": {"code": "CONFLICT"}}}).fault.code
    'CONFLICT'
    """
    status = plain(document.get("status"))  # a subclass of str may define another __hash__
    if not isinstance(status, str) or status not in FAILED_STATES or "result" not in document:
        return None
    result = as_dict(document["result"])
    if result is None:
        return None
    if members.truthy(result.get(KEY)):
        return envelope_error(result[KEY], _RESULT, beside=(result,))
    return payload_error(result, failed=True, finished=False)


def document_error(document: dict[str, Any]) -> Reading:
    """Read a plain protocol envelope or payload that came without a transport."""
    if members.truthy(document.get(KEY)):
        return envelope_error(document[KEY], BARE, beside=(document,))
    reported = webhook_error(document)
    if reported is not None:
        return reported
    status = members.text(document.get("status"))
    failed = status in FAILED_STATES or (status is None and not _has_data(document))
    reading = payload_error(document, failed=failed, finished=status in FINISHED_STATES)
    return reading or (FAILED if failed else NOT_FAILED)


def _has_data(document: dict[str, Any]) -> bool:
    payload = document.get("payload")
    return not _NO_DATA.issuperset(document) or (
        isinstance(payload, dict) and not _NO_DATA.issuperset(payload)
    )


def has_error(document: dict[str, Any]) -> bool:
    """Whether a document has an error in one of the places of this module."""
    return (
        members.truthy(document.get(KEY))
        or listed(document) is not None
        or webhook_error(document) is not None
    )


def listed(holder: Any) -> list[Any] | None:
    """Return `payload.errors`, else `errors`, of an object: a list whose first item is truthy; None without one."""
    document = as_dict(holder)
    if document is None:
        return None
    for inner in (as_dict(document.get("payload")), document):
        errors = None if inner is None else inner.get("errors")
        if isinstance(errors, list | tuple) and errors and members.truthy(errors[0]):
            return list(errors)
    return None
