"""
What the operations against one service share, as a pure state machine: no clock, no dice, no waiting inside.

Four states. FLOWING: calls go out as they come. DOWN: nothing goes out until `resume_at`, then one call, the
probe, finds out. HELD: the same, but the server named the time, so nothing but that time ends it. DRAINING: after
a DOWN or HELD, what has piled up goes out a few at a time, and slower when answers take longer than usual.

Reports carry `sent`, the time at which the call went out: it tells a probe from a straggler, and a lost message from
a dead service, without any record of single calls.

The driver owns the queue of waiting calls, first in, first out, and the clock. It asks `admit(now)` for the head of
the queue after every report and at the time `admit` gave; it reports every call once with `success` or `failure`.
NOTES.md says why each constant is what it is.
"""

from dataclasses import dataclass

FLOWING, DRAINING, DOWN, HELD = range(4)
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Tuning:
    """The constants, in one place so that they can be varied."""

    doubt: float = 0.011  # failures in a row mean an outage when they are less likely than this by chance
    plain_floor: float = 0.4  # assumed chance of a plain failure where fewer are known: five in a row
    silent_floor: float = 0.01  # the same for a time-out: one is enough
    memory: float = 1 / 16  # weight of the newest outcome in the known share of failures
    probe_first: float = 0.5  # seconds from the trip to the first probe
    probe_growth: float = 1.5  # each failed probe waits that much longer
    probe_cap: float = 5.0  # longest time between probes after plain failures
    silence_first: float = 3.0  # the same after time-outs, which cost the server work
    silence_growth: float = 2.0
    silence_cap: float = 8.0
    calm: float = 1.25  # an answer up to this many times the usual round trip is a calm one ...
    calm_floor: float = 0.05  # ... and this many seconds more, so that microseconds of noise do not count ...
    calm_spread: float = (
        2.0  # ... or this many times the usual deviation, for services whose calls differ in length
    )
    slack: float = 4.0  # while not calm, rest this many times the excess between sends
    budget_share: float = 0.2  # repeats allowed as a share of calls ...
    budget_floor: float = 10.0  # ... plus this many a second ...
    budget_cap: float = 50.0  # ... saved up to here


