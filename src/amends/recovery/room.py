"""
The room: how many calls may be in flight at once, while the service refuses calls because others are in flight. Pure.

A pace in calls per second cannot express such a limit: where calls differ in length, a pace that uses the limit is often refused.

| event | the room |
|---|---|
| a call is refused while others are in flight | is one less than the calls in flight if this was the last that had room, else half of them |
| a call is refused although no other is in flight | has no limit for STALE seconds: the service does not limit the calls in flight |
| a good answer, and the room is full | grows by a step; the steps are small after a refusal and grow, up to one call |
"""

from __future__ import annotations

from math import inf

from amends.recovery.evidence import STALE
from amends.recovery.schedule import REFUSED_CUT, RISE

__all__ = ["Room"]

WIDER = 1 / 16
"""By how many calls the first good answer after a refusal widens a full room; each further one by RISE times as many, up to one
call. Higher: more refused calls at a limit of calls in flight; lower: a raised limit is used later."""


class Room:
    """The calls that may be in flight; `calls` is infinite unless the service refuses some."""

    __slots__ = ("_cut_at", "_step", "_unlimited_until", "beside", "calls", "proved", "refusals")

    def __init__(self) -> None:
        self.calls = self.beside = inf
        self.refusals = 0
        self.proved = 0.0
        self._step = 1.0
        self._cut_at = self._unlimited_until = -inf

    @property
    def limited(self) -> bool:
        """Whether the calls in flight are limited."""
        return self.calls < inf

    @property
    def served_beside(self) -> bool:
        """Whether every call that was refused in the present run was refused beside others in flight."""
        return self.refusals > 0 and self.beside >= 1.0

    def possible(self, now: float) -> bool:
        """Whether the service may limit the calls in flight."""
        return now > self._unlimited_until

    def note_refusal(self, others: int, *, first: bool) -> None:
        """Note how many other calls were in flight when one was refused; `first`: the first of a run of failures."""
        first = first or not self.refusals
        self.beside = others if first else min(self.beside, others)
        self.refusals = 1 if first else self.refusals + 1

    def start(self, calls: float, *, served: bool = False) -> None:
        """Begin with room for `calls`, at least one. It grows fast until a call is refused, unless so many were `served` beside one."""
        self.calls, self._step = max(1.0, calls), WIDER if served else 1.0

    def end(self) -> None:
        """Limit the calls in flight no longer."""
        self.calls = inf

    def apart(self, inflight: int, last_sent: float, trip: float) -> float:
        """
        Return when the call may be sent with which `inflight` calls are in flight, if so many were never seen to be answered.

        `last_sent`: when the last one was sent; `trip`: how long an answer usually takes. A refused call that was sent with
        another one would not show whether the calls in flight are limited, or those in a second.
        """
        return last_sent + trip / self.calls if self.calls < inf and inflight > max(1.0, self.proved) else 0.0

    def answered(self, inflight: int) -> None:
        """Widen a full room after a good answer. `inflight` includes it."""
        self.proved = max(self.proved, inflight)
        if inflight + 1 > self.calls:
            self.calls += max(self._step, 2.0 * WIDER / self.calls)
            self._step = min(1.0, self._step * RISE)

    def refused(self, now: float, sent: float, inflight: int, *, served: bool) -> bool:
        """
        Narrow the room after a refusal. Return whether other calls in flight explain the refusal.

        `inflight` includes the refused call. `served`: a call that was sent since the room began was answered. Before
        that, older calls may be in flight too, and how many is not known.
        """
        if not self.possible(now):
            return False
        if (inflight <= 1 and served) or inflight <= REFUSED_CUT * self.proved:
            self.calls, self.proved, self._unlimited_until = inf, 0.0, now + STALE
            return False
        if inflight <= 1:
            return False
        self._step = WIDER if served else 1.0
        if not served:
            self.calls = max(1.0, min(self.calls, inflight - 1.0))
        elif inflight + 1 > self.calls or self.calls == inf:
            self.calls = inflight - 1.0
        elif sent >= self._cut_at:
            self._cut_at = now + (now - sent)
            self.calls = max(1.0, inflight * REFUSED_CUT)
        return True
