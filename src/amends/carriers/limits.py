"""
Rate limits in response headers: how many calls remain, and when the count starts again.

Names differ (`x-ratelimit-remaining`, `anthropic-ratelimit-tokens-remaining`, `x-ratelimit-reset-requests`,
`x-app-limit-24hour-reset`), so a header is taken apart: `remaining`, `reset` or `limit` say what the value is, and the rest
of the name says which limit it belongs to. The values of a reset differ too: seconds, durations, dates, seconds or
milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from amends.core.instants import bounded, duration, is_instant, number, seconds_of

__all__ = [
    "ALLOWANCE_FIELDS", "Limit", "allowance", "describes_limit", "exhausted", "fewest", "is_used_up", "limits", "published", "reset",
]  # fmt: skip

_KINDS = {
    "remaining": "remaining",
    "left": "remaining",
    "reset": "reset",
    "resets": "reset",
    "resettime": "reset",
    "limit": "limit",
    "quota": "limit",
    "status": "status",
    "interval": "interval",
}
_ENDS = ("remaining", "reset")
"""Ends of names such as `x-ratelimit-userremaining` (Imgur)."""
_MILLISECONDS = frozenset({"gw-ratelimit-reset"})
"""Resets in milliseconds whose names do not say so (KuCoin)."""
_LISTED = frozenset({"remaining", "reset", "limit"})
_NO_NAMES = frozenset({"x", "ms", "after", "milliseconds", "at", "time", "ratelimit", "seconds"})


class Limit(msgspec.Struct, frozen=True, gc=False):
    """One limit of a service, as its headers describe it."""

    name: str
    """What is limited: `requests`, `tokens`, a policy's name; empty if the headers name none."""
    limit: float | None = None
    """Calls or units per window."""
    remaining: float | None = None
    reset: float | None = None
    """Seconds until the count starts again."""


def describes_limit(name: str) -> bool:
    """
    Return whether a header is about a limit, by its name in lower case.

    >>> describes_limit("x-ratelimit-reset"), describes_limit("x-ms-user-quota-remaining"), describes_limit("etag")
    (True, True, False)
    """
    return "limit" in name or "quota" in name or name.startswith("anthropic-priority-")


def exhausted(headers: Mapping[str, str], now: Callable[[], float] | None = None) -> float | None:
    """
    Return the seconds until the limits that have nothing left start again; None if there are none.

    A limit with something remaining says nothing about a failure. Of several exhausted limits the longest wait counts.
    """
    found = limits(headers, now)
    empty = [each for each in found if each.remaining is not None and each.remaining <= 0]
    waits = [each.reset for each in empty if each.reset is not None]
    if empty and not waits:
        # One reset for all limits, which has a name of its own.
        waits = [each.reset for each in found if each.remaining is None and each.reset is not None]
    return max(waits, default=None)


def reset(headers: Mapping[str, str], now: Callable[[], float] | None = None) -> float | None:
    """
    Return the seconds until limits start again of which no header says how much remains; None if there are none.

    For a refusal that is a rate limit: the limit that is not described is the exhausted one.

    >>> reset({"x-contentful-ratelimit-reset": "45"})
    45.0
    """
    if not any("reset" in name for name in headers):
        return None
    found = limits(headers, now)
    if any(each.remaining is not None for each in found):
        return None
    return max((each.reset for each in found if each.reset is not None), default=None)


def is_used_up(headers: Mapping[str, str]) -> bool:
    """
    Return whether only limits are exhausted whose names say that they are counted per day or longer.

    >>> is_used_up({"x-ratelimit-remaining-day": "0", "x-ratelimit-remaining-minute": "5"})
    True
    """
    if not any("limit" in name and _is_long(f"{name} {headers[name]}") for name in headers):
        return False
    empty = [each.name for each in limits(headers) if each.remaining is not None and each.remaining <= 0]
    return bool(empty) and all(map(_is_long, empty))


def _is_long(name: str) -> bool:
    return any(part in name for part in _LONG)


_LONG = ("day", "daily", "month", "week")


def limits(headers: Mapping[str, str], now: Callable[[], float] | None = None) -> list[Limit]:
    """
    Return the limits that headers describe. The names of the headers are in lower case.

    >>> limits({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"})
    [Limit(name='tokens', limit=None, remaining=0.0, reset=360.0)]
    """
    found: dict[tuple[bool, str], dict[str, float]] = {}
    for name, value in headers.items():
        if not describes_limit(name) or len(value) > 512:
            continue
        if name == "ratelimit" or "=" in value:
            _add_structured(found, name, value, headers, now)
            continue
        kind, group = _parts(name)
        # A gateway sends its own `ratelimit-remaining` beside the `x-ratelimit-remaining` of the service behind it.
        prefixed = name.startswith("x-")
        if kind in _LISTED and "," in value and value[0] in "0123456789":
            # Several limits, in the same order in each header: `0, 1995` and `1, 86400`.
            for place, each in enumerate(value.split(",")[:8]):
                listed = _amount(kind, name, each.strip(), headers, now)
                if listed is not None:
                    found.setdefault((prefixed, f"{group}#{place}"), {})[kind] = listed
            continue
        amount = _amount(kind, name, value, headers, now)
        if kind is None or amount is None:
            continue
        facts = found.setdefault((prefixed, group), {})
        if kind == "status":
            facts["remaining"] = amount
        elif kind == "interval":
            facts.setdefault("reset", amount)
        elif kind == "reset" and "after" not in name:
            # `reset-after` is exact; `reset` beside it is a point in time on the sender's clock.
            facts.setdefault("reset", amount)
        else:
            facts[kind] = amount
    return [
        Limit(name, facts.get("limit"), facts.get("remaining"), facts.get("reset"))
        for (_, name), facts in found.items()
    ]


