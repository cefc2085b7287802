"""
Whether failures are chance or an outage. Pure.

Each failure since the last success multiplies `likelihood` by the share of calls that fail here, but at least by the floor
of its kind. The failures are not chance if such a run would happen less than once in CALM seconds at the present rate. A
run that ends with a success is learned as chance; one that ends in an outage is not.
"""

from __future__ import annotations

from math import inf, sqrt

from amends.recovery.traffic import WINDOW, Traffic

__all__ = ["HINT", "PLAIN", "REFUSED", "SILENT", "Evidence"]

PLAIN, REFUSED, HINT, SILENT = range(4)
FLOORS = (0.2, 0.2, 0.01, 0.04)
"""The least likelihood of one failure: plain, refused (rate limited), with a hint, silent. Lower: an outage is noticed
after fewer failures, and a few lost messages look like one."""
CALM = 1000.0
"""Seconds between two false alarms. Longer: outages cost more calls. Shorter: independent failures cause pauses."""
NEWEST = 1 / 32
"""The weight of the newest outcome in the share of failures. Larger: learned faster, and more false alarms."""
LEARNED = 8
"""Failures of one run that are learned as chance. More: a service that was down and is back counts as unreliable."""
STALE = 60.0
"""Seconds after which a failure is no evidence. Longer: with little traffic, old failures count against a service."""
LEAST_RATE = 0.1
"""Evidence counts as for at least a call in ten seconds. Less: with little traffic one failure is an outage."""
COLD_RATE = 1.0
"""The same before the first success. Lower: a few failed calls at the start are an outage."""
AGAIN = 1 / 8
"""The weight of the newest repeat in the share of repeats that are refused again. Larger: learned from fewer repeats, and
a busy limit is sometimes taken for refused callers."""
ALONE = 0.75
"""If more than this share of the repeats is refused again, the refusals concern single callers, such as one tenant, and are
no evidence. Higher: one refused tenant slows down the others for longer; lower: a heavy overload is not paced."""

KNOWN = 4
"""Repeats after which that is known. More: a busy limit is paced later; fewer: one refused tenant slows down the others."""


class Evidence(Traffic):
    """The failures since the last success, and what is learned from them."""

    __slots__ = (
        "_again",
        "_repeats",
        "calls",
        "failed_at",
        "last_answered",
        "likelihood",
        "run",
        "run_since",
        "share",
    )

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        """Calls that have ended."""
        self.share = 0.0
        """The share of calls that fail by chance."""
        self._again, self._repeats = 0.0, 0
        self.likelihood, self.run, self.failed_at = 1.0, 0, -inf
        """The failures since the last success: their likelihood, their number, the time of the latest."""
        self.run_since = inf
        """When the first call of the present run of failures was sent."""
        self.last_answered = -inf
        """The latest send time of all calls that were answered by a working service."""

    @property
    def failing(self) -> float:
        """The share of the calls that failed lately, including the present run of failures."""
        return 1.0 - (1.0 - self.share) * (1.0 - NEWEST) ** min(self.run, LEARNED)

    @property
    def refused_alone(self) -> bool:
        """Whether refusals concern single callers: operations that were refused are refused again."""
        return self._again > ALONE

    @property
    def refused_together(self) -> bool:
        """Whether refusals concern all callers: most repeats, or all of the first few, were not refused again."""
        return self._again <= ALONE if self._repeats >= KNOWN else self._again < 0.5

    def succeeded_open(self, now: float, sent: float) -> None:
        """Report a success in OPEN. Every successful call gets here: the code avoids function calls."""
        trip = now - sent
        self.calls += 1
        self._calls_good += 1
        self._total += trip
        if trip > self._peak:  # noqa: PLR1730 - `max` would be a function call
            self._peak = trip
        if sent > self.last_answered:  # noqa: PLR1730
            self.last_answered = sent
        if self.run or self.share:
            self.learn_chance()
        if now > self._rolled_at + WINDOW:
            self.roll(now)

    def count_repeat(self, *, refused: bool) -> None:
        """Count the outcome of a repeat: refused again, or not."""
        self._repeats += 1
        self._again += max(AGAIN, 1.0 / (self._repeats + 1)) * (refused - self._again)

    def count_failure(self, now: float, sent: float, kind: int, *, repeat: bool) -> bool:
        """Count a failure. Return whether the run of failures is no chance. `repeat`: the operation was refused before."""
        if now - self.failed_at > STALE:
            self.likelihood, self.run = 1.0, 0
        self.failed_at = now
        if not self.run:
            self.run_since = sent
        share = self.share
        if repeat and self.refused_alone:
            share = max(share, self._again)
        else:
            self.run += 1
        if kind == SILENT:
            if sent <= self.last_answered:
                return False  # a call sent later was answered: a message was lost, and the service works
            if self.last_answered < 0.0:
                kind = PLAIN
        # The share is an estimate: its likely error is added, so that a low estimate is no false alarm.
        self.likelihood *= min(0.95, max(share + sqrt(share * NEWEST), FLOORS[kind]))
        least = COLD_RATE if self.last_answered < 0.0 else LEAST_RATE
        return self.likelihood * CALM * max(self.rate(now), least) < 1.0

    def learn_chance(self) -> None:
        """Learn from a success: the failures before it were chance."""
        weight = max(NEWEST, 1.0 / (self.calls + 1.0))
        for _ in range(min(self.run, LEARNED)):
            self.share += (1.0 - self.share) * weight
        self.share -= self.share * weight
        if self.share < 0.001:
            self.share = 0.0
        self.run, self.likelihood = 0, 1.0
