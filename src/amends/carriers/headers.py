"""
What response headers say about trying again: waits, verdicts, and which of them counts.

Waits, the first that is there: `retry-after-ms`, `Retry-After`, then `RateLimit` and `x-ratelimit-reset` where
nothing remains. Verdicts: "no" is obeyed; "yes" overrides neither bounds nor whether a repeat is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

__all__ = ["lowered", "telling", "verdict", "wait"]

_LIMITS = ("x-ratelimit-", "ratelimit-", "x-rate-limit-")
# Most responses have none of these.
_VERDICTS = frozenset({"x-should-retry", "stripe-should-retry", "grpc-retry-pushback-ms"})
_WAITS = frozenset(
    {
        *("retry-after-ms", "grpc-retry-pushback-ms", "retry-after", "ratelimit"),
        *(f"{prefix}remaining" for prefix in _LIMITS),
    }
)

# Everything that is read here, and how long the names are: a cheaper question than how they are spelled.
_TELLING = _WAITS | _VERDICTS | {"date", *(f"{prefix}reset" for prefix in _LIMITS)}
_LENGTHS = frozenset(map(len, _TELLING))

_EPOCH = 1_000_000_000
"""A reset above this is a point in time, below it a number of seconds; both are in use."""


def lowered(headers: Any) -> dict[str, str]:
    """Header names in lower case, values as text; of several values the first. Anything else is no header."""
    if headers.__class__ is not dict and not isinstance(headers, Mapping):
        return {}
    found: dict[str, str] = {}
    for name, value in headers.items():
        if value.__class__ is str and name.__class__ is str:
            name = name.lower()  # noqa: PLW2901
            if name not in found:
                found[name] = value.strip()
            continue
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(name, bytes):
            name = name.decode("latin-1")  # noqa: PLW2901
        if isinstance(first, bytes):
            first = first.decode("latin-1")
        if isinstance(first, bool) or not isinstance(first, str | int | float) or not isinstance(name, str):
            continue
        if isinstance(first, int) and abs(first) > 10**32:
            # Longer than any number read below, and beyond what the interpreter writes out.
            continue
        found.setdefault(name.lower(), str(first).strip())
    return found


def telling(headers: Any) -> dict[str, str]:
    """The same of those headers that say anything about trying again; the others cost no more than a look."""
    if headers.__class__ is dict:
        headers = {
            name: value
            for name, value in headers.items()
            if name.__class__ is not str or (len(name) in _LENGTHS and name.lower() in _TELLING)
        }
    return lowered(headers) if headers else {}


def wait(headers: Mapping[str, str], now: Callable[[], float] | None = None) -> float | None:
    """
    Seconds the headers ask for, or None.

    Args:
        headers: with names in lower case.
        now: the clock, asked only where a point in time has to become a wait and the response has no `Date`.

    """
    if _WAITS.isdisjoint(headers):
        return None
    if "retry-after-ms" in headers or "grpc-retry-pushback-ms" in headers:
        for name in ("retry-after-ms", "grpc-retry-pushback-ms"):
            value = _number(headers.get(name))
            if value is not None and value >= 0:
                return value / 1000
    found = _retry_after(headers, now) if "retry-after" in headers else None
    return found if found is not None else _rate_limit(headers, now)


def verdict(headers: Mapping[str, str]) -> bool | None:
    """Whether the failing side wants another try: True, False, or None when it does not say. Any "no" is obeyed."""
    if _VERDICTS.isdisjoint(headers):
        return None
    answers = [
        headers[name].lower() == "true"
        for name in ("x-should-retry", "stripe-should-retry")
        if name in headers and headers[name].lower() in {"true", "false"}
    ]
    pushback = headers.get("grpc-retry-pushback-ms")
    if pushback is not None:
        # gRPC: negative or unreadable means do not try again.
        value = _number(pushback)
        answers.append(value is not None and value >= 0)
    return all(answers) if answers else None


def _until(point: float, headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """Seconds until a point in time, by the sender's own clock where it says it: a wrong one here does not matter."""
    present = _date(headers.get("date", ""))
    if present is None:
        if now is None:
            return None
        present = now()
    return max(0.0, point - present)


def _retry_after(headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    value = headers["retry-after"]
    seconds = _number(value)
    if seconds is not None:
        return seconds if seconds >= 0 else None
    date = _date(value)
    return None if date is None else _until(date, headers, now)


def _rate_limit(headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    """A rate limit's reset, only where nothing remains: otherwise it says nothing about this failure."""
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
    """One item of the structured `RateLimit` field: `"policy";r=0;t=30`."""
    parameters = dict(part.strip().partition("=")[::2] for part in item.split(";")[1:])
    if _number(parameters.get("r")) != 0:
        return None
    reset = _number(parameters.get("t"))
    return reset if reset is not None and reset >= 0 else None


def _number(value: str | None) -> float | None:
    """A plain finite decimal number, or None. Not everything float() takes is one ("1_0", "nan", "infinity")."""
    if value and len(value) < 10 and value.isascii() and value.isdecimal():
        return float(value)
    if not value or len(value) > 32 or not set(value) <= _DIGITS:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


_DIGITS = set("0123456789.-+eE")


def _date(value: str) -> float | None:
    """An HTTP date as seconds since the epoch; one without a zone is UTC. None for anything else."""
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
