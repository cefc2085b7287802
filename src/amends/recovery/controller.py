"""
The controller of one service: which calls may be sent now. Pure: time and random numbers are arguments.

| state | which calls may be sent | how the state ends |
|---|---|---|
| OPEN | all, at once | failures that are not chance → SHUT; a hint that is not usual here → SHUT, *wary*; a refusal that is usual here → RAMP |
| SHUT | none before `resume_at`, then one, the probe | the probe fails → SHUT, longer; it succeeds, or is still out when a failure would long have arrived → RAMP (wary: the state before) |
| RAMP | `pace` calls per second | failures that are not chance → SHUT; a calm answer while no call waits → OPEN |

*Chance*: each failure since the last success multiplies `likelihood` by the share of calls that fail here, but at
least by the floor of its kind. The failures are not chance if such a run would happen less than once in CALM seconds
at the present rate. A run that ends with a success is learned as chance; one that ends in SHUT is not.

*Pace*: RAMP starts at the rate at which operations arrive. Calm answers raise the pace. Slow answers and refusals
lower it, not below SLOWEST of the arrivals: in a lasting overload the pace settles where the answers are calm.

Reports contain `sent`, the time when the call was sent. A success counts for a state only if it was sent in it.
"""

from __future__ import annotations

from math import exp, inf, sqrt

__all__ = ["HINT", "OPEN", "PLAIN", "RAMP", "REFUSED", "SHUT", "SILENT", "STATES", "Controller"]

OPEN, RAMP, SHUT = range(3)
STATES = ("open", "ramp", "shut")

PLAIN, REFUSED, HINT, SILENT = range(4)
FLOORS = (0.2, 0.2, 0.01, 0.04)
"""The least likelihood of one failure: plain, refused (rate limited), with a hint, silent. Lower: an outage is noticed
after fewer failures, and a few lost messages look like one."""

CALM = 1000.0
"""Seconds between two false alarms. Longer: outages cost more calls. Shorter: independent failures cause pauses."""
NEWEST = 1 / 32
"""The weight of the newest outcome in the share of failures. Larger: learned faster, and more false alarms."""
LEARNED = 8
"""Failures of one run that are learned as chance. More: a service that was down and is back counts as unreliable."""
STALE = 60.0
"""Seconds after which a failure is no evidence. Longer: with little traffic, old failures count against a service."""
MEMORY = 30.0
"""Seconds over which the arrival rate is averaged. Longer: steadier; shorter: follows a changing load."""
LEAST_SPAN, LEAST_RATE = 1.0, 0.1
"""The first calls count as made within a second, and evidence as for a call in ten seconds. Less: with little traffic one
failure is an outage; more: it takes many."""
COLD_RATE = 1.0
"""The least rate for evidence before the first success. Lower: a few failed calls at the start are an outage."""
WINDOW = 10.0
WINDOWS = 6
"""The usual round trip is the least mean of six windows of at least ten seconds. More: a rising queue is not taken
for usual; fewer: a service that became slower for good is accepted sooner."""
SLOW = 1.25
SLOW_ABOVE = 0.05
"""An answer is slow above 1.25 × the usual trip, and the usual longest trip, plus 0.05 s. Higher: queues of the
service grow unseen; lower: noise slows down a working service."""
FIRST_SILENT, CAP_SILENT = 3.0, 15.0
"""Seconds to the first probe after silence, and the longest gap. Shorter: a fleet's probes keep the service busy."""
FIRST_PLAIN, CAP_PLAIN = 0.5, 30.0
"""The same after plain failures, which cost the service little. Shorter: more calls; longer: later recovery."""
LEAST_CAP = 5.0
"""The cap of a process that sends many calls. Shorter: more calls in a long outage; longer: later recovery."""
PRESUMED, PRESUMED_FIRST = 4.0, 1.0
"""A probe that is out for 4 × as long as the failures took (at least 1 s) is presumed good. Lower: a probe that will
fail lets calls out; higher: where calls are long, all wait for a whole call."""
KEPT = 30.0
"""A hint up to this is kept whole; during longer ones a probe is sent after 30, 90, 270 … s. Longer: a wrong hint
costs more; shorter: more calls against a right one."""
USUAL_HINT = 0.03
"""A hint more likely than this is usual here, and no reason to be wary. Higher: more pauses where a few are refused."""
RISE = 1.05
"""The most by which a calm answer raises a pace above the arrivals. 1.1: fleets relapse at 1 s latency."""
FAST_DOUBLING, SLOW_DOUBLING = 1.0, 5.0
"""Such a pace doubles in twice the usual trip, within these seconds. Shorter: more overshoot; longer: later return."""
RETURN = 15.0
"""Seconds in which calm answers raise a pace below the arrivals e-fold. Shorter: a lasting overload swings more;
longer: after an overload a fleet takes longer to return."""
CUT, DEEP_CUT, FAR = 0.85, 0.7, 8.0
"""The factor of a slow answer, and of one that took eight times too long. Lower: the pace swings, and falls below what
the service can do; higher: a fleet leaves a heavy overload later."""
SHUT_CUT = 0.5
"""The factor of an outage that began in RAMP. Lower: later return; higher: in a heavy overload it repeats."""
SLOWEST = 0.45
"""The least pace as a share of the arrivals. Lower: holds in heavier lasting overloads; higher: later return."""
LEAST_PACE = 0.05
"""The least pace in calls per second. Lower: a client with little traffic may wait minutes for its next call."""
BEHIND = 0.1
"""Seconds that sending may be behind its pace and catch up. More: bursts; less: timers that are late cost pace."""
REFUSED_SHARE = 0.15
"""Refusals lower the pace if more than this share of the calls fail. Lower: one refused tenant slows down the others;
higher: more refused calls."""
ENOUGH = 32
"""Calls after which the share of failures is known well enough for that. More: more refused calls at the start; fewer: a
client that made a handful of calls is paced by them for minutes."""
REFUSED_PACE = 1.25
"""The least pace after refusals, as a multiple of the successes. Higher: more refused calls; lower: a limit that was
raised is used later."""


