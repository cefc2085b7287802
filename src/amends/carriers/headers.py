"""
What response headers say about retrying: waits and verdicts, and which of them counts.

Waits, in order of precedence: `retry-after-ms`, `Retry-After`, then `RateLimit` and `x-ratelimit-reset` where nothing
remains. Verdicts: "no" is obeyed; "yes" overrides neither bounds nor whether a repeat is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

__all__ = ["lower_names", "verdict", "wait"]

_LIMITS = ("x-ratelimit-", "ratelimit-", "x-rate-limit-")

_EPOCH = 1_000_000_000
"""A reset above this is a point in time, one below it a number of seconds. Both are in use."""


def lower_names(headers: Any) -> dict[str, str]:
    """
    Return headers with their names in lower case and their values as text; of several values the first.

    Takes a mapping or a list of pairs. Names and values may be bytes, values also numbers and lists; anything else is
    left out.
    """
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        key = _text(name) if isinstance(name, (str, bytes)) else None
        text = _text(value[0] if isinstance(value, (list, tuple)) and value else value)
        if key is not None and text is not None:
            found.setdefault(key.lower(), text.strip())
    return found


def _pairs(headers: Any) -> list[tuple[Any, Any]]:
    if isinstance(headers, Mapping):
        return list(headers.items())
    if not isinstance(headers, (list, tuple)):
        return []
    return [(pair[0], pair[1]) for pair in headers if isinstance(pair, (list, tuple)) and len(pair) == 2]


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, int) and abs(value) > 10**32:
        # Longer than any number that is read below, and perhaps too long for str().
        return None
    return str(value)


def wait(headers: Mapping[str, str], now: Callable[[], float] | None = None) -> float | None:
    """
    Return the seconds that headers ask to wait, or None.

    Args:
        headers: with names in lower case.
        now: the clock, called only for a point in time in a response without a `Date` header.

    """
    for name in ("retry-after-ms", "grpc-retry-pushback-ms"):
        value = _number(headers.get(name))
        if value is not None and value >= 0:
            return value / 1000
    found = _retry_after(headers, now)
    return found if found is not None else _rate_limit(headers, now)


def verdict(headers: Mapping[str, str]) -> bool | None:
    """Return whether the server wants a retry, or None if the headers do not say. Any "no" wins."""
    answers = [
        headers[name].lower() == "true"
        for name in ("x-should-retry", "stripe-should-retry")
        if name in headers and headers[name].lower() in {"true", "false"}
    ]
    pushback = headers.get("grpc-retry-pushback-ms")
    if pushback is not None:
        # gRPC: a negative or unreadable value means "do not retry".
        value = _number(pushback)
        answers.append(value is not None and value >= 0)
    return all(answers) if answers else None


def _until(point: float, headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """Return the seconds until a point in time, by the sender's `Date` if there is one: our clock may be wrong."""
    present = _date(headers.get("date", ""))
    if present is None:
        if now is None:
            return None
        present = now()
    return max(0.0, point - present)


def _retry_after(headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds if seconds >= 0 else None
    date = _date(value)
    return None if date is None else _until(date, headers, now)


def _rate_limit(headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """Return a rate limit's reset if nothing remains; otherwise the limit did not cause this failure."""
    items = headers.get("ratelimit", "").split(",")
    waits = [reset for item in items if (reset := _limit_item(item)) is not None]
    if waits:
        return max(waits)
    for prefix in _LIMITS:
        if _number(headers.get(f"{prefix}remaining")) == 0:
            reset = _number(headers.get(f"{prefix}reset"))
            if reset is not None and reset >= 0:
                return _until(reset, headers, now) if reset > _EPOCH else reset
    return None


def _limit_item(item: str) -> float | None:
    """Read one item of the structured `RateLimit` field: `"policy";r=0;t=30`."""
    parameters = dict(part.strip().partition("=")[::2] for part in item.split(";")[1:])
    if _number(parameters.get("r")) != 0:
        return None
    reset = _number(parameters.get("t"))
    return reset if reset is not None and reset >= 0 else None


def _number(value: str | None) -> float | None:
    """Return a plain finite decimal number, or None. float() accepts more ("1_0", "nan", "infinity")."""
    if not value or len(value) > 32 or not set(value) <= _DIGITS:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


_DIGITS = set("0123456789.-+eE")


def _date(value: str) -> float | None:
    """Return an HTTP date as seconds since the epoch, or None. A date without a zone is UTC."""
    if not value or len(value) > 64:
        return None
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return date.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
