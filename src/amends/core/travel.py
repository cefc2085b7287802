"""
What travels beside an error (M8): the tries made below, and whether the failed call may have had its effect.

| format | place |
|---|---|
| MCP | `_meta` of the result |
| A2A | `metadata` of the part that holds `adcp_error` |
| JSON-RPC | beside `adcp_error` in `data` |
| problem | the members `attempt` and `executed` (`amends.dialects.problem`) |
| envelope | `meta.attempt`, `error.executed` (`amends.dialects.envelope`) |

The error object itself is never changed. A request carries `amends/hops` (`amends.chain.Hop`) in the same places.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.wire import as_dict, plain

__all__ = ["EXECUTED", "HOPS", "KEY", "TRIES", "count", "read", "write"]

TRIES = "amends/tries"
"""Calls made for this request at the service that failed, by all layers below the sender."""
EXECUTED = "amends/executed"
"""Whether the failed call may have had its effect: no, maybe or yes."""
HOPS = "amends/hops"
"""In a request: the agents that it came through."""
KEY = "amends/key"
"""In a request: the idempotency key."""

_EXECUTED = {each.value: each for each in Executed}
_MOST = 1_000_000


def write(fault: Fault) -> dict[str, Any]:
    """
    Return the members that are sent beside the error of a fault.

    `executed` is always there: a reader that finds it does not have to derive it from the code.

    >>> write(Fault(code="TIMEOUT", attempt=3))
    {'amends/executed': 'maybe', 'amends/tries': 3}
    """
    members: dict[str, object] = {EXECUTED: fault.executed.value}
    if fault.attempt is not None and fault.attempt > 1:
        members[TRIES] = fault.attempt
    return members


def read(fault: Fault, members: object) -> Fault:
    """
    Return the fault with what was sent beside its error. Values of the wrong type count as absent.

    Args:
        fault: the fault of the error.
        members: the object in which the members may be; any value is accepted.

    >>> read(Fault(code="TIMEOUT"), {"amends/executed": "no", "amends/tries": 3.0}).attempt
    3

    """
    found = as_dict(members)
    if found is None:
        return fault
    stated = plain(found.get(EXECUTED))
    executed = _EXECUTED.get(stated) if isinstance(stated, str) else None
    tries = count(plain(found.get(TRIES)))
    if executed is None and not tries:
        return fault
    return replace(fault, executed=executed or fault.executed, attempt=tries or fault.attempt)


def count(value: object) -> int:
    """
    Return a count received from outside, at most a million; 0 for a value that is none.

    >>> count(2), count(2.0), count("2"), count(True), count(-1), count(float("nan"))
    (2, 2, 0, 0, 0, 0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    # A2A's metadata has no integers.
    if isinstance(value, float) and not value.is_integer():
        return 0
    return int(min(value, _MOST)) if value > 0 else 0
