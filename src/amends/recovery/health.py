"""
The health of one service, as one process sees it. Pure: the time and random numbers are arguments, nothing waits.

| state | which calls may be sent | how the state ends |
|---|---|---|
| FLOWING | all, at once | failures that are not chance → DOWN; a hint → HELD |
| DOWN | none until `resume_at`, then one call, the probe | probe fails → DOWN, longer; any success → DRAINING; a hint → HELD |
| HELD | none until the time the server named, then one probe | probe succeeds → DRAINING; fails → DOWN; a new hint → HELD, never shorter |
| DRAINING | at most `window` calls in flight, none before `next_send` | a calm answer and an empty queue → FLOWING; else as FLOWING |

*Chance*: every failure since the last success multiplies `likelihood` by the share of calls that failed lately, but by
at least a floor for its kind. On a healthy service five plain failures in a row are an outage, or one time-out. Where
60 % of the calls always fail, a run of failures is likely, and the state does not change.

*Time-outs*: a time-out counts only while no call that was sent after it has been answered. If one has, a message was
lost and the service works.

Each report contains `sent`, the time when its call was sent. With it the state machine distinguishes the probe from
a late answer to a call of an earlier state, without a record for each call. bench/recovery/NOTES.md describes how each
constant was found.
"""

from __future__ import annotations

from math import inf

import msgspec

__all__ = ["DOWN", "DRAINING", "FLOWING", "HELD", "STATES", "Health", "Tuning"]

