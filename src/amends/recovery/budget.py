"""The budget of repeats: which share of the calls to a service may be repeats. Pure: the time is an argument."""

from __future__ import annotations

from amends.recovery.health import Tuning

__all__ = ["Budget"]

# Slightly less than 1, so that rounding in the computed wait cannot lead to a loop of zero waits.
_ONE_REPEAT = 0.999


class Budget:
    """Calls and time add repeats to the budget, up to a cap; each repeat takes one. It never becomes negative."""

    __slots__ = ("_at", "_calls", "saved", "taken", "tuning")

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.saved = tuning.repeats_saved
        self.taken = 0
        self._at: float | None = None
        self._calls = 0

    def take(self, now: float, calls: int) -> float:
        """Take one repeat and return 0, or return the time when one will be available. `calls` counts all calls."""
        tuning = self.tuning
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        earned = (calls - self._calls) * tuning.repeats_share + elapsed * tuning.repeats_floor
        self.saved = min(tuning.repeats_saved, self.saved + earned)
        self._at, self._calls = now, calls
        if self.saved >= _ONE_REPEAT:
            self.saved = max(0.0, self.saved - 1.0)
            self.taken += 1
            return 0.0
        return now + (1.0 - self.saved) / tuning.repeats_floor
