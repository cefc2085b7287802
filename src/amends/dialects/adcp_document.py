"""
AdCP documents that contain an error object: a protocol envelope, or the payload of a task.

An envelope has a `status` and a `payload`. Its error is `adcp_error`, else the first of `payload.errors`, else the first of
`errors` (A6). A payload without a status reports a failure if it has no data beside its errors: AdCP's schemas define a
task's response as either data or errors. With data beside them, the errors are remarks.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.wire import as_dict
from amends.dialects import members
from amends.dialects.adcp_object import BARE, KEY, NAME, fault_of, parts_in, plain_error

__all__ = [
    "FAILED_STATES",
    "FINISHED_STATES",
    "envelope_fault",
    "fault_in",
    "has_error",
    "listed",
    "payload_fault",
]

FAILED_STATES = frozenset({"failed", "rejected", "TASK_STATE_FAILED", "TASK_STATE_REJECTED"})
FINISHED_STATES = frozenset({"completed", "TASK_STATE_COMPLETED"})

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


def has_error(document: dict[str, Any]) -> bool:
    """Whether a document has an error in one of the places of this module."""
    return members.truthy(document.get(KEY)) or listed(document) is not None


def fault_in(document: dict[str, Any]) -> tuple[Any, Fault | None, bool]:
    """Return the error object of a plain document, its Fault (None if it is invalid), and whether the document failed."""
    if members.truthy(document.get(KEY)):
        error, fault = envelope_fault(document[KEY], BARE, beside=(document,))
        return error, fault, True
    status = members.text(document.get("status"))
    failed = status in FAILED_STATES or (status is None and not _has_data(document))
    error, fault = payload_fault(document, failed=failed, finished=status in FINISHED_STATES)
    return error, fault, failed


def _has_data(document: dict[str, Any]) -> bool:
    payload = document.get("payload")
    return not _NO_DATA.issuperset(document) or (
        isinstance(payload, dict) and not _NO_DATA.issuperset(payload)
    )


def envelope_fault(
    error: Any,
    origin: Origin,
    executed: Executed | None = None,
    beside: tuple[dict[str, Any], ...] = (),
    within: int | None = None,
) -> tuple[Any, Fault | None]:
    """
    Return what is under `adcp_error` as a plain object and as a Fault; None and None if it is invalid.

    The fault's parts are the errors inside the object, then those of the first of `beside` that has any. A list with
    nothing but the error itself is no list of parts (A5).

    Args:
        error: the value.
        origin: where it was found.
        executed: used instead of the code's own, if given.
        beside: objects in which `errors` may be.
        within: size of the document that the value was parsed from, if it was.

    """
    found = plain_error(error, within)
    if found is None:
        return None, None
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
    return found, fault


def payload_fault(payload: Any, *, failed: bool, finished: bool) -> tuple[Any, Fault | None]:
    """
    Return `payload.errors[0]`, else `errors[0]`, as a plain object and as a Fault; None and None if it is invalid.

    Args:
        payload: what the tool or task returned.
        failed: whether the response reports a failure.
        finished: whether it reports a success: the call then had its effect, whatever the remark is about (M3).

    """
    errors = listed(payload)
    found = None if errors is None else plain_error(errors[0])
    if errors is None or found is None:
        return None, None
    origin = Origin(NAME, "payload", gap=GAP if failed else None)
    executed = None if failed else Executed.YES if finished else Executed.MAYBE
    fault = fault_of(found, origin, executed, fatal=failed)
    if len(errors) > 1:
        fault = replace(fault, errors=parts_in(errors, origin, executed, fatal=failed))
    return found, fault


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
