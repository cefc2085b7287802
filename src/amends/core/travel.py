"""
The members of a request that agents hand on: the idempotency key, and how many agents it came through.

What travels with a failure is the record (`amends.dialects.record`).
"""

from __future__ import annotations

__all__ = ["HOPS", "KEY", "count"]

HOPS = "amends/depth"
"""In a request: the number of agents that it came through (`amends.chain.Hop`)."""
KEY = "amends/key"
"""In a request: the idempotency key."""

_MOST = 1_000_000


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
