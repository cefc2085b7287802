"""
What travels beside the errors of ARCP and of tasks, in `details.amends`: their formats have no place for it (M8).

| member | field of the Fault |
|---|---|
| `tries` | `attempt`: the tries that were made below |
| `executed` | `executed` |
| `retry_after_ms` | `retry_after` |
| `actor` | `actor` |

Only members that differ from what a reader would derive are written, and none if there are none. A reader removes the object
again, so that the details equal those that were raised. An `amends` of the producer's own, with other members, is left alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from amends.core.enums import Actor, Executed
from amends.core.fault import Fault
from amends.dialects import members

__all__ = ["KEY", "Beside", "join_details", "split_details"]

KEY = "amends"
_MOST_TRIES = 1_000_000
_LONGEST_MS = 366 * 86_400_000
_MEMBERS = frozenset({"tries", "executed", "retry_after_ms", "actor"})


class Beside(NamedTuple):
    """What was read beside an error; None where nothing was."""

    tries: int | None = None
    executed: Executed | None = None
    retry_after: float | None = None
    actor: Actor | None = None


_NOTHING = Beside()


def join_details(fault: Fault, *, executed: Executed, actor: Actor | None) -> dict[str, Any] | None:
    """
    Return the details to write for a fault.

    Args:
        fault: the fault.
        executed: what a reader derives from the code.
        actor: who has to act, as a reader derives it.
    """
    beside: dict[str, Any] = {}
    if fault.attempt is not None and fault.attempt > 1:
        beside["tries"] = fault.attempt
    wait = fault.retry_after
    if wait is not None and math.isfinite(wait) and wait > 0:
        beside["retry_after_ms"] = min(_LONGEST_MS, math.ceil(wait * 1000))
    # M3: with a wait, a reader could take the error for an invitation to repeat the call.
    if fault.executed is not executed or ("retry_after_ms" in beside and fault.executed is not Executed.NO):
        beside["executed"] = fault.executed.value
    if fault.actor is not actor:
        beside["actor"] = fault.actor.value
    if not beside or (fault.details is not None and KEY in fault.details):
        return fault.details
    return {**(fault.details or {}), KEY: beside}


def split_details(details: dict[str, Any] | None) -> tuple[dict[str, Any] | None, Beside]:
    """Return the details as they were raised, and what travelled beside the error. Members of the wrong type are ignored."""
    beside = None if details is None else details.get(KEY)
    if details is None or not isinstance(beside, dict) or not beside or not _MEMBERS.issuperset(beside):
        return details, _NOTHING
    rest = {name: value for name, value in details.items() if name != KEY}
    wait = _count(beside.get("retry_after_ms"), _LONGEST_MS)
    found = Beside(
        tries=_count(beside.get("tries"), _MOST_TRIES),
        executed=members.executed(beside.get("executed")),
        retry_after=None if wait is None else wait / 1000,
        actor=members.actor(beside.get("actor")),
    )
    return rest or None, found


def _count(value: Any, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most else None
