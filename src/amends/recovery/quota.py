"""The quota of repeats of one service or process. Pure: the time is an argument."""

from __future__ import annotations

__all__ = ["Quota"]

PER_SUCCESS = 1.5
"""Repeats that a success earns. Fewer: a service that fails half of its calls gets less than it can serve; more: a
service that is overloaded gets more repeats."""
PER_SECOND = 10.0
"""Repeats that a second earns, for a process with little traffic. More: a fleet of small clients repeats too much."""
SAVED = 100.0
"""The most repeats that are saved up, if the successes of a second do not earn more. More: a larger burst of repeats when an outage
begins; fewer: where a part of a batch fails, its repeats are dropped."""

# Slightly less than 1, so that rounding in the computed wait cannot lead to a loop of zero waits.
_ENOUGH = 0.999


class Quota:
    """Successes and time earn repeats, up to a cap; each repeat takes one. It never becomes negative."""

    __slots__ = ("_at", "_cap", "_per_second", "_per_success", "earned", "saved", "taken")

    def __init__(
        self, per_success: float = PER_SUCCESS, per_second: float = PER_SECOND, saved: float = SAVED
    ) -> None:
        self._per_success = per_success
        self._per_second = per_second
        self._cap = self.saved = saved
        self.earned = 0
        """Successes that are not yet added to `saved`."""
        self.taken = 0
        self._at: float | None = None

    def take(self, now: float, rate: float = 0.0) -> float:
        """
        Take a repeat and return 0, or return the time when one will be available at the latest.

        `rate`: the calls that succeed per second. What those of one second earn is saved in any case: a batch earns its repeats at once.
        """
        passed = 0.0 if self._at is None else max(0.0, now - self._at)
        cap = max(self._cap, self._per_success * rate)
        self.saved = min(cap, self.saved + self.earned * self._per_success + passed * self._per_second)
        self._at, self.earned = now, 0
        if self.saved >= _ENOUGH:
            self.saved = max(0.0, self.saved - 1.0)
            self.taken += 1
            return 0.0
        return now + (1.0 - self.saved) / self._per_second
