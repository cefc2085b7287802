"""
The controller of one service: which calls may be sent now. Pure: time and random numbers are arguments.

| state | which calls may be sent | how the state ends |
|---|---|---|
| OPEN | all, at once | failures that are not chance → SHUT; a hint that is not usual here → WARY; a refusal that is usual here → RAMP |
| WARY | one at a time, the probe: one hint is no outage | failures that are not chance → SHUT; the probe succeeds, or is still out when a failure would long have arrived → the state before |
| SHUT | none before `hold.resume_at`, then one, the probe | the probe fails → SHUT, longer; it succeeds, or is still out when a failure would long have arrived → RAMP; a call sent after the first of the failures was answered → the state before |
| RAMP | `pace.per_second` | failures that are not chance → SHUT; a calm answer while no call waits → OPEN |

`evidence` judges failures, `hold` says when a probe is sent, `pace` how fast RAMP is; all three know the `traffic`. `sent` is
when a call was sent: a success counts only if it was sent after the trouble began (`since`).
"""

from __future__ import annotations

from math import inf

from amends.recovery.evidence import HINT, OUTAGE, TOO_MANY, UNUSUAL_HINT, Evidence, Traffic
from amends.recovery.schedule import CAP_PLAIN, KEPT, Hold, Pace

__all__ = ["HELD", "OPEN", "RAMP", "SHUT", "STATES", "WARY", "Controller"]

OPEN, RAMP, WARY, SHUT = range(4)
STATES = ("open", "ramp", "shut", "shut")  # as snapshots name them: to users WARY is shut
HELD = (WARY, SHUT)


