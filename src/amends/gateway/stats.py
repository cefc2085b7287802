"""What is counted about an upstream, cheaply, for every call."""

from __future__ import annotations

from collections import Counter, deque
from time import monotonic

import msgspec

__all__ = ["Stats", "UpstreamStatus"]

_TIMES = 1024
_WINDOW = 60.0


class UpstreamStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an upstream at one moment, for the page."""

    name: str
    kind: str
    prefix: str
    state: str
    """open · ramp · shut"""
    resumes_in: float
    """Seconds until a call may be sent; 0 if it may be sent now."""
    waiting: int
    """Calls that wait for their turn."""
    in_flight: int
    calls: int
    failed: int
    """Calls whose last try failed."""
    recovered: int
    refused: int
    """Calls that the gateway did not send on."""
    rate: float
    """Calls per second, over the last minute at most."""
    p50: float | None
    """Seconds until the answer began, of the last calls."""
    p99: float | None
    codes: dict[str, int]


class Stats:
    """The counters of one upstream."""

    __slots__ = (
        "began",
        "calls",
        "codes",
        "ends",
        "failed",
        "failovers",
        "recomputed",
        "recovered",
        "refused",
        "times",
    )

    def __init__(self) -> None:
        self.began = monotonic()
        self.calls = 0
        self.failovers = 0
        """Tries that were made at another upstream than the first of a route."""
        self.recomputed = 0
        """Repeats of calls that only compute and may have been computed before: what a recovery may have cost."""
        self.failed = 0
        self.recovered = 0
        self.refused = 0
        self.codes: Counter[str] = Counter()
        self.times: deque[float] = deque(maxlen=_TIMES)
        """Seconds until the answer began …"""
        self.ends: deque[float] = deque(maxlen=_TIMES)
        """… and when, of the last calls."""

    def quantile(self, share: float) -> float | None:
        """Return the time that this share of the last calls did not exceed."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def rate(self) -> float:
        """Return the calls per second of the last minute, or of as many calls as are remembered."""
        now = monotonic()
        recent = [each for each in self.ends if each > now - _WINDOW]
        if not recent:
            return 0.0
        whole = len(recent) < _TIMES
        since = max(self.began, now - _WINDOW) if whole else recent[0]
        return len(recent) / max(now - since, 0.001)
