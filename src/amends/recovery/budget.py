"""How many of the calls to a service may be repeats. Pure: the time is an argument."""

from __future__ import annotations

from amends.recovery.health import Tuning

__all__ = ["Budget"]

# Not 1: a wait computed for the last crumb must not round to nothing and spin.
_WHOLE = 0.999


class Budget:
    """Repeats earned by calls and by time, saved up to a cap, taken one by one; never overdrawn."""

    __slots__ = ("_at", "_calls", "saved", "taken", "tuning")

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.saved = tuning.repeats_saved
        self.taken = 0
        self._at: float | None = None
        self._calls = 0

    def take(self, now: float, calls: int) -> float:
        """Take one repeat: 0, or the time at which there will be one to take. `calls` counts all calls so far."""
        tuning = self.tuning
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        earned = (calls - self._calls) * tuning.repeats_share + elapsed * tuning.repeats_floor
        self.saved = min(tuning.repeats_saved, self.saved + earned)
        self._at, self._calls = now, calls
        if self.saved >= _WHOLE:
            self.saved = max(0.0, self.saved - 1.0)
            self.taken += 1
            return 0.0
        return now + (1.0 - self.saved) / tuning.repeats_floor