class Controller:
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = ("_before", "evidence", "hold", "pace", "since", "state", "traffic")

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.evidence, self.hold, self.pace = Evidence(self.traffic), Hold(self.traffic), Pace(self.traffic)
        self.state, self.since = OPEN, 0.0
        self._before = OPEN  # OPEN or RAMP: the state before WARY or SHUT

    def admit(self, now: float, *, fresh: bool = True) -> float:
        """Return 0 if a call may be sent, else the time to ask again. `fresh`: the first call of its operation."""
        if self.state == OPEN:
            return 0.0
        if self.state == RAMP:
            return self.pace.take_turn(now)
        if self.hold.probe_sent < 0.0:
            return self.hold.take_probe(now, fresh=fresh)
        presumed_good_at = self.hold.presumed_good_at(wary=self.state == WARY)
        if now < presumed_good_at:
            return presumed_good_at
        if self.state == WARY:
            self.evidence.learn_chance()
        self._reopen(now, self.traffic.usual)
        return self.admit(now, fresh=fresh)

    def succeeded(self, now: float, sent: float, *, waiting: bool = False, repeat: bool = False) -> None:
        """Report an answer of a working service. `waiting`: other calls are queued; `repeat`: not its operation's first."""
        evidence = self.evidence
        if repeat:
            evidence.count_repeat(refused=False)
        if self.state == OPEN:
            self.traffic.succeeded_open(now, sent)
            if evidence.run or evidence.share:
                evidence.learn_chance()
            return
        self.traffic.succeeded(now, sent)
        beside_probe = self.state == SHUT and not self.hold.is_probe(sent)
        if sent < self.since or (beside_probe and evidence.strained):
            return  # sent before the trouble began, or when a queue was building up: nothing about the time since
        if beside_probe:  # sent after the first of the failures, and answered: they were chance
            self.state = self._before
            self.hold.end()
            self.pace.drop()
            evidence.wait_for_answers(now, now - sent)
        if self.state != SHUT or not evidence.strained:
            evidence.learn_chance()
        if self.state in HELD:
            self._reopen(now, now - sent)
        if self.state == RAMP:
            calm = self.pace.follow(now, sent)
            evidence.strained = evidence.strained or not calm
            self.state = OPEN if calm and not waiting and now >= self.pace.limited_until else RAMP

    def failed(
        self, now: float, sent: float, draw: float, kind: int, hint: float = 0.0, *, repeat: bool = False
    ) -> bool:
        """Report a failure; `hint`: the seconds that its answer named. Return whether it holds back all calls."""
        evidence, hold, state, probe = self.evidence, self.hold, self.state, self.hold.is_probe(sent)
        self.traffic.calls += 1
        hold.note_failure(now - sent, first=state == OPEN)
        if kind == HINT:
            hold.note_hint(now, hint, confirmed=state == SHUT and probe, held=state == SHUT and not probe)
        if not probe and (state == SHUT or (state == WARY and kind != HINT)):
            return state == SHUT and kind == HINT  # sent before the hold: it says nothing new
        if state == OPEN and not evidence.run:
            evidence.strained = False
        found = evidence.judge(now, sent, kind, repeat=repeat, probe=state in HELD)
        if state == SHUT:
            hold.begin(now, draw, kind, hint, failed_probe=True)
        elif found == OUTAGE:
            self._before = self._before if state == WARY else state
            if self._before == RAMP:
                self.pace.keep(strained=evidence.strained)
            self.state, self.since = SHUT, evidence.run_since
            hold.begin(now, draw, kind, hint)
        elif found == UNUSUAL_HINT:
            if state != WARY:
                self.state, self._before, self.since = WARY, state, sent
            hold.postpone(now)
            return False
        elif found == TOO_MANY and hint <= KEPT:
            if state == OPEN:
                self.state, self.since = RAMP, sent
                self.pace.start_at_arrivals(now)
            if state != WARY:
                self.pace.cut_refused(now, sent)
            return False
        return kind == HINT and self.state in HELD

    def abandoned(self, sent: float) -> None:
        """Report that the outcome of the call sent at `sent` shows nothing about the service."""
        self.traffic.calls += 1
        if self.state in HELD and self.hold.is_probe(sent):
            self.hold.probe_sent = -1.0

    def allow(self, now: float, remaining: int, seconds: float) -> None:
        """Report that the service allows `remaining` calls in the next `seconds`. If more arrive, they are paced until then."""
        was = self.state
        if was not in HELD and self.pace.limit(now, remaining, seconds, start=was == OPEN) and was == OPEN:
            self.state, self.since = RAMP, now

    def learn(self, now: float, resume_at: float, until: float, shut: bool) -> None:
        """Take over what another process found out: the service is unavailable, or available again."""
        if shut:
            if self.state != SHUT:
                self.state, self.since, self.hold.probe_sent = SHUT, now, -1.0
            self.hold.resume_at = min(resume_at, now + CAP_PLAIN)
            self.hold.until = max(self.hold.until, until)
        elif self.state == SHUT:
            self._reopen(now, self.traffic.usual)
            self.pace.last_sent = -inf  # no probe of this process was just sent

    def _reopen(self, now: float, trip: float) -> None:
        """Leave WARY or SHUT: the probe succeeded after `trip`, or is presumed good."""
        self.evidence.wait_for_answers(now, trip)
        self.since = now
        if self.state == WARY:
            self.state, self.hold.until, self.hold.probe_sent = self._before, 0.0, -1.0
            return
        self.state, self._before = RAMP, OPEN
        self.hold.end()
        self.evidence.forget_run()
        self.pace.start(now, strained=self.evidence.strained)
        self.evidence.strained = False

    @property
    def probes_fresh(self) -> bool:
        """Whether a probe should be the first call of its operation: a hint may concern only the callers who got it."""
        return self.state in HELD and self.hold.until > 0.0

    def held_until(self) -> float:
        """Return the time that the server named for the next call; 0 if it named none."""
        return self.hold.until if self.state == SHUT else 0.0

    def may_force(self, now: float) -> bool:
        """Return whether a call that waited as long as it can may be sent anyway: not against a hint or an overload."""
        if self.state in HELD:
            return self.hold.until <= now
        return self.state == OPEN or self.pace.per_second >= self.traffic.rate(now)
