"""
AdCP's two layers: `adcp_error` for what failed, `errors[]` in the payload for both failures and remarks (A5, A6, A7).

The first truthy value under the key decides, where truthy has JavaScript's meaning; if it is invalid, none is found.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core import travel
from amends.core.enums import Executed
from amends.core.fault import Origin
from amends.core.wire import as_dict
from amends.dialects.adcp import fault_of, plain_error
from amends.dialects.members import truthy

__all__ = ["KEY", "beside", "envelope_error", "payload_error"]

KEY = "adcp_error"

GAP = "a fatal failure belongs in adcp_error as well as in errors[]"
"""The gap of a sender that reports a failure in the payload alone (A5)."""


def envelope_error(
    error: Any, origin: Origin, executed: Executed | None = None, *, within: int | None = None
) -> Reading:
    """
    Read a truthy value found under `adcp_error`. Its presence alone means that the call failed.

    `within` is the size of the document that it was parsed from, if it was.
    """
    found = plain_error(error, within)
    if found is None:
        return FAILED
    return Reading(True, fault_of(found, origin, executed), origin.path, found, True)


def beside(reading: Reading, members: Any) -> Reading:
    """Return the reading with what was sent beside its error: the tries made below, and `executed` (M8)."""
    if reading.fault is None:
        return reading
    fault = travel.read(reading.fault, as_dict(members))
    return reading if fault is reading.fault else replace(reading, fault=fault)


def payload_error(payload: Any, *, failed: bool, finished: bool) -> Reading | None:
    """
    Read `payload.errors[0]`, then `errors[0]`. Returns None if neither is there.

    Args:
        payload: what the tool or task returned.
        failed: whether the response reports a failure.
        finished: whether it reports a success: the call then had its effect, whatever the remark is about (M3).

    """
    if not isinstance(payload, dict):
        return None
    for holder in (payload.get("payload"), payload):
        errors = holder.get("errors") if isinstance(holder, dict) else None
        if isinstance(errors, list) and errors and truthy(errors[0]):
            return _payload(errors[0], failed=failed, finished=finished)
    return None


def _payload(error: Any, *, failed: bool, finished: bool) -> Reading:
    found = plain_error(error)
    if found is None:
        return FAILED if failed else NOT_FAILED
    origin = Origin("adcp", "payload", gap=GAP if failed else None)
    executed = None if failed else Executed.YES if finished else Executed.MAYBE
    fault = fault_of(found, origin, executed)
    return Reading(failed=failed, fatal=failed, path="payload", error=found, fault=fault)
