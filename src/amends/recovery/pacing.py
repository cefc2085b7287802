"""
The pace of calls in RAMP. Pure.

RAMP starts slightly above the rate at which operations arrive. Calm answers raise the pace. Slow answers and refusals lower
it, not below what the service did lately: in a lasting overload the pace settles where the answers are calm.
"""

from __future__ import annotations

from math import exp, inf

from amends.recovery.evidence import Evidence

__all__ = ["LEAST_PACE", "Pacing"]

START = 1.15
"""The first pace as a multiple of the arrivals. 1.0: what waited is sent late; 1.3: fleets relapse at 1 s latency."""
SLOW, SLOW_ABOVE = 1.25, 0.05
"""An answer is slow above 1.25 × the usual trip, and the usual longest trip, plus 0.05 s. Higher: queues of the
service grow unseen; lower: noise slows down a working service."""
RISE = 1.05
"""The most by which a calm answer raises a pace above the arrivals. 1.1: fleets relapse at 1 s latency."""
DOUBLING, FAST_DOUBLING, SLOW_DOUBLING = 15.0, 1.0, 20.0
"""Such a pace doubles in 15 × the usual trip, within these seconds. Shorter: the pace is far too high when the first slow
answer arrives; longer: later return."""
RETURN = 8.0
"""Seconds in which calm answers raise a pace below the arrivals e-fold. Shorter: a lasting overload swings more;
longer: after an overload a fleet takes longer to return."""
CATCH = 1.25
"""The most by which one calm answer raises such a pace. Higher: clients with little traffic overload again at once; lower: later return."""
CUT, LONG_CUT, DEEP_CUT = 0.93, 0.85, 0.7
"""The factor of a slow answer, of one that took more than LONG seconds, and of one that took FAR times too long. Lower:
the pace swings, and falls below what the service can do; higher: a fleet leaves a heavy overload later."""
LONG, FAR = 1.0, 8.0
"""Slow answers after LONG seconds show a cut late, so each has to be deeper. Lower: the pace swings; higher: small
fleets with 1 s latency relapse."""
GOOD = 0.9
"""The least pace as a share of the successes. Lower: the pace swings; higher: a full queue of the service stays full."""
SLOWEST = 0.45
"""The least pace as a share of the arrivals. Lower: holds in heavier lasting overloads; higher: later return."""
LEAST_PACE = 0.05
"""The least pace in calls per second. Lower: a client with little traffic may wait minutes for its next call."""
BEHIND = 0.1
"""Seconds that sending may be behind its pace and catch up. More: bursts; less: timers that are late cost pace."""
REFUSED_SHARE, ENOUGH = 0.15, 32
"""Refusals lower the pace if more than this share of at least so many calls fail. Lower: one refused tenant slows down the
others, and a client that made a handful of calls is paced for minutes; higher: more refused calls."""
REFUSED_CUT, REFUSED_PACE = 0.85, 1.25
"""The factor of a refusal, and the least pace after refusals as a multiple of the successes. Higher: more refused
calls; lower: a limit that was raised is used later."""


class Pacing(Evidence):
    """Calls per second, and when the last one was due."""

    __slots__ = ("_cut_at", "_raised_at", "_strained", "last_sent", "limit", "limited_until", "pace")

    def __init__(self) -> None:
        super().__init__()
        self.pace, self.last_sent = 1.0, -inf
        self.limit, self.limited_until = inf, -inf
        """The highest pace that the service allows, and until when."""
        self._cut_at = self._raised_at = 0.0
        self._strained = False  # whether a slow or missing answer shows that the service has too much work

    @property
    def next_send(self) -> float:
        """When the next call is due."""
        return self.last_sent + 1.0 / self.pace

    def take_turn(self, now: float) -> float:
        """Return 0 if a call may be sent now, else when the next one is due."""
        at = self.next_send
        if now < at:
            return at
        self.last_sent = max(at, now - BEHIND)
        return 0.0

    def start_pace(self, now: float, before: float) -> None:
        """Set the first pace after an outage. `before`: the pace to continue with if the outage began in RAMP, or 0."""
        arriving = max(self.rate(now), LEAST_PACE)
        self.pace = START * arriving
        if before:
            self.pace = max(before, SLOWEST * arriving, LEAST_PACE)
            if self._strained:
                self.pace = min(self.pace, arriving)
        self._strained = False
        self.last_sent, self._raised_at, self._cut_at = now, now, now

    def follow(self, now: float, sent: float) -> bool:
        """Raise or lower the pace after a good answer. Return whether the answer was calm."""
        trip = now - sent
        self.note_first_trip(trip)
        slow = max(SLOW * self.usual, self.peak) + SLOW_ABOVE
        if trip > slow:
            self._strained = True
            factor = (CUT if trip < LONG else LONG_CUT) if trip < FAR * slow else DEEP_CUT
            self._cut(now, sent, factor, max(SLOWEST * self.rate(now), GOOD * self.good_rate(now)))
            return False
        arriving = max(self.rate(now), LEAST_PACE)
        passed, self._raised_at = now - self._raised_at, now
        if self.pace < arriving:
            self.pace = min(arriving, self.pace * min(CATCH, exp(min(passed / RETURN, 9.0))))
        else:
            doubling = min(SLOW_DOUBLING, max(FAST_DOUBLING, DOUBLING * self.usual))
            self.pace *= min(RISE, 2.0 ** min(passed / doubling, 1.0))
        if now < self.limited_until:
            self.pace = min(self.pace, self.limit)
        return True

    def limit_pace(self, now: float, remaining: int, seconds: float) -> bool:
        """Note how many calls the service allows in the next `seconds`. Return whether more would be sent."""
        pace = max(max(remaining, 1) / max(seconds, 1e-3), LEAST_PACE)
        scarce = remaining <= self.arrivals + 1 and pace < (self.arrivals + 1) / self._seconds(now)
        self.limit, self.limited_until = (pace, now + seconds) if scarce else (inf, -inf)
        return scarce

    @property
    def too_many(self) -> bool:
        """Whether so many calls are refused that fewer should be sent."""
        return self.share > REFUSED_SHARE and self.calls >= ENOUGH and self.refused_together

    def pace_arrivals(self, now: float) -> None:
        """Begin to pace the calls at the rate at which they arrive."""
        self.pace, self._raised_at = max(self.rate(now), LEAST_PACE), now

    def cut_refused(self, now: float, sent: float) -> None:
        """Lower the pace after a refusal."""
        self._cut(now, sent, REFUSED_CUT, REFUSED_PACE * self.good_rate(now))

    def _cut(self, now: float, sent: float, factor: float, least: float) -> None:
        """Lower the pace, once in two round trips: the calls sent until the first cut shows are slow as well."""
        self._raised_at = now
        if sent >= self._cut_at:
            self._cut_at = now + (now - sent)
            self.pace = min(self.pace, max(factor * self.pace, least, LEAST_PACE))
