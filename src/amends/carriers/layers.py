"""
S4's two layers: `adcp_error` for what failed, `errors[]` in the payload for remarks and for both (A5, A6, A7).

The first truthy value under the key decides, in JavaScript's sense of truth; where it is invalid, none is found.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.enums import Executed
from amends.core.fault import Origin
from amends.dialects.adcp import fault_of, valid

__all__ = ["KEY", "envelope_error", "payload_error", "truthy"]

KEY = "adcp_error"

GAP = "a fatal failure belongs in adcp_error as well as in errors[]"
"""Said of a sender that reports a failure in the payload alone (A5)."""


def truthy(value: Any) -> bool:
    """JavaScript's truth: empty objects and arrays count, NaN does not."""
    if value.__class__ is dict or value.__class__ is list:
        return True
    return bool(value) and value == value  # noqa: PLR0124 - NaN is the one value that differs from itself


def envelope_error(error: Any, origin: Origin, executed: Executed | None = None) -> Reading:
    """The reading of a truthy value found under `adcp_error`: its presence alone means that the call failed."""
    if not valid(error):
        return FAILED
    return Reading(True, fault_of(error, origin, executed), origin.path, error, True)


def payload_error(payload: Any, *, failed: bool, finished: bool) -> Reading | None:
    """
    The reading of `payload.errors[0]`, then `errors[0]`; None where neither holds anything.

    Args:
        payload: what the tool or task gave.
        failed: whether the response reports a failure.
        finished: whether it reports a success, so that what is remarked on did happen (M3).

    """
    if payload.__class__ is not dict:
        return None
    for holder in (payload.get("payload"), payload):
        errors = holder.get("errors") if holder.__class__ is dict else None
        if errors.__class__ is list and errors and truthy(errors[0]):
            return _payload(errors[0], failed=failed, finished=finished)
    return None


def _payload(error: Any, *, failed: bool, finished: bool) -> Reading:
    if not valid(error):
        return FAILED if failed else NOT_FAILED
    origin = Origin("adcp", "payload", gap=GAP if failed else None)
    executed = None if failed else Executed.YES if finished else Executed.MAYBE
    fault = fault_of(error, origin, executed)
    return Reading(failed=failed, fatal=failed, path="payload", error=error, fault=fault)
