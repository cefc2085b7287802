"""
The controller of one service: which calls may be sent now. Pure: time and random numbers are arguments.

| state | which calls may be sent | how the state ends |
|---|---|---|
| OPEN | all, at once | failures that are not chance → SHUT; a hint that is not usual here → SHUT, *wary*; a refusal that is usual here → RAMP |
| SHUT | none before `resume_at`, then one, the probe | the probe fails → SHUT, longer; it succeeds, or is still out when a failure would long have arrived → RAMP (wary: the state before) |
| RAMP | `pace` calls per second | failures that are not chance → SHUT; a calm answer while no call waits → OPEN |

`evidence` decides what is chance, `pacing` how fast RAMP is, `traffic` knows the rates and the usual round trip. Reports
contain `sent`, the time when the call was sent: a success counts for a state only if it was sent in it.
"""

from __future__ import annotations

from math import inf

from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT
from amends.recovery.pacing import Pacing

__all__ = ["HINT", "OPEN", "PLAIN", "RAMP", "REFUSED", "SHUT", "SILENT", "STATES", "Controller"]

OPEN, RAMP, SHUT = range(3)
STATES = ("open", "ramp", "shut")

FIRST_SILENT, CAP_SILENT = 5.0, 15.0
"""Seconds to the first probe after silence, and the longest gap. Shorter: a fleet's probes keep the service busy; longer:
later recovery."""
FIRST_PLAIN, CAP_PLAIN = 0.5, 30.0
"""The same after plain failures, which cost the service little. Shorter: more calls; longer: later recovery."""
LEAST_CAP = 5.0
"""The cap of a process that sends many calls. Shorter: more calls in a long outage; longer: later recovery."""
PRESUMED, PRESUMED_AFTER, PRESUMED_WARY = 4.0, 1.0, 0.1
"""A probe that is out for 4 × as long as the failures took is presumed good, after at least 1 s, if wary 0.1 s. Lower: a
probe that will fail lets calls out; higher: where calls are long, all wait for a whole call."""
KEPT, KEPT_FACTOR = 30.0, 3.0
"""A hint up to this is kept whole; during longer ones a probe is sent after 30, 90, 270 … s. Longer: a wrong hint
costs more; shorter: more calls against a right one."""
DOUBTED, DOUBTED_FACTOR = 2.0, 7.0
"""The same for a service that answered before, where a longer hint may concern one caller only: after 2, 14, 98 … s.
Longer: the others wait longer; shorter: more than eight calls in an hour."""
USUAL_HINT = 0.03
"""A hint more likely than this is usual here, and no reason to be wary. Higher: more pauses where a few are refused."""
SHUT_CUT = 0.5
"""The factor of the pace after an overload that began in RAMP. Lower: later return; higher: in a heavy one it repeats."""


