"""
What the ended calls show: the rates and the usual round trip, and whether failures are chance or an outage. Pure.

Each failure since the last success multiplies `likelihood` by the share of calls that fail here, but at least by the floor
of its kind. The failures are not chance if such a run would happen less than once in CALM seconds at the present rate. A
run that ends with a success is learned as chance; one that ends in an outage is not.
"""

from __future__ import annotations

from math import exp, inf, lgamma, log, sqrt

__all__ = [
    "CHANCE", "HINT", "OUTAGE", "PLAIN", "REFUSED", "SILENT", "TOO_MANY", "UNUSUAL_HINT", "Evidence", "Traffic",
]  # fmt: skip

PLAIN, REFUSED, HINT, SILENT = range(4)
"""The kinds of failures: a quick answer, refused for too many calls, refused with a named time, no answer in time."""
CHANCE, OUTAGE, UNUSUAL_HINT, TOO_MANY = range(4)
"""What the failures show: nothing, that the service is down, a hint where hints are rare, that too many calls are made."""

MEMORY = 30.0
"""Seconds over which the arrival rate is averaged. Longer: steadier; shorter: follows a changing load."""
IDLE = 90.0
"""Seconds without any call after which the rates are forgotten. Longer: a batch after a pause is paced like the calls
before it; shorter: a client with little traffic is taken for a busy one."""
LEAST_SPAN = 1.0
"""The first calls count as made within a second. Less: with little traffic one failure is an outage; more: it takes many."""
WINDOW, WINDOWS, LEAST_TRIPS = 10.0, 6, 4
"""The usual round trip is the least mean of six windows, each of at least ten seconds and four answers. More: a rising
queue is not taken for usual; fewer: a service that became slower for good is accepted sooner."""

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
LEAST_RATE = 0.1
"""Evidence counts as for at least a call in ten seconds. Less: with little traffic one failure is an outage."""
COLD_RATE = 1.0
"""The same before the first success. Lower: a few failed calls at the start are an outage."""
EARLY = 1.25
"""After a return, failures that arrive within 1.25 round trips are no verdict: the good answers may be slower. Longer: more
calls are sent to a service that is down again; shorter: quick failures of a few calls hide slow successes."""
USUAL_HINT = 0.03
"""A hint more likely than this is usual here, and no reason to be wary. Higher: more pauses where a few are refused."""
REFUSED_SHARE, ENOUGH = 0.15, 32
"""Too many calls are made if more than this share of at least so many fail, and one is refused. Lower: one refused tenant
slows down the others, and a client that made a handful of calls is paced for minutes; higher: more refused calls."""
NO_CHANCE = 0.01
"""Fewer arrivals than before are no chance below this probability. Higher: more clients of a fleet return too fast after an
overload; lower: a few workers that waited return slowly."""
AGAIN = 1 / 8
"""The weight of the newest repeat in the share of repeats that are refused again. Larger: learned from fewer repeats, and
a busy limit is sometimes taken for refused callers."""
ALONE = 0.75
"""If more than this share of the repeats is refused again, and first calls less often than this part of it, the refusals concern
single callers, such as one tenant, and are no evidence. Higher: one refused tenant slows down the others for longer; lower: a
heavy overload, or a batch over a limit, is not paced."""
KNOWN = 4
"""Repeats after which that is known. More: a busy limit is paced later; fewer: one refused tenant slows down the others."""