class Controller:
    """The state machine. It has no lock; `Upstream` holds its own lock around every call."""

    __slots__ = (
        "_arrived",
        "_calls_good",
        "_cut_at",
        "_good",
        "_hint_level",
        "_longest_failure",
        "_peak",
        "_raised_at",
        "_rolled_at",
        "_shut_pace",
        "_span",
        "_total",
        "_trips",
        "_usual",
        "_waited",
        "before",
        "calls",
        "failed_at",
        "failed_probes",
        "last_answered",
        "last_sent",
        "likelihood",
        "pace",
        "peak",
        "probe_sent",
        "resume_at",
        "run",
        "share",
        "since",
        "state",
        "until",
        "usual",
        "wary",
    )  # fmt: skip

    def __init__(self) -> None:
        self.state = OPEN
        self.calls = 0
        """Calls that have ended."""
        self.share = 0.0
        """The share of calls that fail by chance."""
        self.likelihood, self.run, self.failed_at = 1.0, 0, -inf
        """The failures since the last success: their likelihood, their number, the time of the latest."""
        self.last_answered = -inf
        """The latest send time of all calls that were answered by a working service."""
        self.usual = self.peak = 0.0
        """The usual mean and longest round trip; 0 before they are known."""
        self.since = 0.0
        """When the state began; in SHUT and RAMP, when the trouble began."""
        self.resume_at, self.until = 0.0, 0.0
        """SHUT: no call before this; and the time that the server named, if it did."""
        self.probe_sent, self.failed_probes, self.wary, self.before = -1.0, 0, False, OPEN
        """SHUT: when the probe was sent (-1: not), how many failed, and for `wary` the state before."""
        self.pace, self.last_sent = 1.0, -inf
        """RAMP: calls per second, and when the last one was due."""
        self._calls_good, self._total, self._peak, self._waited = 0, 0.0, 0.0, 0
        self._rolled_at, self._span, self._arrived, self._good, self._trips = -inf, 0.0, 0.0, 0.0, 0
        self._usual: list[tuple[float, float]] = []
        self._cut_at = self._raised_at = self._shut_pace = self._longest_failure = 0.0
        self._hint_level = 0

    # Asking ----------------------------------------------------------------------------------------------------

    def admit(self, now: float, *, fresh: bool = True) -> float:
        """Return 0 if a call may be sent, else the time to ask again. `fresh`: the first call of its operation."""
        if self.state == SHUT:
            if self.probe_sent >= 0.0:
                presumed = self.probe_sent + max(PRESUMED_FIRST, PRESUMED * self._longest_failure)
                if now < presumed:
                    return presumed
                self._reopen(now)
                return self.admit(now, fresh=fresh)
            at = self.resume_at if fresh else max(self.resume_at, self.until)
            if now < at:
                return at
            self.probe_sent = now
        elif self.state == RAMP:
            at = self.next_send
            if now < at:
                return at
            self.last_sent = max(at, now - BEHIND)
        return 0.0

    def arrived(self) -> None:
        """Count an operation that arrived while the state was not OPEN."""
        self._waited += 1

    def held_until(self) -> float:
        """Return the time that the server named for the next call; 0 if it named none."""
        return self.until if self.state == SHUT and not self.wary else 0.0

    @property
    def next_send(self) -> float:
        """RAMP: when the next call is due."""
        return self.last_sent + 1.0 / self.pace

    @property
    def failing(self) -> float:
        """The share of the calls that failed lately, including the present run of failures."""
        return 1.0 - (1.0 - self.share) * (1.0 - NEWEST) ** min(self.run, LEARNED)

    def may_force(self, now: float) -> bool:
        """Return whether a call that waited as long as it can may be sent anyway: not against a hint or an overload."""
        if self.state == SHUT:
            return self.until <= now
        return self.state == OPEN or self.pace >= self.rate(now)

    def rate(self, now: float) -> float:
        """Return how many operations arrive per second."""
        self._start(now)
        new = self._calls_good + self._waited
        return (self._arrived + new) / max(LEAST_SPAN, self._span + now - self._rolled_at)

    # Reports ---------------------------------------------------------------------------------------------------

    def succeeded_open(self, now: float, sent: float) -> None:
        """Report a success in OPEN. Every successful call gets here: the code avoids function calls."""
        trip = now - sent
        self.calls += 1
        self._calls_good += 1
        self._total += trip
        self._peak = max(self._peak, trip)
        if sent > self.last_answered:  # noqa: PLR1730 - `max` would be a function call
            self.last_answered = sent
        if self.run or self.share:
            self._learn()
        if now > self._rolled_at + WINDOW:
            self._roll(now)

    def succeeded(self, now: float, sent: float, *, waiting: bool) -> None:
        """Report that a working service answered the call sent at `sent`. `waiting`: other calls are queued."""
        if self.state == OPEN:
            self.succeeded_open(now, sent)
            return
        self.calls += 1
        self.last_answered = max(self.last_answered, sent)
        self._good += 1
        if now > self._rolled_at + WINDOW:
            self._roll(now)
        if sent < self.since:
            return  # sent before the trouble began: it shows nothing about the time since
        self._learn()
        trip = now - sent
        if self.state == SHUT:
            self._reopen(now)
            if self.state == OPEN:
                return
        if not self._usual and (trip < self.usual or not self.usual):
            self.usual = self.peak = trip
        usual = self.usual
        slow = max(SLOW * usual, self.peak) + SLOW_ABOVE
        if trip > slow:
            factor = CUT if trip < FAR * slow else DEEP_CUT
            self._cut(now, sent, factor * self.pace, SLOWEST * self.rate(now))
            return
        arriving = max(self.rate(now), LEAST_PACE)
        passed, self._raised_at = now - self._raised_at, now
        if self.pace < arriving:
            self.pace = min(arriving, self.pace * exp(min(passed / RETURN, 9.0)))
        else:
            doubling = min(SLOW_DOUBLING, max(FAST_DOUBLING, 2.0 * usual))
            self.pace *= min(RISE, 2.0 ** min(passed / doubling, 1.0))
        if not waiting:
            self.state = OPEN

    def failed(self, now: float, sent: float, draw: float, kind: int, hint: float = 0.0) -> bool:
        """Report a failure; `hint`: seconds that its answer named. Return whether it holds back all calls."""
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
        unlikely = self._count_failure(now, sent, kind)
        if self.state == SHUT and not self.wary:
            self.failed_probes += 1
            self._shut(now, draw, kind, hint)
        elif unlikely or (kind == HINT and self.last_answered < 0.0):
            if RAMP in {self.state, self.before}:
                self._shut_pace = SHUT_CUT * self.pace
            self.failed_probes = self._hint_level = 0
            self.wary, self.since = False, now
            self._shut(now, draw, kind, hint)
        elif kind == HINT and self.likelihood < USUAL_HINT:
            if self.state != SHUT:
                self.before, self.wary, self.since = self.state, True, sent
                self.state = SHUT
            self.resume_at, self.probe_sent = now, -1.0
            return False
        elif kind in {HINT, REFUSED} and self.share > REFUSED_SHARE and self.calls >= ENOUGH:
            if self.state == OPEN:
                self.state, self.since, self.pace = RAMP, sent, max(self.rate(now), LEAST_PACE)
                self._raised_at = now
            if self.state == RAMP:
                self._cut(now, sent, CUT * self.pace, REFUSED_PACE * self._good_rate(now))
            return False
        return kind == HINT and self.state == SHUT

    def abandoned(self, sent: float) -> None:
        """Report that the outcome of the call sent at `sent` shows nothing about the service."""
        self.calls += 1
        if self.state == SHUT and sent >= self.probe_sent >= 0.0:
            self.probe_sent = -1.0

    def allow(self, now: float, remaining: int, seconds: float) -> None:
        """
        Report that the service allows `remaining` calls in the next `seconds`. Pace the calls if more arrive.

        With none remaining, the next call is due when the time is over.
        """
        pace = max(max(remaining, 1) / max(seconds, 1e-3), LEAST_PACE)
        if self.state == SHUT or pace >= self.rate(now):
            return
        if self.state == OPEN:
            self.state, self.since, self._raised_at, self.last_sent = RAMP, now, now, now
            self.pace = pace
        self.pace = min(self.pace, pace)

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

    def _count_failure(self, now: float, sent: float, kind: int) -> bool:
        """Count a failure as evidence. Return whether the run of failures is no chance."""
        if now - self.failed_at > STALE:
            self.likelihood, self.run = 1.0, 0
        self.failed_at = now
        self.run += 1
        if kind == SILENT:
            if sent <= self.last_answered:
                return False  # a call sent later was answered: a message was lost, and the service works
            if self.last_answered < 0.0:
                kind = PLAIN
        # The share is an estimate: its likely error is added, so that a low estimate is no false alarm.
        self.likelihood *= min(0.95, max(self.share + sqrt(self.share * NEWEST), FLOORS[kind]))
        least = COLD_RATE if self.last_answered < 0.0 else LEAST_RATE
        return self.likelihood * CALM * max(self.rate(now), least) < 1.0

    def _learn(self) -> None:
        """Learn from a success: the failures before it were chance."""
        weight = max(NEWEST, 1.0 / (self.calls + 1.0))
        for _ in range(min(self.run, LEARNED)):
            self.share += (1.0 - self.share) * weight
        self.share -= self.share * weight
        if self.share < 0.001:
            self.share = 0.0
        self.run, self.likelihood = 0, 1.0

    def _shut(self, now: float, draw: float, kind: int, hint: float) -> None:
        """Hold all calls back until the next probe."""
        if self._trips + self._calls_good:
            self._roll(now, learn=False)  # these answers came while the trouble began
        self.state, self.probe_sent = SHUT, -1.0
        rate, doubled = max(self.rate(now), 1e-9), 2.0 ** min(self.failed_probes, 16)
        jitter = 0.75 + 0.5 * draw
        if kind == HINT:
            self.resume_at = now + min(hint, KEPT * 3.0**self._hint_level)
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
        arriving = max(self.rate(now), LEAST_PACE)
        self.state, self.since, self.before = RAMP, now, OPEN
        self.pace = arriving
        if self._shut_pace:
            self.pace = min(arriving, max(self._shut_pace, SLOWEST * arriving, LEAST_PACE))
        self._shut_pace = 0.0
        self.last_sent, self._raised_at, self._cut_at = now, now, now
        self.failed_probes = self._hint_level = 0

    def _cut(self, now: float, sent: float, pace: float, least: float) -> None:
        """Lower the pace, once in two round trips: the calls sent until the first cut shows are slow as well."""
        self._raised_at = now
        if sent >= self._cut_at:
            self._cut_at = now + (now - sent)
            self.pace = min(self.pace, max(pace, least, LEAST_PACE))

    def _good_rate(self, now: float) -> float:
        self._start(now)
        return (self._good + self._calls_good) / max(LEAST_SPAN, self._span + now - self._rolled_at)

    def _start(self, now: float) -> None:
        if self._rolled_at == -inf:
            self._rolled_at = now

    def _roll(self, now: float, *, learn: bool = True) -> None:
        """Close a window of the arrival rate, and one of round trips if it had enough answers."""
        self._start(now)
        passed, count = now - self._rolled_at, self._calls_good
        kept = exp(-passed / MEMORY)
        self._arrived = self._arrived * kept + count + self._waited
        self._good = self._good * kept + count
        self._span = self._span * kept + passed
        self._rolled_at = now
        self._calls_good = self._waited = 0
        if self._span == 0.0 and count:
            self.usual = self.peak = self._total  # the first answer ever
        self._trips += count
        if learn and self._trips >= 4:
            self._usual = [*self._usual[1 - WINDOWS :], (self._total / self._trips, self._peak)]
            self.usual = min(mean for mean, _ in self._usual)
            self.peak = min(peak for _, peak in self._usual)
        if not learn or self._trips >= 4:
            self._trips, self._total, self._peak = 0, 0.0, 0.0
