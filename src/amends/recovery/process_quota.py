"""
The quota of repeats of this process: for operations without an Upstream.

It is smaller than that of an Upstream, because nothing else bounds these repeats: an Upstream stops sending when a service
is down, a bare `recover` does not know that other operations fail as well.
"""

from __future__ import annotations

from threading import Lock

from amends.recovery.quota import Quota

__all__ = ["ProcessQuota", "process_quota"]

PER_SUCCESS = 1.5
"""As for an Upstream: a service that fails half of its calls gets the repeats it needs."""
PER_SECOND = 0.05
"""Repeats that a second earns without any success. More: a fleet of small clients repeats more than an overloaded
service can do; fewer: a single operation in an outage has fewer tries."""
SAVED = 20.0
"""The most repeats that are saved up. More: more calls when an outage begins; fewer: short outages fail more."""


class ProcessQuota:
    """The quota, or none if it is turned off. `earned` is public, so that a successful call only increments it."""

    __slots__ = ("_lock", "_on", "_quota", "earned")

    def __init__(self) -> None:
        self._lock = Lock()
        self.earned = 0
        """Successes that are not yet counted. Two threads may lose one of them, which costs one repeat."""
        self.turn(on=True)

    def turn(self, *, on: bool) -> None:
        """Turn the quota on, with full savings, or off."""
        with self._lock:
            self._on, self._quota = on, Quota(PER_SUCCESS, PER_SECOND, SAVED)
            self.earned = 0

    @property
    def saved(self) -> float:
        """Repeats that are left now."""
        return self._quota.saved

    def take(self, now: float) -> float:
        """Take one repeat and return 0, or return the time when one will be available at the latest."""
        if not self._on:
            return 0.0
        with self._lock:
            self._quota.earned, self.earned = self.earned, 0
            return self._quota.take(now)


process_quota = ProcessQuota()
"""The quota of this process."""
