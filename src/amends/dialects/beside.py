"""
What travels beside an error whose format has no member for it (M8): `details.amends` of an ARCP error.

| member | field of the Fault |
|---|---|
| `tries` | `attempt`: the tries that were made below |
| `executed` | `executed`, if a reader would assume another value |
| `retry_after_ms` | `retry_after` |
| `actor` | `actor`, if a reader would assume another one |

A reader removes the member again, so that `details` are as the producer raised them.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.enums import Actor, Executed
from amends.core.fault import Fault

__all__ = ["MEMBER", "read_beside", "write_beside"]

MEMBER = "amends"
_MOST_TRIES = 1_000
_LONGEST = 366 * 86_400_000
_MEMBERS = frozenset({"tries", "executed", "retry_after_ms", "actor", "code"})


def write_beside(fault: Fault, assumed: Fault, default: Actor | None) -> dict[str, Any]:
    """
    Return the members that travel beside a fault; empty if a reader would assume the same without them.

    Args:
        fault: what is written.
        assumed: what a reader would take from the error alone.
        default: the actor in the code's row, which the producer did not choose.
    """
    found: dict[str, Any] = {}
    if fault.attempt:
        found["tries"] = fault.attempt
    if fault.executed is not assumed.executed:
        found["executed"] = fault.executed.value
    if fault.retry_after is not None and math.isfinite(fault.retry_after):
        found["retry_after_ms"] = min(_LONGEST, math.ceil(fault.retry_after * 1000))
        if fault.executed is not Executed.NO:
            # A wait alone would be read as an invitation to repeat (M3).
            found["executed"] = fault.executed.value
    if fault.actor not in (None, default, assumed.actor):
        found["actor"] = str(fault.actor.value)
    return found


def read_beside(fault: Fault) -> Fault:
    """Return a received fault with the facts of `details.amends`; invalid members are ignored."""
    details = fault.details
    members = None if details is None else details.get(MEMBER)
    if details is None or not isinstance(members, dict) or not members or not _MEMBERS.issuperset(members):
        return fault
    changes: dict[str, Any] = {
        "details": {key: value for key, value in details.items() if key != MEMBER} or None
    }
    tries = members.get("tries")
    if isinstance(tries, int) and not isinstance(tries, bool) and 0 < tries <= _MOST_TRIES:
        changes["attempt"] = tries
    wait = members.get("retry_after_ms")
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait <= _LONGEST:
        seconds = wait / 1000
        changes["retry_after"] = int(seconds) if seconds.is_integer() else seconds
    for name, kind in (("executed", Executed), ("actor", Actor)):
        try:
            changes[name] = msgspec.convert(members[name], kind)
        except (KeyError, msgspec.ValidationError):
            continue
    return replace(fault, **changes)