class Controller(Pacing):
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = (
        "_hint_level", "_longest_failure", "_shut_pace", "before", "failed_probes", "probe_sent", "resume_at", "since",
        "state", "until", "wary",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.state = OPEN
        self.since = 0.0
        """When the state began; in SHUT and RAMP, when the trouble began."""
        self.resume_at, self.until = 0.0, 0.0
        """SHUT: no call before this; and the time that the server named, if it did."""
        self.probe_sent, self.failed_probes, self.wary, self.before = -1.0, 0, False, OPEN
        """SHUT: when the probe was sent (-1: not), how many failed, and for `wary` the state before."""
        self._shut_pace = self._longest_failure = 0.0
        self._hint_level = 0

    # Asking ----------------------------------------------------------------------------------------------------

    def admit(self, now: float, *, fresh: bool = True) -> float:
        """Return 0 if a call may be sent, else the time to ask again. `fresh`: the first call of its operation."""
        if self.state == OPEN:
            return 0.0
        if self.state == RAMP:
            return self.take_turn(now)
        if self.probe_sent >= 0.0:
            least = PRESUMED_WARY if self.wary else PRESUMED_AFTER
            presumed = self.probe_sent + max(least, PRESUMED * self._longest_failure)
            if now < presumed:
                return presumed
            if self.wary:
                self.learn_chance()
            self._reopen(now)
            return self.admit(now, fresh=fresh)
        at = self.resume_at if fresh else max(self.resume_at, self.until)
        if now < at:
            return at
        self.probe_sent = now
        return 0.0

    def held_until(self) -> float:
        """Return the time that the server named for the next call; 0 if it named none."""
        return self.until if self.state == SHUT and not self.wary else 0.0

    @property
    def doubted(self) -> bool:
        """Whether calls are held by a hint that no probe has confirmed, from a service that answered before."""
        return self._hint_level == 1 and self.last_answered >= 0.0

    def may_force(self, now: float) -> bool:
        """Return whether a call that waited as long as it can may be sent anyway: not against a hint or an overload."""
        if self.state == SHUT:
            return self.until <= now
        return self.state == OPEN or self.pace >= self.rate(now)

    # Reports ---------------------------------------------------------------------------------------------------

    def succeeded(self, now: float, sent: float, *, waiting: bool, repeat: bool = False) -> None:
        """
        Report that a working service answered the call sent at `sent`.

        `waiting`: other calls are queued; `repeat`: it was not the first call of its operation.
        """
        if repeat:
            self.count_repeat(refused=False)
        if self.state == OPEN:
            self.succeeded_open(now, sent)
            return
        self.calls += 1
        self.last_answered = max(self.last_answered, sent)
        self.count_good(now)
        if sent < self.since:
            return  # sent before the trouble began: it shows nothing about the time since
        self.learn_chance()
        if self.state == SHUT:
            self._reopen(now)
        if self.state == RAMP and self.follow(now, sent) and not waiting and now >= self.limited_until:
            self.state = OPEN

    def failed(
        self, now: float, sent: float, draw: float, kind: int, hint: float = 0.0, *, repeat: bool = False
    ) -> bool:
        """
        Report a failure. Return whether it holds back all calls.

        `hint`: the seconds that its answer named; `repeat`: it was not the first call of its operation.
        """
        self.calls += 1
        self._longest_failure = max(self._longest_failure, now - sent) if self.state != OPEN else now - sent
        if kind == HINT:
            answered = self.state == SHUT and not self.wary and sent >= self.probe_sent >= 0.0
            self.until = now + hint if answered else max(self.until, now + hint)
        if self.state == SHUT and (sent < self.since or self.probe_sent < 0.0):
            if kind == HINT and not self.wary and self.until:
                self.resume_at = max(self.resume_at, now + min(hint, KEPT))
                return True
            if not (self.wary and kind == HINT):
                return False
        refused = kind in {HINT, REFUSED}
        if repeat and refused and self.state != SHUT:
            self.count_repeat(refused=True)
        unlikely = self.count_failure(now, sent, kind, repeat=repeat and refused)
        self._strained = self._strained or kind == SILENT
        if self.state == SHUT and not self.wary:
            self.failed_probes += 1
            self._shut(now, draw, kind, hint)
        elif unlikely or (kind == HINT and self.last_answered < 0.0):
            if RAMP in {self.state, self.before}:
                self._shut_pace = SHUT_CUT * self.pace if self._strained else self.pace
            self.failed_probes = self._hint_level = 0
            self.wary, self.since = False, now
            self._shut(now, draw, kind, hint)
        elif kind == HINT and self.likelihood < USUAL_HINT:
            if self.state != SHUT:
                self.before, self.wary, self.since = self.state, True, sent
                self.state = SHUT
            self.resume_at, self.probe_sent = now, -1.0
            return False
        elif refused and self.too_many and hint <= KEPT:
            if self.state == OPEN:
                self.state, self.since = RAMP, sent
                self.pace_arrivals(now)
            if self.state == RAMP:
                self.cut_refused(now, sent)
            return False
        return kind == HINT and self.state == SHUT

    def abandoned(self, sent: float) -> None:
        """Report that the outcome of the call sent at `sent` shows nothing about the service."""
        self.calls += 1
        if self.state == SHUT and sent >= self.probe_sent >= 0.0:
            self.probe_sent = -1.0

    def allow(self, now: float, remaining: int, seconds: float) -> None:
        """
        Report that the service allows `remaining` calls in the next `seconds`.

        If more arrive, and no more remain than arrived lately, the calls are paced so that they last until then. With none
        remaining, the next call is due when the time is over.
        """
        if self.state == SHUT or not self.limit_pace(now, remaining, seconds):
            return
        if self.state == OPEN:
            self.state, self.since, self._raised_at, self.last_sent = RAMP, now, now, now
            self.pace = self.limit
        self.pace = min(self.pace, self.limit)

    def postpone(self, until: float) -> None:
        """Take back the probe that was just admitted; ask again at `until`."""
        self.probe_sent, self.resume_at = -1.0, until

    def learn(self, now: float, resume_at: float, until: float, shut: bool) -> None:
        """Take over what another process found out: the service is unavailable, or available again."""
        if not shut:
            if self.state == SHUT and not self.wary:
                self._reopen(now)
                self.last_sent = -inf  # no probe of this process was just sent
            return
        if self.state != SHUT or self.wary:
            self.state, self.wary, self.since, self.probe_sent = SHUT, False, now, -1.0
        self.resume_at, self.until = min(resume_at, now + CAP_PLAIN), max(self.until, until)

    # Inside ----------------------------------------------------------------------------------------------------

    def _shut(self, now: float, draw: float, kind: int, hint: float) -> None:
        """Hold all calls back until the next probe."""
        self.discard_window(now)
        self.state, self.probe_sent = SHUT, -1.0
        rate, doubled = max(self.rate(now), 1e-9), 2.0 ** min(self.failed_probes, 16)
        jitter = 0.75 + 0.5 * draw
        if kind == HINT:
            kept = hint <= KEPT or self.last_answered < 0.0
            first, factor = (KEPT, KEPT_FACTOR) if kept else (DOUBTED, DOUBTED_FACTOR)
            self.resume_at = now + min(hint, first * factor**self._hint_level)
            self._hint_level = min(self._hint_level + 1, 16)
        elif kind == SILENT:
            cap = min(CAP_SILENT, max(LEAST_CAP, 4.0 / rate))
            self.resume_at = now + min(cap, FIRST_SILENT * doubled) * jitter
        else:
            first = min(LEAST_CAP, max(FIRST_PLAIN, 0.5 / rate))
            self.resume_at = now + min(CAP_PLAIN, max(LEAST_CAP, 1.0 / rate), first * doubled) * jitter
        if kind != HINT:
            self.until = 0.0

    def _reopen(self, now: float) -> None:
        """Leave SHUT: its probe succeeded, or is presumed good."""
        self.until, self.probe_sent = 0.0, -1.0
        if self.wary:
            self.wary, self.state, self.since = False, self.before, now
            return
        self.state, self.since, self.before = RAMP, now, OPEN
        self.start_pace(now, self._shut_pace)
        self._shut_pace = 0.0
        self.failed_probes = self._hint_level = 0
