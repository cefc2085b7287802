"""What is known about the traffic of one service: the rate of its operations and the usual round trip. Pure."""

from __future__ import annotations

from math import exp, inf

__all__ = ["Traffic"]

MEMORY = 30.0
"""Seconds over which the arrival rate is averaged. Longer: steadier; shorter: follows a changing load."""
LEAST_SPAN = 1.0
"""The first calls count as made within a second. Less: with little traffic one failure is an outage; more: it takes many."""
WINDOW, WINDOWS, LEAST_TRIPS = 10.0, 6, 4
"""The usual round trip is the least mean of six windows, each of at least ten seconds and four answers. More: a rising
queue is not taken for usual; fewer: a service that became slower for good is accepted sooner."""


class Traffic:
    """Rates and round trips. Only answers in OPEN count for the round trips: elsewhere queues make them longer."""

    __slots__ = (
        "_arrived", "_calls_good", "_good", "_peak", "_rolled_at", "_span", "_total", "_trips", "_usual", "_waited", "peak",
        "usual",
    )  # fmt: skip

    def __init__(self) -> None:
        self.usual = self.peak = 0.0
        """The usual mean and longest round trip; 0 before they are known."""
        self._usual: list[tuple[float, float]] = []
        # The present window: good answers, the sum and the longest of their trips, and operations that had to wait.
        self._calls_good, self._total, self._peak, self._waited = 0, 0.0, 0.0, 0
        # The windows before it, with weights that decay: when the last one ended, their length, arrivals, good answers.
        self._rolled_at, self._span, self._arrived, self._good, self._trips = -inf, 0.0, 0.0, 0.0, 0

    def arrived(self) -> None:
        """Count an operation that arrived while the state was not OPEN."""
        self._waited += 1

    @property
    def arrivals(self) -> float:
        """How many operations arrived lately."""
        return self._arrived + self._calls_good + self._waited

    def rate(self, now: float) -> float:
        """Return how many operations arrive per second."""
        return self.arrivals / self._seconds(now)

    def good_rate(self, now: float) -> float:
        """Return how many calls succeed per second."""
        return (self._good + self._calls_good) / self._seconds(now)

    def count_good(self, now: float) -> None:
        """Count a good answer outside of OPEN."""
        self._good += 1
        if now > self._rolled_at + WINDOW:
            self.roll(now)

    def note_first_trip(self, trip: float) -> None:
        """Take a round trip for the usual one, if none is known from OPEN and it is the shortest so far."""
        if not self._usual and (trip < self.usual or not self.usual):
            self.usual = self.peak = trip

    def discard_window(self, now: float) -> None:
        """Close a window whose answers came while trouble began: they are not usual."""
        if self._trips + self._calls_good:
            self.roll(now, learn=False)

    def roll(self, now: float, *, learn: bool = True) -> None:
        """Close a window of the arrival rate, and one of round trips if it had enough answers."""
        self._start(now)
        passed, count = now - self._rolled_at, self._calls_good
        kept = exp(-passed / MEMORY)
        self._arrived = self._arrived * kept + count + self._waited
        self._good = self._good * kept + count
        self._span = self._span * kept + passed
        self._rolled_at = now
        self._calls_good = self._waited = 0
        if self._span == 0.0 and count:
            self.usual = self.peak = self._total  # the first answer ever
        self._trips += count
        if learn and self._trips >= LEAST_TRIPS:
            self._usual = [*self._usual[1 - WINDOWS :], (self._total / self._trips, self._peak)]
            self.usual = min(mean for mean, _ in self._usual)
            self.peak = min(peak for _, peak in self._usual)
        if not learn or self._trips >= LEAST_TRIPS:
            self._trips, self._total, self._peak = 0, 0.0, 0.0

    def _seconds(self, now: float) -> float:
        self._start(now)
        return max(LEAST_SPAN, self._span + now - self._rolled_at)

    def _start(self, now: float) -> None:
        if self._rolled_at == -inf:
            self._rolled_at = now
