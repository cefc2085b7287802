"""
The controller of one service: which calls may be sent now. Pure: time and random numbers are arguments.

| state | which calls may be sent | how the state ends |
|---|---|---|
| OPEN | all, at once | failures that are not chance → SHUT; a hint that is not usual here → WARY; a refusal that is usual here → RAMP |
| WARY | one at a time, the probe: one hint is no outage | failures that are not chance → SHUT; the probe succeeds, or is still out when a failure would long have arrived → the state before |
| SHUT | none before `hold.resume_at`, then one, the probe | the probe fails → SHUT, longer; it succeeds, or is still out when a failure would long have arrived → RAMP; a call sent after the first of the failures was answered → the state before |
| RAMP | `pace.per_second`, and `room.calls` in flight | failures that are not chance → SHUT; a calm answer while no call waits → OPEN |

OPEN also ends in RAMP when calls that were in flight are answered after others beside them were refused: `room` is limited then.

`evidence` judges failures, `hold` says when a probe is sent, `pace` how fast RAMP is, `room` how many calls are in flight; all know
the `traffic`. `sent` is when a call was sent: a success counts only if it was sent after the trouble began (`since`).
"""

from __future__ import annotations

from math import inf

from amends.recovery.evidence import (
    HINT,
    KNOWN,
    OUTAGE,
    PLAIN,
    REFUSED,
    SILENT,
    STALE,
    TOO_MANY,
    UNUSUAL_HINT,
    Evidence,
    Traffic,
)
from amends.recovery.room import Room
from amends.recovery.schedule import CAP_PLAIN, DOUBTED, KEPT, Hold, Pace

__all__ = ["HELD", "OPEN", "RAMP", "SHUT", "STATES", "WARY", "Controller"]

OPEN, RAMP, WARY, SHUT = range(4)
STATES = ("open", "ramp", "shut", "shut")  # as snapshots name them: to users WARY is shut
HELD = (WARY, SHUT)
WITHOUT_WORK = 0.5
"""A plain failure in less than this part of the usual trip may be a refusal: no work was done. Higher: failures of a working
service are taken for refusals; lower: a limit of calls in flight is found later where refusals take long."""


