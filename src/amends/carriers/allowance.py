"""
How many calls the headers of an answer still allow, and for how long: `RateLimit`, `RateLimit-Remaining`,
`x-ratelimit-remaining`. Pure: the time is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["allowance"]

_PREFIXES = ("ratelimit-", "x-ratelimit-", "x-rate-limit-")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_EPOCH = 1_000_000_000
"""A reset above this is a point in time, one below it a number of seconds. Both are in use."""
_LONGEST = 86_400.0
"""Seconds. A limit that lasts longer than a day is a quota, which pacing cannot keep."""


def allowance(headers: Mapping[str, Any], now: float) -> tuple[int, float] | None:
    """
    Return how many calls are allowed and within how many seconds, or None if the headers do not say.

    Of several limits, the one that allows the fewest calls per second counts.

    Args:
        headers: headers that are looked up without regard to case, or whose names are in lower case.
        now: the current time in seconds since the epoch.

    >>> allowance({"ratelimit": '"burst";r=20;t=1, "hour";r=300;t=600'}, now=0)
    (300, 600.0)
    >>> allowance({"x-ratelimit-remaining": "59", "x-ratelimit-reset": "1700000060"}, now=1700000000)
    (59, 60.0)

    """
    found = [
        limit for item in _items(headers.get("ratelimit")) if (limit := _limit(*item, now=now)) is not None
    ]
    for prefix in _PREFIXES:
        limit = _limit(headers.get(f"{prefix}remaining"), headers.get(f"{prefix}reset"), now=now)
        if limit is not None:
            found.append(limit)
    return min(found, key=lambda each: each[0] / each[1], default=None)


def _items(value: Any) -> list[tuple[str | None, str | None]]:
    """Return remaining and reset of each limit: `"policy";r=5;t=30`, or `limit=9, remaining=5, reset=30` as in old drafts."""
    if not isinstance(value, str) or len(value) > 1000:
        return []
    if "remaining=" in value:
        members = dict(part.strip().partition("=")[::2] for part in value.split(","))
        return [(members.get("remaining"), members.get("reset"))]
    parameters = [
        dict(part.strip().partition("=")[::2] for part in item.split(";")[1:]) for item in value.split(",")
    ]
    return [(each.get("r"), each.get("t")) for each in parameters]


def _limit(remaining: Any, reset: Any, *, now: float) -> tuple[int, float] | None:
    left, seconds = _number(remaining), _number(reset)
    if left is None or seconds is None:
        return None
    if seconds > _EPOCH:
        seconds -= now
    return (int(left), seconds) if 0 < seconds <= _LONGEST else None


def _number(value: Any) -> float | None:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return None
    return float(value)
