"""
Waits as services write them: numbers, durations, instants.

A number above 10**9 is an instant whatever the member or header is called: in seconds since the epoch, or in milliseconds
above 10**12. A wait of more than a century counts as a century: it is longer than anybody waits, and not absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite

__all__ = [
    "IMPOSSIBLE",
    "bounded",
    "date",
    "duration",
    "is_instant",
    "number",
    "seconds_of",
    "seconds_since_epoch",
    "until",
]

IMPOSSIBLE = 100 * 366 * 86400.0
"""Seconds. A longer wait is cut to this one, which is too long for every policy."""

_EPOCH = 1_000_000_000
# In milliseconds, 10**12 is the year 2001; a smaller number would be seconds of a time centuries away.
_MILLISECONDS = 10**12
_MICROSECONDS = 10**14
_NANOSECONDS = 10**17

_DIGITS = frozenset("0123456789.-+eE")
_LONGEST_NUMBER = 32
_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|us|µs|ns|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[smhd])")
_ISO_DURATION = re.compile(
    r"P(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
_CLOCK = re.compile(r"(?:(\d{1,5})\.)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
"""A duration as .NET writes it: 00:00:05, 1.02:00:00."""


def number(value: str | None) -> float | None:
    """Return a plain finite decimal number, or None. float() accepts more ("1_0", "nan", "infinity")."""
    if not value or len(value) > _LONGEST_NUMBER or not _DIGITS.issuperset(value):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if isfinite(found) else None


def duration(value: str) -> float | None:
    """
    Return the seconds of a duration with units, or None.

    >>> duration("6m0s"), duration("34.07s"), duration("PT1M30S"), duration("00:01:30"), duration("soon")
    (360.0, 34.07, 90.0, 90.0, None)
    """
    if not 1 < len(value) <= 32:
        return None
    if value[-1] == "s" and value[:-1].isdecimal():
        # Whole seconds, as google.rpc writes most delays: 0.1 instead of 0.3 of the 15 µs that a vendor's body may take.
        return float(value[:-1])
    one = _PART.fullmatch(value)
    if one is not None:
        return float(one[1]) * _UNITS[one[2]]
    if _DURATION.fullmatch(value):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(value))
    found = _ISO_DURATION.fullmatch(value) or _CLOCK.fullmatch(value)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


def is_instant(value: float) -> bool:
    """Return whether a number names a point in time, not a number of seconds."""
    return value > _EPOCH


def seconds_since_epoch(value: float) -> float:
    """Return a number that names a point in time, in seconds; it may be in milliseconds, micro- or nanoseconds."""
    if value > _NANOSECONDS:
        return value / 1_000_000_000
    if value > _MICROSECONDS:
        return value / 1_000_000
    return value / 1000 if value > _MILLISECONDS else value


def date(value: str) -> float | None:
    """
    Return an HTTP date or an RFC 3339 instant as seconds since the epoch, or None. A date without a zone is UTC.

    >>> date("2024-01-01T00:00Z"), date("Mon, 01 Jan 2024 00:00:00 GMT")
    (1704067200.0, 1704067200.0)
    """
    if not value or len(value) > 64:
        return None
    from datetime import UTC, datetime

    try:
        if value[:4].isdigit() and value[4:5] == "-":
            found = datetime.fromisoformat(value.removesuffix(" UTC").removesuffix(" GMT"))
        else:
            from email.utils import parsedate_to_datetime

            found = parsedate_to_datetime(value)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return found.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def bounded(wait: float | None) -> float | None:
    """Return a wait of at most a century; None for a negative one."""
    return None if wait is None or not wait >= 0 else min(wait, IMPOSSIBLE)


def seconds_of(value: str, headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """
    Return the seconds that a text asks to wait: a number, a duration or a point in time. None if it is unusable.

    Args:
        value: the text.
        headers: the response's, with names in lower case, for the sender's `Date`.
        now: the clock, called only for a point in time without that header.

    >>> seconds_of("1m30s", {}, None), seconds_of("1700000060", {}, lambda: 1700000000.0)
    (90.0, 60.0)

    """
    if len(value) > _LONGEST_NUMBER and value.isascii() and value.isdecimal():
        return IMPOSSIBLE
    amount = number(value)
    if amount is not None:
        if is_instant(amount):
            return until(seconds_since_epoch(amount), headers, now)
        return bounded(amount)
    length = duration(value)
    if length is not None:
        return bounded(length)
    point = date(value)
    return None if point is None else until(point, headers, now)


def until(point: float, headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """
    Return the seconds until a point in time, by the sender's `Date` if there is one: our clock may be wrong.

    Without it, a point in the past says nothing: clocks differ.

    >>> until(60.0, {"date": "Thu, 01 Jan 1970 00:01:00 GMT"}, None), until(60.0, {}, lambda: 61.0)
    (0.0, None)
    """
    present = date(headers.get("date", ""))
    if present is not None:
        return bounded(max(0.0, point - present))
    return None if now is None else bounded(point - now())