class Controller:
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = (
        "_aside",
        "_before",
        "evidence",
        "hold",
        "left_open",
        "level",
        "limited",
        "pace",
        "room",
        "sent",
        "silent_at",
        "since",
        "state",
        "taken_back",
        "traffic",
    )  # fmt: skip

    def __init__(self, *, aside: bool = False) -> None:
        """`aside`: only repeats are sent through it, beside first calls that it does not know."""
        self._aside = aside
        self.traffic = Traffic()
        self.evidence, self.hold = Evidence(self.traffic), Hold(self.traffic, aside=aside)
        self.pace = Pace(self.traffic, aside=aside)
        self.room = Room()
        self.state, self.since = OPEN, 0.0
        self._before = OPEN  # OPEN or RAMP: the state before WARY or SHUT
        self.sent = self.taken_back = 0
        """Calls that were sent, and those that were not after all."""
        self.left_open = -inf
        """When the state was OPEN for the last time."""
        self.level = -inf
        """The highest priority of a call that failed in this trouble. Calls of a higher one are sent as in OPEN."""
        self.silent_at = -inf
        """When a call was not answered in time."""
        self.limited = False
        """Whether the service refuses what is too much for it (429)."""

    def admit(self, now: float, *, tries: int = 0, priority: int = 0, size: int = 0) -> float:
        """Return 0 if a call may be sent, else the time to ask again. `tries`: the calls of its operation before this one; `size`: of its request."""
        if self.state == OPEN or priority > self.level:
            return 0.0
        if self.state == RAMP:
            if self.inflight + 1 > self.room.calls:
                return inf
            at = self.room.apart(self.inflight + 1, self.pace.last_sent, self.traffic.usual)
            return at if now < at else self.pace.take_turn(now, self.limited and tries, self.limited and size)
        if self.hold.probe_sent < 0.0:
            return self.hold.take_probe(now, fresh=not tries)
        presumed_good_at = self.hold.presumed_good_at(wary=self.state == WARY)
        if now < presumed_good_at:
            another_at = min(presumed_good_at, self.hold.another_at)
            return self.hold.take_probe(now, fresh=not tries) if now >= another_at else another_at
        if self.state == WARY:
            self.evidence.learn_chance()
        self._reopen(now, self.traffic.usual)
        return self.admit(now, tries=tries, priority=priority, size=size)

    def ready(self, now: float) -> bool:
        """Return whether `admit` would let a first call out, without taking its turn."""
        if self.state == OPEN:
            return True
        if self.state == RAMP:
            return self.inflight + 1 <= self.room.calls and now >= self.pace.next_send
        if self.hold.probe_sent < 0.0:
            return now >= self.hold.resume_at
        return now >= self.hold.presumed_good_at(wary=self.state == WARY)

    @property
    def inflight(self) -> int:
        """How many calls have been sent and have not ended."""
        return max(0, self.sent - self.taken_back - self.traffic.calls)

    def succeeded(
        self, now: float, sent: float, *, waiting: bool = False, repeat: bool = False, priority: int = 0
    ) -> None:
        """Report an answer of a working service. `waiting`: other calls are queued; `repeat`: not its operation's first."""
        evidence = self.evidence
        if self.state != OPEN and priority > self.level:
            self.traffic.calls += 1  # it shows nothing about lower priorities
            return
        if repeat:
            evidence.count_repeat(refused=False)
        elif evidence.share:
            evidence.count_first()
        if self.state == OPEN:
            self.traffic.succeeded_open(now, sent)
            if evidence.unbroken:
                evidence.unbroken = 0
            if evidence.run or evidence.share:
                crowded = self.crowded
                evidence.learn_chance()
                self.room.refusals, self.level = 0, -inf
                if crowded:
                    self._limit_room(now)
            return
        self.traffic.succeeded(now, sent)
        evidence.unbroken = 0
        if sent <= self.left_open and not repeat:
            self.traffic.failed(now)
        beside_probe = self.state == SHUT and not self.hold.is_probe(sent)
        if beside_probe:
            # Sent with the first of the failures, and answered: others are served beside those that are refused.
            crowded = self._before == OPEN and self.crowded
            since = self.since - self.hold.longest_failure if crowded else self.since
            if evidence.strained or sent < since or (sent == since and not crowded):
                return  # a queue was building up, or it was sent before the trouble: nothing about the time since
            # Sent after it: they were chance.
            self._go(self._before, now)
            self.hold.end()
            self.pace.drop()
            evidence.wait_for_answers(now, now - sent)
            if crowded:
                evidence.learn_chance()
                self._limit_room(now)
                return
        elif sent < self.since:
            return
        run, lasted = evidence.run, now - evidence.run_since
        if self.state != SHUT or not evidence.strained:
            evidence.learn_chance()
        if self.state in HELD:
            self._reopen(now, now - sent)
        self.traffic.good_since += 1
        if self.state == RAMP:
            self.room.answered(self.inflight + 1)
            calm = self.pace.follow(
                now, sent, run=run, lasted=lasted, limited=self.limited or self.room.limited
            )
            evidence.strained = evidence.strained or not calm
            refused = (self.limited or self.room.limited) and evidence.too_many
            if calm and not waiting and not refused and now >= self.pace.limited_until:
                self._go(OPEN, now)

    def failed(
        self, now: float, sent: float, draw: float, kind: int, hint: float = 0.0, *, repeat: int = 0,
        limited: bool = False,
        priority: int = 0,
        waiting: int = 0,
    ) -> bool:  # fmt: skip
        """
        Report a failure. Return whether it holds back all calls.

        `hint`: the seconds that its answer named; `repeat`: how many calls its operation made before; `limited`: it was a 429; `priority`: that of its operation. Calls of a
        higher priority than any that failed are not held back.
        """
        self.level = max(self.level, priority)
        plain = kind == PLAIN
        evidence, hold, state, probe = self.evidence, self.hold, self.state, self.hold.is_probe(sent)
        self.traffic.calls += 1
        if plain and self._without_work(now, now - sent):
            kind = REFUSED
        elif kind == SILENT:
            self.silent_at = now
            if not self.limited:
                self.room.end()
        elif plain and self.room.limited and not self.inflight:
            self.room.refused(now, sent, 1, served=True)
        if kind == REFUSED or (kind == HINT and hint <= DOUBTED):
            self.room.note_refusal(self.inflight, first=not evidence.run)
        else:
            self.room.refusals = 0
        if not repeat and (state == OPEN or sent <= self.left_open):
            self.traffic.failed(now)
        hold.note_failure(now - sent, first=state == OPEN)
        if kind == HINT:
            hold.note_hint(now, hint, confirmed=state == SHUT and probe, held=state == SHUT and not probe)
        if not probe and (state == SHUT or (state == WARY and kind != HINT)):
            return state == SHUT and kind == HINT  # sent before the hold: it says nothing new
        if state == OPEN and not evidence.run:
            evidence.strained = False
        last_of_room = state == RAMP and self.room.limited and self.inflight + 2 > self.room.calls
        if last_of_room and not evidence.run and kind == HINT and hint <= DOUBTED and sent >= self.since:
            self.limited = limited  # one call too many: no sign of an outage
            self._refused(now, sent, pace=not plain)
            return False
        found = evidence.judge(
            now,
            sent,
            kind,
            repeat=int(repeat),
            probe=state in HELD,
            beside=1 if self._aside else self.inflight,
        )
        if state == SHUT:
            self.limited = limited
            hold.begin(now, draw, kind, hint, failed_probe=True, waiting=waiting)
        elif found == OUTAGE:
            self._before = self._before if state == WARY else state
            if self._before == RAMP:
                self.pace.keep(strained=evidence.strained)
            self._go(SHUT, now)
            self.since, self.limited = evidence.run_since, limited
            hold.begin(now, draw, kind, hint, inflight=self.inflight, waiting=waiting)
        elif found == UNUSUAL_HINT:
            if state != WARY:
                self._go(WARY, now)
                self._before, self.since = state, sent
            hold.postpone(now)
            return False
        elif hint <= KEPT and (found == TOO_MANY or (self.room.limited and kind not in {PLAIN, SILENT})):
            self.limited = limited
            self._refused(now, sent, pace=not plain)
            return False
        return kind == HINT and self.state in HELD

    def _without_work(self, now: float, seconds: float) -> bool:
        """Whether a failure after `seconds` looks like a refusal: it was quick, and other calls are in flight."""
        share = 1.0 if self.room.limited else WITHOUT_WORK  # another failure like those before
        quick = seconds < share * self.traffic.usual or not self.traffic.answered
        silent = now <= self.silent_at + STALE  # it has too much work, and a queue
        return quick and not silent and self.inflight > 0 and self.room.possible(now)

    @property
    def crowded(self) -> bool:
        """Whether the present run of failures are refusals beside other calls in flight: there may be a limit of these."""
        return self.room.refusals >= KNOWN and self.room.served_beside and self.evidence.together

    def _limit_room(self, now: float) -> None:
        """Limit the calls in flight to those that were, when others were refused."""
        self._go(RAMP, now)
        self.since, self.level = now, inf
        self.pace.start_at_successes(now, together=False)
        self.room.start(self.room.beside, served=True)

    def _refused(self, now: float, sent: float, *, pace: bool) -> None:
        """Pace the calls, or limit those in flight, after one was refused because there were too many."""
        if self.state == OPEN:
            self._go(RAMP, now)
            self.since = now
            self.pace.start_at_successes(now, together=pace and self.evidence.together)
            self.room.end()
            self.room.refused(now, sent, self.inflight + 1, served=True)
        elif self.state == RAMP and sent >= self.since:
            served = self.traffic.last_answered >= self.since
            limited = self.room.limited
            explained = self.room.refused(now, sent, self.inflight + 1, served=served)
            if explained or not pace or not self.evidence.together:
                return
            if self.pace.per_second == inf or limited:  # only the room held calls back
                self.pace.start_at_successes(now)
            else:
                self.pace.cut_refused(now, sent, run=self.evidence.run)

    def shut(self, now: float, sent: float, draw: float, kind: int, hint: float, *, limited: bool) -> None:
        """Hold back all calls after a failure, whatever is known of others."""
        self._before = OPEN
        self._go(SHUT, now)
        self.since, self.limited, self.level = sent, limited, inf
        self.evidence.strained = kind == SILENT
        self.hold.note_failure(now - sent, first=True)
        if kind == HINT:
            self.hold.note_hint(now, hint, confirmed=False, held=False)
        self.hold.begin(now, draw, kind, hint)

    def abandoned(self, sent: float) -> None:
        """Report that the outcome of the call sent at `sent` shows nothing about the service."""
        self.traffic.calls += 1
        if self.state in HELD and self.hold.is_probe(sent):
            self.hold.probe_sent = -1.0

    def allow(self, now: float, remaining: int, seconds: float) -> None:
        """Report that the service allows `remaining` calls in the next `seconds`. If more arrive, they are paced until then."""
        was = self.state
        if was not in HELD and self.pace.limit(now, remaining, seconds, start=was == OPEN) and was == OPEN:
            self._go(RAMP, now)
            self.since, self.limited, self.level = now, True, inf

    def learn(self, now: float, resume_at: float, until: float, shut: bool) -> None:
        """Take over what another process found out: the service is unavailable, or available again."""
        if shut:
            if self.state != SHUT:
                self._go(SHUT, now)
                self.since, self.hold.probe_sent = now, -1.0
            self.level = inf  # whose calls failed there is not known
            self.hold.resume_at = min(resume_at, now + CAP_PLAIN)
            self.hold.until = max(self.hold.until, until)
        elif self.state == SHUT:
            self._reopen(now, self.traffic.usual)
            self.pace.last_sent = -inf  # no probe of this process was just sent

    def _go(self, state: int, now: float) -> None:
        """Change the state."""
        traffic = self.traffic
        if state == OPEN:
            traffic.since, self.level = now, -inf
        elif self.state == OPEN:
            self.left_open = now
            traffic.before, traffic.since, traffic.arrived_since = traffic.demand(now), inf, 0
            traffic.batch, traffic.began, traffic.good_since = 0.0, now, 0
            traffic.good_before, traffic.arrivals_before = traffic.good_rate(now), traffic.arrivals
            traffic.seconds_before = traffic.seconds(now)
        self.state = state

    def _reopen(self, now: float, trip: float) -> None:
        """Leave WARY or SHUT: the probe succeeded after `trip`, or is presumed good."""
        self.evidence.wait_for_answers(now, trip)
        self.since = now
        if self.state == WARY:
            self._go(self._before, now)
            self.hold.until, self.hold.probe_sent = 0.0, -1.0
            return
        self._go(RAMP, now)
        self._before = OPEN
        crowded = self.room.served_beside
        limited = self.limited and not self.hold.until and not crowded
        # Workers that wait make no new calls, so they cannot overload the service with what has queued up.
        strained = self.evidence.strained and not self.traffic.arrives_less(now)
        self.pace.start(now, strained=strained, limited=limited)
        if crowded:
            self.room.start(self.room.beside, served=True)
        elif limited:  # the calls that the demand keeps in flight, by Little's law
            self.room.start(self.traffic.demand(now) * self.traffic.usual)
        else:
            self.room.end()
        self.hold.end()
        self.evidence.forget_run()
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
