"""
AdCP's two layers: `adcp_error` for what failed, `errors[]` in the payload for both failures and remarks (A5, A6, A7).

The first truthy value under the key decides, where truthy has JavaScript's meaning; if it is invalid, none is found.
`errors[]` beside an `adcp_error` become the parts of the fault, and a server writes them beside it again.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core import travel
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.wire import as_dict
from amends.dialects.adcp_document import envelope_fault, fault_in, listed, payload_fault
from amends.dialects.adcp_object import KEY, NAME, parts_in

__all__ = ["KEY", "document_error", "envelope_error", "parts_beside", "payload_error"]


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

    Args:
        error: the value.
        origin: where it was found.
        executed: used instead of the code's own, if given.
        beside: objects in which further `errors` may be; the first that has any counts.
        within: the size of the document that the value was parsed from, if it was.
        meta: the object with what was sent beside the error: the tries made below, and `executed` (M8).

    """
    found, fault = envelope_fault(error, origin, executed, beside, within)
    if fault is None:
        return FAILED
    if meta is not None:
        fault = travel.read(fault, as_dict(meta))
    return Reading(True, fault, origin.path, found, True)


def payload_error(payload: Any, *, failed: bool, finished: bool) -> Reading | None:
    """
    Read `payload.errors[0]`, then `errors[0]`. Returns None if neither is there.

    Args:
        payload: what the tool or task returned.
        failed: whether the response reports a failure.
        finished: whether it reports a success: the call then had its effect, whatever the remark is about (M3).

    """
    if listed(payload) is None:
        return None
    found, fault = payload_fault(payload, failed=failed, finished=finished)
    if fault is None:
        return FAILED if failed else NOT_FAILED
    return Reading(failed=failed, fatal=failed, path="payload", error=found, fault=fault)


def document_error(document: dict[str, Any]) -> Reading:
    """Read a protocol envelope or a payload that came without a transport."""
    found, fault, failed = fault_in(document)
    if fault is None:
        return FAILED if failed else NOT_FAILED
    path = None if fault.origin is None else fault.origin.path
    return Reading(failed=failed, fatal=failed, path=path, error=found, fault=fault)


def parts_beside(fault: Fault) -> tuple[Fault, ...]:
    """
    Return the parts that a server writes as `errors[]` beside the `adcp_error` of a fault.

    Parts that were received inside the error object are written inside it again, and parts that are not AdCP errors are
    left out.
    """
    inside = 0
    if fault.origin is not None and fault.origin.dialect == NAME:
        inside = len(parts_in(fault.extensions.get("errors"), fault.origin))
    return tuple(part for part in fault.errors[inside:] if part.vocabulary == NAME)
