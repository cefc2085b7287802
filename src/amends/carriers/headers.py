"""
What response headers say about retrying: waits and verdicts, and which of them counts.

Waits, in order of precedence: `retry-after-ms` and its like, `Retry-After`, then the rate limits of which nothing remains
(`amends.carriers.limits`). Verdicts: "no" is obeyed; "yes" overrides neither bounds nor whether a repeat is safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from amends.carriers.limits import exhausted, is_used_up, reset
from amends.core.instants import bounded, number, seconds_of

__all__ = ["is_used_up", "lower_names", "reset", "verdict", "wait"]


def lower_names(headers: Any) -> dict[str, str]:
    """
    Return headers with their names in lower case and their values as text; of several values the first.

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
        text = _text(value[0] if isinstance(value, (list, tuple)) and value else value)
        if key is not None and text is not None:
            found.setdefault(str.lower(key), str.strip(text))
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
        elif "retry" in name or name == "x-ogw-ratelimit-reset":
            if name.endswith(_MILLISECONDS):
                amount = number(value)
                found = None if amount is None else bounded(amount / 1000)
                # The first one that is usable; `retry-after-ms` before gRPC's.
                if found is not None and (
                    name != "grpc-retry-pushback-ms" or "retry-after-ms" not in headers
                ):
                    return found
            elif seconds is None and name.endswith(_SECONDS):
                seconds = seconds_of(value, headers, now)
        elif "limit" in name:
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


# AWS sends x-amz-retry-after in milliseconds.
_MILLISECONDS = ("-ms", "-milliseconds", "x-amz-retry-after")
# Feishu sends x-ogw-ratelimit-reset only with a refusal.
_SECONDS = ("retry-after", "x-ogw-ratelimit-reset", "retry-after-seconds", "retryafter", "retry-in")


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
