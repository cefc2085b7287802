"""
How a service is doing, seen from one process. Pure: the time and the dice are arguments, and nothing waits here.

| state | what may go out | left by |
|---|---|---|
| FLOWING | everything, at once | failures that chance cannot explain → DOWN; a hint → HELD |
| DOWN | nothing until `resume_at`, then one call, the probe | probe fails → DOWN, longer; any success → DRAINING; a hint → HELD |
| HELD | nothing until the time the server named, then one probe | probe succeeds → DRAINING; fails → DOWN; a new hint → HELD, never shorter |
| DRAINING | at most `window` calls in flight, none before `next_send` | a calm answer and nobody waiting → FLOWING; else as FLOWING |

*Chance*: every failure since the last success multiplies `luck` by the share of calls that failed lately, but by no
less than a floor for its kind. On a healthy service five plain failures in a row are an outage, or one time-out; where
60 % of the calls always fail, a run of failures says nothing, and nothing trips.

*Silence*: a time-out counts only while no call sent after it has been answered. If one has, a message was lost and the
service is well.

Reports carry `sent`, the time their call went out: that tells a probe from a straggler of an earlier state without
keeping a record of single calls. bench/recovery/NOTES.md says how each constant was found.
"""

from __future__ import annotations

from math import inf

import msgspec

__all__ = ["DOWN", "DRAINING", "FLOWING", "HELD", "STATES", "Health", "Tuning"]

