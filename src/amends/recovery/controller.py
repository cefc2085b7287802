"""
The controller of one service: which calls may be sent now. Pure: time and random numbers are arguments.

| state | which calls may be sent | how the state ends |
|---|---|---|
| OPEN | all, at once | failures that are not chance → SHUT; a hint that is not usual here → SHUT, *wary*; a refusal that is usual here → RAMP |
| SHUT | none before `resume_at`, then one, the probe | the probe fails → SHUT, longer; it succeeds, or is still out when a failure would long have arrived → RAMP (wary: the state before); a call sent after the first of the failures was answered → the state before |
| RAMP | `pace` calls per second | failures that are not chance → SHUT; a calm answer while no call waits → OPEN |

`evidence` decides what is chance, `probing` when the probe is sent, `pacing` how fast RAMP is, `traffic` knows the rates and
the usual round trip. Reports contain `sent`, the time when the call was sent: a success counts only if it was sent after the
trouble began.
"""

from __future__ import annotations

from math import inf

from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT
from amends.recovery.probing import CAP_PLAIN, KEPT, Probing

__all__ = ["HINT", "OPEN", "PLAIN", "RAMP", "REFUSED", "SHUT", "SILENT", "STATES", "Controller"]

OPEN, RAMP, SHUT = range(3)
STATES = ("open", "ramp", "shut")

EARLY = 1.25
"""After a return, failures that arrive within 1.25 round trips are no verdict: the good answers may be slower. Longer: more
calls are sent to a service that is down again; shorter: quick failures of a few calls hide slow successes."""
USUAL_HINT = 0.03
"""A hint more likely than this is usual here, and no reason to be wary. Higher: more pauses where a few are refused."""
SHUT_CUT = 0.5
"""The factor of the pace after an overload that began in RAMP. Lower: later return; higher: in a heavy one it repeats."""


class Controller(Probing):
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = ("_shut_pace", "_verdict_at", "before", "since", "state", "wary")

    def __init__(self) -> None:
        super().__init__()
        self.state, self.before, self.wary = OPEN, OPEN, False
        """`before` and `wary` are for SHUT: the state before it, and whether one hint is its only reason."""
        self.since = 0.0
        """When the state began; in SHUT and RAMP, when the trouble began."""
        self._shut_pace = self._verdict_at = 0.0

    def admit(self, now: float, *, fresh: bool = True) -> float:
        """Return 0 if a call may be sent, else the time to ask again. `fresh`: the first call of its operation."""
        if self.state == OPEN:
            return 0.0
        if self.state == RAMP:
            return self.take_turn(now)
        if self.probe_sent >= 0.0:
            presumed = self.presumed_good_at(wary=self.wary)
            if now < presumed:
                return presumed
            if self.wary:
                self.learn_chance()
            self._reopen(now, self.usual)
            return self.admit(now, fresh=fresh)
        at = self.resume_at if fresh else max(self.resume_at, self.until)
        if now < at:
            return at
        self.probe_sent = now
        return 0.0

    @property
    def probes_fresh(self) -> bool:
        """Whether a probe should be the first call of its operation: a hint may concern only the callers who got it."""
        return self.state == SHUT and self.until > 0.0

    def held_until(self) -> float:
        """Return the time that the server named for the next call; 0 if it named none."""
        return self.until if self.state == SHUT and not self.wary else 0.0

    def may_force(self, now: float) -> bool:
        """Return whether a call that waited as long as it can may be sent anyway: not against a hint or an overload."""
        if self.state == SHUT:
            return self.until <= now
        return self.state == OPEN or self.pace >= self.rate(now)

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
        early = self.state == SHUT and not self.wary and not self.is_probe(sent)
        if sent < self.since or (early and self._strained):
            return  # sent before the trouble began, or when a queue was building up: nothing about the time since
        if early:  # sent after the first of the failures, and answered: they were chance
            self.state, self._shut_pace, self._verdict_at = self.before, 0.0, now + EARLY * (now - sent)
            self.end_hold()
        if self.state != SHUT or self.wary or not self._strained:
            self.learn_chance()
        if self.state == SHUT:
            self._reopen(now, now - sent)
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
        self.longest_failure = max(self.longest_failure, now - sent) if self.state != OPEN else now - sent
        shut, probe = self.state == SHUT and not self.wary, self.is_probe(sent)
        if kind == HINT:
            self.until = now + hint if shut and probe else max(self.until, now + hint)
        if shut and not probe:
            if kind == HINT:
                self.resume_at = max(self.resume_at, now + min(hint, KEPT))
            return kind == HINT
        if self.state == SHUT and not probe and kind != HINT:
            return False
        refused = kind in {HINT, REFUSED}
        if repeat and refused and self.state != SHUT:
            self.count_repeat(refused=True)
        if self.state == OPEN and not self.run:
            self._strained = False
        unlikely = self.count_failure(now, sent, kind, repeat=repeat and refused)
        unlikely = unlikely and (kind == SILENT or self.state == SHUT or now >= self._verdict_at)
        self._strained = self._strained or kind == SILENT
        if shut:
            self.failed_probes += 1
            self.hold(now, draw, kind, hint)
        elif unlikely or (kind == HINT and self.last_answered < 0.0):
            self._shut(now, draw, kind, hint)
        elif kind == HINT and self.likelihood < USUAL_HINT:
            if self.state != SHUT:
                self.before, self.wary, self.since = self.state, True, sent
                self.state = SHUT
            self.postpone(now)
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
        if self.state == SHUT and self.is_probe(sent):
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

    def learn(self, now: float, resume_at: float, until: float, shut: bool) -> None:
        """Take over what another process found out: the service is unavailable, or available again."""
        if not shut:
            if self.state == SHUT and not self.wary:
                self._reopen(now, self.usual)
                self.last_sent = -inf  # no probe of this process was just sent
            return
        if self.state != SHUT or self.wary:
            self.state, self.wary, self.since, self.probe_sent = SHUT, False, now, -1.0
        self.resume_at, self.until = min(resume_at, now + CAP_PLAIN), max(self.until, until)

    def _shut(self, now: float, draw: float, kind: int, hint: float) -> None:
        """Hold all calls back: the failures are no chance."""
        self.before = self.before if self.wary else self.state
        if self.before == RAMP:
            self._shut_pace = SHUT_CUT * self.pace if self._strained else self.pace
        self.state, self.wary, self.since = SHUT, False, self.run_since
        self.failed_probes = self._hint_level = 0
        self.hold(now, draw, kind, hint)

    def _reopen(self, now: float, trip: float) -> None:
        """Leave SHUT: its probe succeeded after `trip`, or is presumed good."""
        self._verdict_at, self.since = now + EARLY * trip, now
        if self.wary:
            self.until, self.probe_sent = 0.0, -1.0
            self.state, self.wary = self.before, False
            return
        self.end_hold()
        self.state, self.before = RAMP, OPEN
        self.run, self.likelihood = 0, 1.0
        self.start_pace(now, self._shut_pace)
        self._shut_pace = 0.0