def _parts(name: str) -> tuple[str | None, str]:
    """Return what a header says of a limit, and which limit that is."""
    tokens = name.replace("rate-limit", "ratelimit").split("-")
    kind = None
    for token in reversed(tokens):
        # In `x-app-limit-24hour-reset` the last of them counts.
        if token in _KINDS:
            kind = token
            break
    if kind is None:
        for end in _ENDS:
            if tokens[-1].endswith(end):
                return end, "-".join((*tokens[:-1], tokens[-1].removesuffix(end)))
        return None, ""
    tokens.remove(kind)
    return _KINDS[kind], "-".join(token for token in tokens if token not in _NO_NAMES)


def _amount(
    kind: str | None,
    name: str,
    value: str,
    headers: Mapping[str, str],
    now: Callable[[], float] | None,
) -> float | None:
    if kind == "status":
        return 0.0 if value in {"rejected", "exceeded"} else None
    if kind == "interval":
        found = number(value)
        if found is None:
            return bounded(duration(value))
        if name.endswith("-seconds"):
            return bounded(found)
        return bounded(found / 1000) if name.endswith(("-ms", "-milliseconds")) else None
    if kind == "reset":
        amount = number(value) if name.endswith("-ms") or name in _MILLISECONDS else None
        if amount is not None and not is_instant(amount):
            return bounded(amount / 1000)
        return seconds_of(value, headers, now)
    return number(value.partition(";")[0].partition(",")[0].strip())


def _add_structured(
    found: dict[tuple[bool, str], dict[str, float]],
    name: str,
    value: str,
    headers: Mapping[str, str],
    now: Callable[[], float] | None,
) -> None:
    """Add the limits of `"api";r=0;t=55`, of `limit=100, remaining=0, reset=30`, and of `0;w=21600`."""
    if '"' in value or ";r=" in value.replace(" ", ""):
        for item in value.split(","):
            policy, *rest = item.split(";")
            facts = _pairs(rest, headers, now)
            if facts:
                # `RateLimit` and `RateLimit-Policy` describe the same limits, each a part of them.
                found.setdefault((False, policy.strip().strip('"')), {}).update(facts)
        return
    facts = _pairs(value.replace(",", ";").split(";"), headers, now)
    if "remaining" in facts or "reset" in facts:
        found[(False, name)] = facts
        return
    kind, group = _parts(name)
    amount = number(value.partition(";")[0].strip())
    if kind in {"remaining", "limit"} and amount is not None:
        found.setdefault((name.startswith("x-"), group), {})[kind] = amount


_SHORT = {"r": "remaining", "t": "reset", "q": "limit", "total": "limit", "resets": "reset"}


def _pairs(parts: list[str], headers: Mapping[str, str], now: Callable[[], float] | None) -> dict[str, float]:
    facts = {}
    for part in parts:
        key, _, text = part.partition("=")
        key = key.strip().lower()
        key = _SHORT.get(key, key)
        amount = number(text.strip())
        if amount is not None and key == "reset":
            amount = seconds_of(text.strip(), headers, now)
        if amount is not None and amount >= 0:
            facts[key] = amount
    return facts


_FAMILIES = (
    ("ratelimit",),
    *((f"{prefix}-remaining", f"{prefix}-reset") for prefix in ("ratelimit", "x-ratelimit", "x-rate-limit")),
    *(
        (f"x-ratelimit-remaining-{unit}", f"x-ratelimit-reset-{unit}", f"x-ratelimit-limit-{unit}")
        for unit in ("requests", "tokens")
    ),
    *(
        tuple(f"anthropic-ratelimit-{unit}-{fact}" for fact in ("remaining", "reset", "limit"))
        for unit in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
)
"""The headers that count calls or tokens, each family by itself. Others count bytes or points, which no caller knows before."""
_FIRST = tuple(names[0] for names in _FAMILIES)
ALLOWANCE_FIELDS = frozenset({"date"}.union(*_FAMILIES))
"""The headers that `allowance` and `published` read."""
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
    return fewest(published(headers, now))


def fewest(found: Iterable[Limit]) -> tuple[int, float] | None:
    """Return the calls that are left and the seconds until then, of the limit on calls that allows the fewest per second."""
    windows = [
        (int(each.remaining), each.reset)
        for each in found
        if each.remaining is not None and each.reset is not None and "token" not in each.name
    ]
    return min(windows, key=lambda each: each[0] / each[1], default=None)


def published(headers: Mapping[str, Any], now: float) -> list[Limit]:
    """
    Return the limits on calls and tokens that headers describe in full: how much is left, and the seconds until it starts again.

    The arguments are those of `allowance`.

    >>> published({"x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "6m0s"}, now=0)
    [Limit(name='tokens', limit=None, remaining=900.0, reset=360.0)]
    """
    if not any(map(headers.__contains__, _FIRST)):
        return []
    sent = headers.get("date")
    clock = {"date": sent} if isinstance(sent, str) else {}
    found = []
    for names in _FAMILIES:
        if headers.get(names[0]) is None:
            continue
        given = {name: value.strip() for name in names if isinstance(value := headers.get(name), str)}
        for each in limits({**given, **clock}, lambda: now) if given else ():
            left, seconds = each.remaining, each.reset
            if left is not None and left >= 0 and seconds is not None and 0 < seconds <= _LONGEST:
                found.append(each)
    return found
