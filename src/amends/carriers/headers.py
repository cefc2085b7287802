"""
What response headers say about retrying: waits and verdicts, and which of them counts.

Waits, in order of precedence: `retry-after-ms` and its like, `Retry-After`, then the rate limits of which nothing remains
(`amends.carriers.limits`). Verdicts: "no" is obeyed; "yes" overrides neither bounds nor whether a repeat is safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from amends.carriers.limits import describes_limit, exhausted, is_used_up, reset
from amends.core.instants import bounded, number, seconds_of

__all__ = ["is_used_up", "lower_names", "reset", "verdict", "wait"]


def lower_names(headers: Any) -> dict[str, str]:
    """
    Return headers with their names in lower case and their values as text; of several values the first.

    The values of `RateLimit` are one list, however many headers it is sent in.

    Takes a mapping or a list of pairs. Names and values may be bytes, values also numbers and lists; anything else is
    left out.
    """
    found: dict[str, str] = {}
    if isinstance(headers, dict):
        for name, value in headers.items():
            if not (isinstance(name, str) and isinstance(value, str)):
                break
            found.setdefault(str.lower(name), str.strip(value))
        else:
            return found
    for name, value in _pairs(headers):
        key = _text(name) if isinstance(name, (str, bytes)) else None
        values = [_text(each) for each in (value if isinstance(value, (list, tuple)) else (value,))]
        if key is None or not values or values[0] is None:
            continue
        lower = str.lower(key)
        if lower.endswith("ratelimit"):
            found[lower] = ", ".join(each for each in (found.get(lower), *values) if each)
        else:
            found.setdefault(lower, str.strip(values[0]))
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
    limited = False
    seconds = None
    for name, value in headers.items():
        if name in _USAGES:
            seconds = seconds or _regained(value)
        elif "retry" in name or name in _OTHERS:
            if name.endswith(_MILLISECONDS):
                amount = number(value)
                found = None if amount is None else bounded(amount / 1000)
                # The first one that is usable; `retry-after-ms` before gRPC's.
                if found is not None and (
                    name != "grpc-retry-pushback-ms" or "retry-after-ms" not in headers
                ):
                    return found
            elif seconds is None and (name.endswith(_SECONDS) or name.startswith("retry-after-")):
                seconds = seconds_of(value, headers, now)
                if seconds is None and "," in value:
                    seconds = _longest(value)
        elif name == "x-sentry-rate-limits":
            seconds = seconds or _longest(value)
        elif describes_limit(name):
            limited = True
    if seconds is not None:
        return seconds
    return exhausted(headers, now) if limited else None


_USAGES = frozenset({"x-business-use-case-usage", "x-ad-account-usage"})
"""Headers of Meta: JSON with the minutes or seconds until calls are allowed again."""
_REGAINED = re.compile(r'"(estimated_time_to_regain_access|reset_time_duration)"\s*:\s*(\d{1,9})')


def _regained(value: str) -> float | None:
    """Return the longest wait of a usage header, in seconds."""
    found = _REGAINED.findall(value[:8192])
    waits = [float(amount) * (60 if name[0] == "e" else 1) for name, amount in found]
    return max(waits, default=0.0) or None


def _longest(value: str) -> float | None:
    """
    Return the longest wait of a list, or None.

    Proxies join a header that was sent twice; Sentry lists its limits: `60:transaction:key, 2700::organization`.
    """
    waits = [bounded(number(each.partition(":")[0].strip())) for each in value[:8192].split(",")]
    return max((each for each in waits if each is not None), default=None)


# AWS sends x-amz-retry-after in milliseconds.
_MILLISECONDS = ("-ms", "-milliseconds", "x-amz-retry-after")
_OTHERS = ("x-ogw-ratelimit-reset", "x-next-replenishment-time")
"""Waits with other names, which Feishu and Walmart send only with a refusal."""
_SECONDS = ("retry-after", "retry-after-seconds", "retryafter", "retry-in", *_OTHERS)


def verdict(headers: Mapping[str, str]) -> bool | None:
    """Return whether the server wants a retry, or None if the headers do not say. Any "no" wins."""
    answers = []
    for name in ("x-should-retry", "stripe-should-retry"):
        answer = headers.get(name, "").lower()
        if answer in {"true", "false"}:
            answers.append(answer == "true")
    pushback = headers.get("grpc-retry-pushback-ms")
    if pushback is not None:
        # gRPC: a negative or unreadable value means "do not retry".
        value = number(pushback)
        answers.append(value is not None and value >= 0)
    return all(answers) if answers else None
