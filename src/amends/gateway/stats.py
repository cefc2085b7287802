"""What is counted about an upstream, cheaply, for every call."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from itertools import accumulate
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
    down: bool = False
    """Whether the health path says that the upstream does not work."""
    held: tuple[str, ...] = ()
    """Method and route of the calls that are held back."""
    last_failure: str = ""
    """The code and the status of the last failure."""


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper ends of the classes of the histogram, in seconds; answers of models take up to minutes."""
_MOST_CODES = 200


class Stats:
    """The counters of one upstream."""

    __slots__ = (
        "_classes",
        "answer_seconds",
        "began",
        "calls",
        "codes",
        "doubts",
        "ends",
        "failed",
        "failovers",
        "recomputed",
        "recovered",
        "refused",
        "repeats",
        "times",
        "waited",
    )

    def __init__(self) -> None:
        self.began = monotonic()
        self.calls = 0
        self.repeats = 0
        """Tries after the first of a call."""
        self.waited = 0.0
        """Seconds that calls waited between their tries, or before them."""
        self.doubts = 0
        """Failures that were passed on because the call may have had its effect."""
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
        self.answer_seconds = 0.0
        """The sum of all these seconds."""
        self._classes = [0] * (len(BUCKETS) + 1)

    def answered(self, seconds: float) -> None:
        """Count an answer that began after so many seconds."""
        self.times.append(seconds)
        self.answer_seconds += seconds
        self._classes[bisect_left(BUCKETS, seconds)] += 1

    def failed_with(self, code: str) -> None:
        """Count a failure that was passed on. Services invent codes, so only so many are counted by themselves."""
        self.failed += 1
        self.codes[code if code in self.codes or len(self.codes) < _MOST_CODES else "OTHER"] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative counts of the histogram, each with its upper end."""
        ends = (*(f"{end:g}" for end in BUCKETS), "+Inf")
        return [(end, float(count)) for end, count in zip(ends, accumulate(self._classes), strict=True)]

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