FLOWING, DRAINING, DOWN, HELD = range(4)
STATES = ("flowing", "draining", "down", "held")


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of an upstream. The defaults were found with the simulator."""

    outage_likelihood: float = 0.011
    """Failures in a row mean an outage if their likelihood by chance is below this."""
    plain_floor: float = 0.4
    """The least likelihood of one plain failure: with 0.4, five in a row are an outage."""
    silent_floor: float = 0.01
    """The least likelihood of one time-out: with 0.01, one is an outage."""
    newest_weight: float = 1 / 16
    """The weight of the newest outcome in the share of failures."""
    probe_first: float = 0.5
    """Seconds until the first probe after plain failures, which cost the server little …"""
    probe_growth: float = 1.5
    probe_cap: float = 5.0
    silence_first: float = 3.0
    """… and after time-outs, which cost it work."""
    silence_growth: float = 2.0
    silence_cap: float = 8.0
    calm: float = 1.25
    """An answer is calm within this many times the usual round trip …"""
    calm_floor: float = 0.05
    """… plus this many seconds, or …"""
    calm_spread: float = 2.0
    """… within this many times the usual deviation from it."""
    rest_factor: float = 4.0
    """After an answer that is not calm, no call is sent for this many times its excess."""
    repeats_share: float = 0.2
    """Repeats allowed as a share of the calls …"""
    repeats_floor: float = 10.0
    """… plus this many per second …"""
    repeats_saved: float = 50.0
    """… of which at most this many are saved up."""


_FAST, _SLOW = 0.125, 0.02  # the weight of the newest round trip in FLOWING, and in the other states


class Health:
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = (
        "calls",
        "deviation",
        "failed_probes",
        "failure_share",
        "inflight",
        "last_answered",
        "likelihood",
        "next_send",
        "probing",
        "resume_at",
        "round_trip",
        "state",
        "state_since",
        "tuning",
        "window",
    )

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.state = FLOWING
        self.calls = 0
        """The number of calls that have ended."""
        self.failure_share = 0.0
        """The share of the calls that failed lately."""
        self.likelihood = 1.0
        """How likely the failures since the last success are by chance, given that share."""
        self.last_answered = -inf
        """The latest send time of all calls that were answered by a working service."""
        self.round_trip = 0.0
        """The smoothed round trip of good answers; 0 before the first."""
        self.deviation = 0.0
        """The smoothed deviation from it."""
        self.state_since = 0.0
        """Calls sent before this time belong to an earlier state."""
        self.resume_at = 0.0
        """DOWN, HELD: no call is sent before this time."""
        self.failed_probes = 0
        """DOWN: the number of probes that failed so far."""
        self.probing = False
        """DOWN, HELD: whether the probe was sent."""
        self.inflight = 0
        """DRAINING: the calls sent since it began and not yet reported …"""
        self.window = 1.0
        """… and how many of these are allowed."""
        self.next_send = 0.0
        """DRAINING: no call is sent before this time."""

    def admit(self, now: float) -> float:
        """Return 0 if a call may be sent, else the time to ask again; infinity means after the next report."""
        if self.state == DRAINING:
            if self.inflight >= int(self.window):
                return inf
            if now < self.next_send:
                return self.next_send
            self.inflight += 1
        elif self.state != FLOWING:
            if now < self.resume_at:
                return self.resume_at
            if self.probing:
                return inf
            self.probing = True
            self.state_since = now
        return 0.0

    def force(self) -> None:
        """Count a call that is sent without having been admitted."""
        if self.state == DRAINING:
            self.inflight += 1

    def held_until(self) -> float:
        """Return the time until which the server asked for no calls; 0 if it did not."""
        return self.resume_at if self.state == HELD else 0.0

    def succeeded_flowing(self, now: float, sent: float) -> None:
        """
        Report a success in FLOWING.

        Every successful call gets here, so the code avoids calling `max` and `abs`: with them, a successful call of
        `arecover` costs 1.32 of google-api-core's retry instead of 1.16 (target 1.3, bench/overhead.py).
        """
        self.calls += 1
        self.likelihood = 1.0
        if self.failure_share:
            self.failure_share -= self.failure_share * self.tuning.newest_weight
        if sent > self.last_answered:  # noqa: PLR1730 - see above
            self.last_answered = sent
        usual = self.round_trip
        off = now - sent - usual
        if usual:
            self.round_trip = usual + off * _FAST
            self.deviation += ((off if off > 0 else -off) - self.deviation) * _FAST
        else:
            self.round_trip = off

    def succeeded(self, now: float, sent: float, draw: float, *, waiting: bool) -> None:
        """Report that a working service answered the call sent at `sent`. `waiting`: other calls are queued."""
        if self.state == FLOWING:
            self.succeeded_flowing(now, sent)
            return
        self._end_call(sent)
        self.likelihood = 1.0
        self.failure_share -= self.failure_share * self.tuning.newest_weight
        self.last_answered = max(self.last_answered, sent)
        trip = now - sent
        if self.state == HELD and (now < self.resume_at or sent < self.state_since):
            return  # the call was sent before the server asked for no calls, so the hint still holds
        if self.state != DRAINING:
            self._begin_draining(now)
        self._adjust_window(now, trip, draw, waiting=waiting)
        off = trip - self.round_trip
        self.round_trip += off * (_SLOW if self.round_trip else 1.0)
        self.deviation += (abs(off) - self.deviation) * _SLOW

    def failed(self, now: float, sent: float, draw: float, *, silent: bool) -> None:
        """Report that the call sent at `sent` failed without a hint; `silent` if there was no answer at all."""
        tuning = self.tuning
        probe = self._end_call(sent)
        if not silent or sent > self.last_answered:
            floor = tuning.silent_floor if silent else tuning.plain_floor
            self.likelihood *= max(self.failure_share, floor)
        self.failure_share += (1.0 - self.failure_share) * tuning.newest_weight
        if probe:
            self.failed_probes += 1
        elif self.state >= DOWN or self.likelihood > tuning.outage_likelihood:
            return
        else:
            self.failed_probes = 0
            self.state_since = now
        self.state = DOWN
        probes = min(self.failed_probes, 64)
        if silent:
            gap = min(tuning.silence_cap, tuning.silence_first * tuning.silence_growth**probes)
        else:
            gap = min(tuning.probe_cap, tuning.probe_first * tuning.probe_growth**probes)
        self.resume_at = now + gap * (0.75 + 0.5 * draw)

    def hold(self, now: float, sent: float, until: float) -> None:
        """Report that the answer to the call sent at `sent` asked for no calls before `until`."""
        self._end_call(sent)
        if self.state == HELD:
            self.resume_at = max(self.resume_at, until)
            return
        self.state = HELD
        self.resume_at = until
        self.state_since = now
        self.probing = False
        self.failed_probes = 0

    def abandoned(self, sent: float) -> None:
        """Report that the outcome of the call sent at `sent` shows nothing about the service."""
        self._end_call(sent)

    def _end_call(self, sent: float) -> bool:
        """Count a call that has ended. Return whether it was the probe."""
        self.calls += 1
        if sent < self.state_since:
            return False
        if self.state == DRAINING:
            self.inflight -= 1
            return False
        probe, self.probing = self.probing, False
        return probe

    def _begin_draining(self, now: float) -> None:
        self.state = DRAINING
        self.state_since = now
        self.inflight = 0
        # A lost message occupies its slot for a whole time-out, so the window is larger by the share of losses.
        self.window = 1.0 / (1.0 - min(self.failure_share, 0.95))

    def _adjust_window(self, now: float, trip: float, draw: float, *, waiting: bool) -> None:
        """Open the window after a calm answer; halve it and rest after one that took longer than usual."""
        tuning, usual = self.tuning, self.round_trip
        excess = trip - usual
        tolerated = max((tuning.calm - 1) * usual + tuning.calm_floor, tuning.calm_spread * self.deviation)
        if excess <= tolerated or not usual:
            self.window += max(self.failure_share, 1.0 / self.window)
            self.next_send = now
            if not waiting:
                self.state = FLOWING
        else:
            self.window = max(1.0, self.window / 2)
            self.next_send = now + tuning.rest_factor * excess * (0.5 + draw)