class Upstream:
    """State shared by every operation against one service in one process."""

    __slots__ = (
        "budget",
        "budget_at",
        "calls",
        "calls_seen",
        "inflight",
        "level",
        "luck",
        "next_send",
        "probing",
        "proof",
        "resume_at",
        "share",
        "since",
        "spread",
        "state",
        "tuning",
        "usual",
        "window",
    )

    def __init__(self, tuning: Tuning | None = None) -> None:
        self.tuning = tuning or Tuning()
        self.state = FLOWING
        self.calls = 0
        self.share = 0.0  # share of calls that failed lately
        self.luck = 1.0  # how likely the failures since the last success are, if that share is all there is
        self.proof = -NEVER  # when the youngest call that has been answered well was sent
        self.usual = 0.0  # smoothed round trip of good answers, 0 before the first
        self.spread = 0.0  # smoothed deviation from it
        self.since = 0.0  # calls sent before this belong to an earlier state
        self.resume_at = 0.0  # DOWN, HELD: nothing goes out before
        self.level = 0  # DOWN: failed probes so far
        self.probing = False  # DOWN, HELD: the probe is out
        self.inflight = 0  # DRAINING: calls sent since it began and not reported yet
        self.window = 1.0  # DRAINING: how many of these there may be
        self.next_send = 0.0  # DRAINING: nothing goes out before
        self.budget = self.tuning.budget_cap
        self.budget_at = 0.0
        self.calls_seen = 0

    # Asking -----------------------------------------------------------------------------------------------

    def admit(self, now: float) -> float:
        """0: go, and report back. Otherwise when to ask again; NEVER: after the next report."""
        if self.state == FLOWING:
            self.calls += 1
            return 0.0
        if self.state == DRAINING:
            if self.inflight >= int(self.window):
                return NEVER
            if now < self.next_send:
                return self.next_send
            self.inflight += 1
        else:
            if now < self.resume_at:
                return self.resume_at
            if self.probing:
                return NEVER
            self.probing = True
            self.since = now
        self.calls += 1
        return 0.0

    def force(self) -> None:
        """A call goes out unasked: its caller is out of time and has never been heard."""
        self.calls += 1
        if self.state == DRAINING:
            self.inflight += 1

    def blocked_until(self) -> float:
        """Until when the server itself has asked for silence; 0 if it has not. For callers with little time."""
        return self.resume_at if self.state == HELD else 0.0

    def repeat_at(self, now: float) -> float:
        """Take one repeat out of the budget: 0, or the time at which there will be one to take."""
        tuning = self.tuning
        earned = (self.calls - self.calls_seen) * tuning.budget_share + (
            now - self.budget_at
        ) * tuning.budget_floor
        self.budget = min(tuning.budget_cap, self.budget + earned)
        self.budget_at = now
        self.calls_seen = self.calls
        if self.budget >= 0.999:  # not 1: a wait computed for the last crumb must not round to nothing
            self.budget -= 1.0
            return 0.0
        return now + (1.0 - self.budget) / tuning.budget_floor

    # Reporting --------------------------------------------------------------------------------------------

    def success(self, now: float, sent: float, *, waiting: int, draw: float) -> None:
        """The call sent at `sent` was answered by a service that works; `waiting` calls are queued."""
        tuning = self.tuning
        self.luck = 1.0
        self.share -= self.share * tuning.memory
        self.proof = max(self.proof, sent)
        trip = now - sent
        if self.state == FLOWING:
            off = trip - self.usual
            if self.usual:
                self.usual += off * 0.125
                self.spread += (abs(off) - self.spread) * 0.125
            else:
                self.usual = trip
            return
        self._settle(sent)
        if self.state == HELD and (now < self.resume_at or sent < self.since):
            return  # somebody who was on the way when the server asked for silence; the hint stands
        if self.state != DRAINING:
            self.state = DRAINING
            self.since = now
            self.inflight = 0
            self.window = 1.0 / (1.0 - min(self.share, 0.95))
        excess = trip - self.usual
        tolerated = max((tuning.calm - 1) * self.usual + tuning.calm_floor, tuning.calm_spread * self.spread)
        if excess <= tolerated or not self.usual:
            self.window += max(self.share, 1.0 / self.window)
            self.next_send = now
            if not waiting:
                self.state = FLOWING
        else:
            self.window = max(1.0, self.window / 2)
            self.next_send = now + tuning.slack * excess * (0.5 + draw)
        self.usual += excess * (0.02 if self.usual else 1.0)
        self.spread += (abs(excess) - self.spread) * 0.02

    def failure(self, now: float, sent: float, *, silent: bool, draw: float) -> None:
        """The call sent at `sent` failed without a hint; `silent` if no answer came at all."""
        tuning = self.tuning
        probe = self._settle(sent)
        if (
            not silent or sent > self.proof
        ):  # else a later call was answered: a message was lost, the service is well
            self.luck *= max(self.share, tuning.silent_floor if silent else tuning.plain_floor)
        self.share += (1.0 - self.share) * tuning.memory
        if probe:
            self.level += 1
        elif self.state >= DOWN or self.luck > tuning.doubt:
            return
        else:
            self.level = 0
            self.since = now
        self.state = DOWN
        first, growth, cap = (
            (tuning.silence_first, tuning.silence_growth, tuning.silence_cap)
            if silent
            else (tuning.probe_first, tuning.probe_growth, tuning.probe_cap)
        )
        self.resume_at = now + min(cap, first * growth**self.level) * (0.75 + 0.5 * draw)

    def hint(self, now: float, sent: float, until: float) -> None:
        """The server asked, in the answer to the call sent at `sent`, for no calls before `until`."""
        self._settle(sent)
        if self.state == HELD:
            self.resume_at = max(self.resume_at, until)
            return
        self.state = HELD
        self.resume_at = until
        self.since = now
        self.probing = False
        self.level = 0

    def cancel(self, sent: float) -> None:
        """The call was given up before it had an outcome."""
        self._settle(sent)

    def _settle(self, sent: float) -> bool:
        """Take a reported call off the books; whether it was the probe."""
        if sent < self.since:
            return False
        if self.state == DRAINING:
            self.inflight -= 1
            return False
        probe = self.probing
        self.probing = False
        return probe
