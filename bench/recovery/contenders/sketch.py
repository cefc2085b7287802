"""
The state that the operations against one service share, as a pure state machine without a clock or random numbers.

Four states. FLOWING: calls are sent at once. DOWN: no call is sent until `resume_at`, then one call, the probe. HELD:
the same, but the server named the time, so only that time ends it. DRAINING: after DOWN or HELD, the queued calls are
sent a few at a time, and slower when answers take longer than usual.

Reports contain `sent`, the time at which the call was sent. It distinguishes a probe from a late answer, and a lost
message from a dead service, without a record for each call.

The driver has the queue of waiting calls, first in, first out, and the clock. It calls `admit(now)` for the head of the
queue after every report and at the time that `admit` returned. It reports every call once with `success` or `failure`.
NOTES.md gives the reason for each constant.
"""

from dataclasses import dataclass

FLOWING, DRAINING, DOWN, HELD = range(4)
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Tuning:
    """The constants."""

    outage_likelihood: float = (
        0.011  # failures in a row mean an outage if they are less likely than this by chance
    )
    plain_floor: float = 0.4  # the least likelihood of a plain failure: five in a row are an outage
    silent_floor: float = 0.01  # the least likelihood of a time-out: one is an outage
    newest_weight: float = 1 / 16  # weight of the newest outcome in the share of failures
    probe_first: float = 0.5  # seconds until the first probe
    probe_growth: float = 1.5  # factor for each failed probe
    probe_cap: float = 5.0  # longest time between probes after plain failures
    silence_first: float = 3.0  # the same after time-outs, which cost the server work
    silence_growth: float = 2.0
    silence_cap: float = 8.0
    calm: float = 1.25  # an answer up to this many times the usual round trip is a calm one ...
    calm_floor: float = 0.05  # ... and this many seconds more, so that microseconds of noise do not count ...
    calm_spread: float = (
        2.0  # ... or this many times the usual deviation, for services whose calls differ in length
    )
    rest_factor: float = 4.0  # after an answer that is not calm, rest this many times its excess
    budget_share: float = 0.2  # repeats allowed as a share of calls ...
    budget_floor: float = 10.0  # ... plus this many a second ...
    budget_cap: float = 50.0  # ... saved up to here


class Upstream:
    """The state shared by all operations against one service in one process."""

    __slots__ = (
        "budget",
        "budget_at",
        "calls",
        "calls_seen",
        "inflight",
        "last_answered",
        "level",
        "likelihood",
        "next_send",
        "probing",
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
        self.likelihood = (
            1.0  # how likely the failures since the last success are by chance, given that share
        )
        self.last_answered = -NEVER  # the latest send time of all calls that a working service answered
        self.usual = 0.0  # smoothed round trip of good answers, 0 before the first
        self.spread = 0.0  # smoothed deviation from it
        self.since = 0.0  # calls sent before this belong to an earlier state
        self.resume_at = 0.0  # DOWN, HELD: no call is sent before
        self.level = 0  # DOWN: failed probes so far
        self.probing = False  # DOWN, HELD: whether the probe was sent
        self.inflight = 0  # DRAINING: calls sent since it began and not reported yet
        self.window = 1.0  # DRAINING: how many of these there may be
        self.next_send = 0.0  # DRAINING: no call is sent before
        self.budget = self.tuning.budget_cap
        self.budget_at = 0.0
        self.calls_seen = 0

    # Sending ----------------------------------------------------------------------------------------------

    def admit(self, now: float) -> float:
        """Return 0 if a call may be sent, else the time to ask again; NEVER means after the next report."""
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
        """Count a call that is sent without having been admitted."""
        self.calls += 1
        if self.state == DRAINING:
            self.inflight += 1

    def blocked_until(self) -> float:
        """Return the time until which the server asked for no calls; 0 if it did not."""
        return self.resume_at if self.state == HELD else 0.0

    def repeat_at(self, now: float) -> float:
        """Take one repeat from the budget and return 0, or return the time when one will be available."""
        tuning = self.tuning
        earned = (self.calls - self.calls_seen) * tuning.budget_share + (
            now - self.budget_at
        ) * tuning.budget_floor
        self.budget = min(tuning.budget_cap, self.budget + earned)
        self.budget_at = now
        self.calls_seen = self.calls
        if self.budget >= 0.999:  # not 1, so that rounding in the computed wait cannot give 0
            self.budget -= 1.0
            return 0.0
        return now + (1.0 - self.budget) / tuning.budget_floor

    # Reports ----------------------------------------------------------------------------------------------

    def success(self, now: float, sent: float, *, waiting: int, draw: float) -> None:
        """Report that a working service answered the call sent at `sent`; `waiting` calls are queued."""
        tuning = self.tuning
        self.likelihood = 1.0
        self.share -= self.share * tuning.newest_weight
        self.last_answered = max(self.last_answered, sent)
        trip = now - sent
        if self.state == FLOWING:
            off = trip - self.usual
            if self.usual:
                self.usual += off * 0.125
                self.spread += (abs(off) - self.spread) * 0.125
            else:
                self.usual = trip
            return
        self._end_call(sent)
        if self.state == HELD and (now < self.resume_at or sent < self.since):
            return  # sent before the server asked for no calls, so the hint still holds
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
            self.next_send = now + tuning.rest_factor * excess * (0.5 + draw)
        self.usual += excess * (0.02 if self.usual else 1.0)
        self.spread += (abs(excess) - self.spread) * 0.02

    def failure(self, now: float, sent: float, *, silent: bool, draw: float) -> None:
        """Report that the call sent at `sent` failed without a hint; `silent` if there was no answer at all."""
        tuning = self.tuning
        probe = self._end_call(sent)
        if (
            not silent or sent > self.last_answered
        ):  # else a later call was answered: a message was lost, and the service works
            self.likelihood *= max(self.share, tuning.silent_floor if silent else tuning.plain_floor)
        self.share += (1.0 - self.share) * tuning.newest_weight
        if probe:
            self.level += 1
        elif self.state >= DOWN or self.likelihood > tuning.outage_likelihood:
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
        """Report that the answer to the call sent at `sent` asked for no calls before `until`."""
        self._end_call(sent)
        if self.state == HELD:
            self.resume_at = max(self.resume_at, until)
            return
        self.state = HELD
        self.resume_at = until
        self.since = now
        self.probing = False
        self.level = 0

    def cancel(self, sent: float) -> None:
        """Report that the call was cancelled before it had an outcome."""
        self._end_call(sent)

    def _end_call(self, sent: float) -> bool:
        """Count a call that has ended. Return whether it was the probe."""
        if sent < self.since:
            return False
        if self.state == DRAINING:
            self.inflight -= 1
            return False
        probe = self.probing
        self.probing = False
        return probe