class Traffic:
    """Rates and round trips. Only answers in OPEN count for the round trips: elsewhere queues make them longer."""

    __slots__ = (
        "_arrived", "_calls_good", "_failed", "_good", "_peak", "_rolled_at", "_span", "_total", "_trips", "_usual", "_waited", "arrivals_before", "arrived_since",
        "batch", "before", "began",
        "calls", "good_before", "good_since", "last_answered", "peak", "seconds_before", "since", "usual",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = 0
        """Calls that have ended."""
        self.good_before = 0.0
        """How many calls per second succeeded when the trouble began."""
        self.arrivals_before, self.seconds_before, self.arrived_since = 0.0, 1.0, 0
        """Operations that arrived lately when the trouble began, in how many seconds, and how many arrived since then."""
        self.began, self.good_since = -inf, 0
        """When the trouble began, and how many calls succeeded that were sent since then."""
        self.before, self.since = 0.0, 0.0
        """The demand when the trouble began, and since when it is over: while calls are held back, workers that wait make no
        new ones."""
        self.batch = 0.0
        """The demand of a batch that failed together; 0 if there was none."""
        self.last_answered = -inf
        """The latest send time of all calls that were answered by a working service."""
        self.usual = self.peak = 0.0
        """The usual mean and longest round trip; 0 before they are known."""
        self._usual: tuple[tuple[float, float], ...] = ()
        # The present window: good answers, the sum and the longest of their trips, and operations that had to wait.
        self._calls_good, self._total, self._peak, self._waited = 0, 0.0, 0.0, 0
        # The windows before it, with weights that decay: when the last one ended, their length, arrivals, good answers.
        self._rolled_at, self._span, self._arrived, self._good, self._trips = -inf, 0.0, 0.0, 0.0, 0
        self._failed = 0.0

    def succeeded_open(self, now: float, sent: float) -> None:
        """Count a good answer in OPEN. Every successful call gets here: the code avoids function calls."""
        trip = now - sent
        self.calls += 1
        self._calls_good += 1
        self._total += trip
        if trip > self._peak:  # noqa: PLR1730 - `max` would be a function call
            self._peak = trip
        if sent > self.last_answered:  # noqa: PLR1730
            self.last_answered = sent
        if now > self._rolled_at + WINDOW:
            self.roll(now)

    def succeeded(self, now: float, sent: float) -> None:
        """Count a good answer outside of OPEN."""
        self.calls += 1
        self.last_answered = max(self.last_answered, sent)
        self._good += 1
        if now > self._rolled_at + WINDOW:
            self.roll(now)

    def arrived(self) -> None:
        """Count an operation that arrived while the state was not OPEN."""
        self._waited += 1
        self.arrived_since += 1

    def failed(self, now: float) -> None:
        """Count an operation that arrived in OPEN and whose first call did not succeed there."""
        if now > self._rolled_at + WINDOW:
            self.roll(now)
        self._failed += 1
        if self.since == inf:
            self.before = self.demand(now)
            if self.arrivals + self._failed >= ENOUGH:
                self.batch = max(self.batch, self.burst(now))

    def know(self, now: float, rate: float) -> None:
        """Take over how many operations arrived and succeeded per second lately, if that is more than is known here."""
        if rate > self.rate(now):
            self._arrived = self._good = rate * MEMORY
            self._span, self._rolled_at = MEMORY, now

    @property
    def answered(self) -> bool:
        """Whether the service has answered a call."""
        return self.last_answered >= 0.0

    @property
    def arrivals(self) -> float:
        """How many operations arrived lately."""
        return self._arrived + self._calls_good + self._waited

    def arrives_less(self, now: float) -> bool:
        """Return whether less than half as much arrives as before the trouble, and that is no chance: workers wait."""
        before, since, passed = self.arrivals_before, self.arrived_since, now - self.began
        if since >= 0.5 * before * passed / self.seconds_before:
            return False
        # If nothing had changed, each of them would have arrived before with this probability.
        share = self.seconds_before / (self.seconds_before + passed)
        ways = lgamma(before + since + 1.0) - lgamma(before + 1.0) - lgamma(since + 1.0)
        return ways + before * log(share) < log(NO_CHANCE)

    def rate(self, now: float) -> float:
        """Return how many operations arrive per second."""
        return self.arrivals / self.seconds(now)

    def demand(self, now: float) -> float:
        """Return how many operations would arrive per second if none had to wait."""
        before = self.before * exp(min(0.0, self.since - now) / MEMORY)
        return max((self.arrivals + self._failed) / self.seconds(now), before)

    def burst(self, now: float) -> float:
        """Return the demand without its first operation: one call shows no rate."""
        return max(self.rate(now), (self.arrivals + self._failed - 1.0) / self.seconds(now))

    def good_rate(self, now: float) -> float:
        """Return how many calls succeed per second."""
        return (self._good + self._calls_good) / self.seconds(now)

    @property
    def known_before(self) -> bool:
        """Whether calls were made for longer than a window before the trouble, so that the rates are not those of one burst."""
        return self.seconds_before > WINDOW

    def good_rate_in_trouble(self, now: float) -> float:
        """Return how many calls succeed per second; without a burst that succeeded just before the trouble."""
        good = self.good_rate(now)
        if self.known_before:
            return good
        return min(good, self.good_since / max(LEAST_SPAN, now - self.began))

    def seconds(self, now: float) -> float:
        """Return the length of the time that the rates are averaged over."""
        self._start(now)
        return max(LEAST_SPAN, self._span + now - self._rolled_at)

    def note_first_trip(self, trip: float) -> None:
        """Take a round trip for the usual one, if none is known from OPEN and it is the shortest so far."""
        if not self._usual and (trip < self.usual or not self.usual):
            self.usual = self.peak = trip

    def discard_window(self, now: float) -> None:
        """Close a window whose answers came while trouble began: they are not usual."""
        if self._trips + self._calls_good:
            self.roll(now, learn=False)

    def roll(self, now: float, *, learn: bool = True) -> None:
        """Close a window of the arrival rate, and one of round trips if it had enough answers."""
        self._start(now)
        passed, count = now - self._rolled_at, self._calls_good
        if passed > IDLE and not self._waited:
            self._arrived = self._good = self._span = self._failed = passed = 0.0
        kept = exp(-passed / MEMORY)
        self._arrived = self._arrived * kept + count + self._waited
        self._good = self._good * kept + count
        self._failed *= kept
        self._span = self._span * kept + passed
        self._rolled_at = now
        self._calls_good = self._waited = 0
        if self._span == 0.0 and count:
            self.usual = self.peak = self._total  # the first answer ever
        self._trips += count
        if learn and self._trips >= LEAST_TRIPS:
            self._usual = (*self._usual[1 - WINDOWS :], (self._total / self._trips, self._peak))
            self.usual = min(mean for mean, _ in self._usual)
            self.peak = min(peak for _, peak in self._usual)
        if not learn or self._trips >= LEAST_TRIPS:
            self._trips, self._total, self._peak = 0, 0.0, 0.0

    def _start(self, now: float) -> None:
        if self._rolled_at == -inf:
            self._rolled_at = now


class Evidence:
    """The failures since the last success, and what is learned from them."""

    __slots__ = (
        "_again",
        "_beside",
        "_failed_at",
        "_first",
        "_likelihood",
        "_repeats",
        "_several",
        "_traffic",
        "_tries",
        "_unbroken_since",
        "_verdict_at",
        "run",
        "run_since",
        "share",
        "strained",
        "unbroken",
    )  # fmt: skip

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self.share = 0.0
        """The share of calls that fail by chance."""
        self.run, self.run_since = 0, inf
        """The failures since the last success: how many, and when the first of these calls was sent."""
        self.strained = False
        """Whether a slow or missing answer shows that the service has too much work."""
        self._likelihood, self._failed_at, self._verdict_at = 1.0, -inf, 0.0
        self._again, self._repeats = 0.0, 0
        self._unbroken_since = 0.0
        self.unbroken = 0
        """Failures in a row, those of single callers too."""
        self._first = 0.0  # the share of first calls that are refused
        # Of the failures in a row: the most calls that an operation had made before, and whether they are of several operations.
        self._tries, self._several = -1, False
        self._beside = 0  # calls in flight beside the one that failed last

    @property
    def failing(self) -> float:
        """The share of the calls that failed lately, including the present run of failures."""
        return 1.0 - (1.0 - self.share) * (1.0 - NEWEST) ** min(self.run, LEARNED)

    @property
    def refused_alone(self) -> bool:
        """Whether refusals concern single callers: operations that were refused are refused again, and others succeed."""
        return self._again > ALONE and not self._all_refused

    @property
    def _all_refused(self) -> bool:
        """Whether no call succeeded while several were refused, and none is in flight or for longer than answers take."""
        traffic = self._traffic
        if self.unbroken >= KNOWN and self._several and not self._beside:
            return True
        longest = 2.0 * max(traffic.usual, traffic.peak)
        return (
            self.unbroken >= KNOWN and traffic.answered and self._failed_at > self._unbroken_since + longest
        )

    @property
    def together(self) -> bool:
        """Whether refusals concern all callers: most repeats are not refused again, or first calls are refused nearly as often."""
        if self._all_refused:
            return True
        single = self._again > ALONE if self._repeats >= KNOWN else self._again >= 0.5
        return not single or self._first > ALONE * self._again

    @property
    def too_many(self) -> bool:
        """Whether many calls fail."""
        return self.share > REFUSED_SHARE and self._traffic.calls >= ENOUGH

    def count_first(self) -> None:
        """Count a first call that succeeded, while others fail."""
        self._first -= AGAIN * self._first

    def count_repeat(self, *, refused: bool) -> None:
        """Count the outcome of a repeat: refused again, or not."""
        self._repeats += 1
        self._again += max(AGAIN, 1.0 / (self._repeats + 1)) * (refused - self._again)

    def judge(self, now: float, sent: float, kind: int, *, repeat: int, probe: bool, beside: int = 1) -> int:
        """
        Count a failure and return what the present run of failures shows.

        `repeat`: how many calls its operation made before; `probe`: no other calls are sent; `beside`: calls in flight.
        """
        refused = kind in {HINT, REFUSED}
        self.unbroken += 1
        if self.unbroken == 1:
            self._unbroken_since = now
            self._tries, self._several = -1, False
        # The calls of one operation have rising numbers.
        self._several = self._several or repeat <= self._tries
        self._tries, self._beside = max(self._tries, repeat), beside
        if refused and not repeat and not probe:
            self._first += AGAIN * (1.0 - self._first)
        if repeat and refused and not probe and self.run < KNOWN:
            self.count_repeat(refused=True)  # in a longer run of failures, all callers are refused
        unlikely = self._count_failure(now, sent, kind, repeat=repeat > 0 and refused)
        self.strained = self.strained or kind == SILENT
        if unlikely and (probe or kind == SILENT or now >= self._verdict_at):
            return OUTAGE
        if kind == HINT and not self._traffic.answered:
            return OUTAGE
        if kind == HINT and self._likelihood < USUAL_HINT:
            return UNUSUAL_HINT
        return TOO_MANY if refused and self.too_many else CHANCE

    def _count_failure(self, now: float, sent: float, kind: int, *, repeat: bool) -> bool:
        """Count a failure. Return whether the run of failures is no chance. `repeat`: the operation was refused before."""
        answered = self._traffic.answered
        if now - self._failed_at > STALE:
            self.forget_run()
        self._failed_at = now
        if not self.run:
            self.run_since = sent
        share = self.share
        if repeat and self.refused_alone:
            share = max(share, self._again)
        else:
            self.run += 1
        if kind == SILENT:
            if sent <= self._traffic.last_answered:
                return False  # a call sent later was answered: a message was lost, and the service works
            if not answered:
                kind = PLAIN
        # The share is an estimate: its likely error is added, so that a low estimate is no false alarm.
        self._likelihood *= min(0.95, max(share + sqrt(share * NEWEST), FLOORS[kind]))
        rate = max(self._traffic.rate(now), LEAST_RATE if answered else COLD_RATE)
        return self._likelihood * CALM * rate < 1.0

    def learn_chance(self) -> None:
        """Learn from a success: the failures before it were chance."""
        weight = max(NEWEST, 1.0 / (self._traffic.calls + 1.0))
        for _ in range(min(self.run, LEARNED)):
            self.share += (1.0 - self.share) * weight
        self.share -= self.share * weight
        if self.share < 0.001:
            self.share = 0.0
        self.forget_run()

    def forget_run(self) -> None:
        """Forget the present run of failures."""
        self.run, self.unbroken, self._likelihood = 0, 0, 1.0

    def wait_for_answers(self, now: float, trip: float) -> None:
        """Give no verdict before the calls that are sent from now on could be answered; an answer took `trip`."""
        self._verdict_at = now + EARLY * trip