FLOWING, DRAINING, DOWN, HELD = range(4)
STATES = ("flowing", "draining", "down", "held")


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The constants, for whoever has a reason to vary them."""

    doubt: float = 0.011
    """Failures in a row mean an outage when they are less likely than this by chance."""
    plain_floor: float = 0.4
    """The chance of a plain failure is taken to be at least this: five in a row, then."""
    silent_floor: float = 0.01
    """The same for a time-out: one is enough."""
    memory: float = 1 / 16
    """Weight of the newest outcome in the share of failures."""
    probe_first: float = 0.5
    """Seconds until the first probe after plain failures, which are cheap for the server …"""
    probe_growth: float = 1.5
    probe_cap: float = 5.0
    silence_first: float = 3.0
    """… and after time-outs, which cost it work."""
    silence_growth: float = 2.0
    silence_cap: float = 8.0
    calm: float = 1.25
    """An answer within this many times the usual round trip is calm …"""
    calm_floor: float = 0.05
    """… plus so many seconds, or …"""
    calm_spread: float = 2.0
    """… within this many times the usual deviation from it."""
    slack: float = 4.0
    """While answers are not calm: rest so many times the excess between sends."""
    repeats_share: float = 0.2
    """Repeats allowed as a share of the calls …"""
    repeats_floor: float = 10.0
    """… plus so many a second …"""
    repeats_saved: float = 50.0
    """… of which at most this many are saved up."""


_FAST, _SLOW = 0.125, 0.02  # weight of the newest round trip while all is well, and while draining


class Health:
    """The state machine. Whoever holds it serialises the calls to it."""

    __slots__ = (
        "calls",
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

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.state = FLOWING
        self.calls = 0
        """Calls that have ended."""
        self.share = 0.0
        """Share of the calls that failed lately."""
        self.luck = 1.0
        """How likely the failures since the last success are, if that share is all there is to know."""
        self.proof = -inf
        """When the youngest call that was answered well had been sent."""
        self.usual = 0.0
        """Smoothed round trip of good answers; 0 before the first."""
        self.spread = 0.0
        """Smoothed deviation from it."""
        self.since = 0.0
        """Calls sent before this belong to an earlier state."""
        self.resume_at = 0.0
        """DOWN, HELD: nothing goes out before."""
        self.level = 0
        """DOWN: probes that failed so far."""
        self.probing = False
        """DOWN, HELD: the probe is out."""
        self.inflight = 0
        """DRAINING: calls sent since it began and not yet reported …"""
        self.window = 1.0
        """… and how many of these there may be."""
        self.next_send = 0.0
        """DRAINING: nothing goes out before."""

    def admit(self, now: float) -> float:
        """0: go, and report back. Otherwise the time to ask again; infinite: after the next report."""
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
            self.since = now
        return 0.0

    def force(self) -> None:
        """A call goes out unasked: its caller's time is over, and it has never been heard."""
        if self.state == DRAINING:
            self.inflight += 1

    def held_until(self) -> float:
        """Until when the server itself asked for silence; 0 if it did not."""
        return self.resume_at if self.state == HELD else 0.0

    def flowed(self, now: float, sent: float) -> None:
        """A success while FLOWING: the one report that every good call makes, so it is spelled out."""
        self.calls += 1
        self.luck = 1.0
        if self.share:
            self.share -= self.share * self.tuning.memory
        if sent > self.proof:  # noqa: PLR1730 - a call of max costs more than the rest of this
            self.proof = sent
        usual = self.usual
        off = now - sent - usual
        if usual:
            self.usual = usual + off * _FAST
            self.spread += ((off if off > 0 else -off) - self.spread) * _FAST
        else:
            self.usual = off

    def succeeded(self, now: float, sent: float, draw: float, *, waiting: bool) -> None:
        """The call sent at `sent` was answered by a service that works."""
        if self.state == FLOWING:
            self.flowed(now, sent)
            return
        self._settle(sent)
        self.luck = 1.0
        self.share -= self.share * self.tuning.memory
        self.proof = max(self.proof, sent)
        trip = now - sent
        if self.state == HELD and (now < self.resume_at or sent < self.since):
            return  # it was on its way when the server asked for silence; the hint stands
        if self.state != DRAINING:
            self._begin_draining(now)
        self._pace(now, trip, draw, waiting=waiting)
        off = trip - self.usual
        self.usual += off * (_SLOW if self.usual else 1.0)
        self.spread += (abs(off) - self.spread) * _SLOW

    def failed(self, now: float, sent: float, draw: float, *, silent: bool) -> None:
        """The call sent at `sent` failed without a hint; `silent` when no answer came at all."""
        tuning = self.tuning
        probe = self._settle(sent)
        if not silent or sent > self.proof:
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
        if silent:
            gap = min(tuning.silence_cap, tuning.silence_first * tuning.silence_growth ** min(self.level, 64))
        else:
            gap = min(tuning.probe_cap, tuning.probe_first * tuning.probe_growth ** min(self.level, 64))
        self.resume_at = now + gap * (0.75 + 0.5 * draw)

    def hinted(self, now: float, sent: float, until: float) -> None:
        """The answer to the call sent at `sent` asked for no calls before `until`."""
        self._settle(sent)
        if self.state == HELD:
            self.resume_at = max(self.resume_at, until)
            return
        self.state = HELD
        self.resume_at = until
        self.since = now
        self.probing = False
        self.level = 0

    def abandoned(self, sent: float) -> None:
        """The call sent at `sent` has no outcome that says anything about the service."""
        self._settle(sent)

    def _settle(self, sent: float) -> bool:
        """Take a reported call off the books; whether it was the probe."""
        self.calls += 1
        if sent < self.since:
            return False
        if self.state == DRAINING:
            self.inflight -= 1
            return False
        probe, self.probing = self.probing, False
        return probe

    def _begin_draining(self, now: float) -> None:
        self.state = DRAINING
        self.since = now
        self.inflight = 0
        # Slots that lost messages hold for a whole time-out have to be made up for.
        self.window = 1.0 / (1.0 - min(self.share, 0.95))

    def _pace(self, now: float, trip: float, draw: float, *, waiting: bool) -> None:
        """Open the window on a calm answer; close it and rest on one that took longer than usual."""
        tuning, usual = self.tuning, self.usual
        excess = trip - usual
        tolerated = max((tuning.calm - 1) * usual + tuning.calm_floor, tuning.calm_spread * self.spread)
        if excess <= tolerated or not usual:
            self.window += max(self.share, 1.0 / self.window)
            self.next_send = now
            if not waiting:
                self.state = FLOWING
        else:
            self.window = max(1.0, self.window / 2)
            self.next_send = now + tuning.slack * excess * (0.5 + draw)
