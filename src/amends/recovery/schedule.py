"""
When calls are sent to a service in trouble: after the hold of SHUT one probe, in RAMP calls at a pace. Pure.

A hold begins with a failure and ends with the probe at `resume_at`. If the probe fails as well, the next hold is longer. The
gaps depend on the kind of the failure and on how many calls the process sends: the more processes share a service, the
fewer calls each of them sends, and the longer its gaps are.

The pace starts slightly above the rate at which operations arrive. Calm answers raise it. Slow answers and refusals lower it,
not below what the service did lately: in a lasting overload the pace settles where the answers are calm.
"""

from __future__ import annotations

from math import exp, inf

from amends.recovery.evidence import HINT, KNOWN, SILENT, STALE, Traffic

__all__ = ["CAP_PLAIN", "DOUBTED", "KEPT", "LEAST_PACE", "PER_SUCCESS_SILENT", "Hold", "Pace"]

FIRST_SILENT, CAP_SILENT = 5.0, 15.0
"""Seconds to the first probe after silence (half of the cap, if that is more), and the longest gap. Shorter: a fleet's probes
keep the service busy; longer: later recovery."""
FIRST_PLAIN, CAP_PLAIN = 0.5, 30.0
"""The same after plain failures, which cost the service little. Shorter: more calls; longer: later recovery."""
LEAST_SHARE, PROBES = 0.15, 10.0
"""A gap is this share of the time since the hold began or, if that is more, PROBES by the number of operations. Lower: more calls in an
outage; higher: later recovery."""
PER_SUCCESS_SILENT = 0.1
"""Repeats of time-outs that a success earns where no Upstream holds back calls, at most one is saved. Such repeats are sent at this part of the
pace, and a busy process probes after silence with a quarter of it. More: fleets of small clients keep an overloaded service
busy with calls that time out; fewer: where answers get lost, fewer of the calls are repeated, and later."""
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

START = 1.15
"""The first pace as a multiple of the arrivals. 1.0: what waited is sent late; 1.3: fleets relapse at 1 s latency."""
SHUT_CUT = 0.5
"""The factor of the pace after an overload that began in RAMP. Lower: later return; higher: in a heavy one it repeats."""
SLOW, SLOW_ABOVE = 1.25, 0.05
"""An answer is slow above 1.25 × the usual trip, and the usual longest trip, plus 0.05 s. Higher: queues of the
service grow unseen; lower: noise slows down a working service."""
RISE = 1.05
"""The most by which a calm answer raises a pace above the arrivals. 1.1: fleets relapse at 1 s latency."""
DOUBLING, FAST_DOUBLING, SLOW_DOUBLING = 15.0, 1.0, 20.0
"""Such a pace doubles in 15 × the usual trip, within these seconds. Shorter: the pace is far too high when the first slow
answer arrives; longer: later return."""
RETURN = 8.0
"""Seconds in which calm answers raise a pace below the arrivals e-fold. Shorter: a lasting overload swings more;
longer: after an overload a fleet takes longer to return."""
CATCH = 1.25
"""The most by which one calm answer raises such a pace. Higher: clients with little traffic overload again at once; lower: later return."""
CUT, LONG_CUT, DEEP_CUT = 0.93, 0.85, 0.7
"""The factor of a slow answer, of one that took more than LONG seconds, and of one that took FAR times too long. Lower:
the pace swings, and falls below what the service can do; higher: a fleet leaves a heavy overload later."""
LONG, FAR = 1.0, 8.0
"""Slow answers after LONG seconds show a cut late, so each has to be deeper. Lower: the pace swings; higher: small
fleets with 1 s latency relapse."""
GOOD = 0.9
"""The least pace as a share of the successes. Lower: the pace swings; higher: a full queue of the service stays full."""
SLOWEST = 0.45
"""The least pace as a share of the arrivals. Lower: holds in heavier lasting overloads; higher: later return."""
LEAST_PACE = 0.05
"""The least pace in calls per second. Lower: a client with little traffic may wait minutes for its next call."""
BEHIND = 0.1
"""Seconds that sending may be behind its pace and catch up. More: bursts; less: timers that are late cost pace."""
REFUSED_CUT, REFUSED_PACE = 0.5, 1.25
"""The factor of a refusal, and the least pace after refusals as a multiple of the successes. Higher: more refused
calls, and a cold batch uses up its tries before the pace is right; lower: the pace swings, and a limit that was raised is
used later."""

BIGGEST, SIZE_WEIGHT = 8.0, 1 / 16
"""A call takes as many turns as its request is larger than others, at most so many, and the weight of the newest size. More: one big
call holds back the others for longer; fewer: big calls are refused until their tries are used up."""
RENEWED = 8.0
"""A limit was renewed, and the pace before it was used up is right again, if so long nothing succeeded that so many calls would have
before. Higher: a limit per minute is used up more slowly; lower: after each refusal of a busy bucket the pace is too high."""


class Hold:
    """The time without calls, and the probe at its end."""

    __slots__ = (
        "_aside", "_began", "_failed_probes", "_first", "_hint_level", "_silent_gap", "_traffic", "longest_failure", "probe_sent", "resume_at", "until",
    )  # fmt: skip

    def __init__(self, traffic: Traffic, *, aside: bool = False) -> None:
        self._traffic, self._aside = traffic, aside
        self.resume_at, self.until = 0.0, 0.0
        """No call before this; and the time that the server named, if it did."""
        self.probe_sent = -1.0
        """When the probe was sent; -1: not."""
        self._failed_probes = self._hint_level = 0
        self.longest_failure = self._first = 0.0
        self._began = -1.0
        self._silent_gap = inf  # the gap before the probe, after silence

    @property
    def doubted(self) -> bool:
        """Whether calls are held by a hint that no probe has confirmed, from a service that answered before."""
        return self._hint_level == 1 and self._traffic.answered

    def is_probe(self, sent: float) -> bool:
        """Return whether the call sent at `sent` is the probe, or was sent after it."""
        return sent >= self.probe_sent >= 0.0

    def take_probe(self, now: float, *, fresh: bool) -> float:
        """Return 0 if the probe may be sent, else when. A repeat of a call that got a hint waits as long as that asked."""
        at = self.resume_at if fresh else max(self.resume_at, self.until)
        if now < at:
            return at
        self.probe_sent = now
        return 0.0

    def presumed_good_at(self, *, wary: bool) -> float:
        """Return when the probe will have been out for longer than a failure takes."""
        least = PRESUMED_WARY if wary else PRESUMED_AFTER
        return self.probe_sent + max(least, PRESUMED * self.longest_failure)

    @property
    def another_at(self) -> float:
        """When another probe may be sent while one is out: after silence, when as much time has passed as before the last one."""
        return self.probe_sent + max(FIRST_SILENT, self._silent_gap)

    def note_failure(self, seconds: float, *, first: bool) -> None:
        """Note how long a failure took; `first`: it is the first of its trouble."""
        self.longest_failure = seconds if first else max(self.longest_failure, seconds)

    def note_hint(self, now: float, hint: float, *, confirmed: bool, held: bool) -> None:
        """Note the time that a hint names. `confirmed`: the probe got it; `held`: a call that was sent before the hold did."""
        self.until = now + hint if confirmed else max(self.until, now + hint)
        if held:
            self.resume_at = max(self.resume_at, now + min(hint, KEPT))

    def begin(
        self,
        now: float,
        draw: float,
        kind: int,
        hint: float,
        *,
        failed_probe: bool = False,
        inflight: int = 0,
        waiting: int = 0,
    ) -> None:
        """
        Begin a hold, or a longer one if its probe failed.

        `inflight`: calls that have not ended yet; `waiting`: those that wait for their turn.
        """
        self._traffic.discard_window(now)
        if not failed_probe or self._began < 0.0:
            self._began, self._first = now, 0.0
        self._failed_probes = self._failed_probes + 1 if failed_probe else 0
        self.probe_sent, self._silent_gap = -1.0, inf
        if kind == HINT:
            level = self._hint_level if failed_probe else 0
            kept = hint <= KEPT or not self._traffic.answered
            first, factor = (KEPT, KEPT_FACTOR) if kept else (DOUBTED, DOUBTED_FACTOR)
            gap = min(hint, first * factor**level)
            if failed_probe:  # the time that was named was wrong
                gap = max(gap, min(self._share_of_time(now, waiting) * (0.75 + 0.5 * draw), CAP_PLAIN))
            self.resume_at = now + gap
            self._hint_level = min(level + 1, 16)
            return
        self._hint_level = self._hint_level if failed_probe else 0
        self.until = 0.0
        rate = max(self._traffic.rate(now), 1e-9)
        if kind == SILENT and self._aside:
            cap = min(STALE, max(LEAST_CAP, 1.0 / (PER_SUCCESS_SILENT * max(self._traffic.burst(now), 1e-9))))
            first = max(FIRST_SILENT, cap / 2.0)
        elif kind == SILENT:
            cap = min(CAP_SILENT, max(LEAST_CAP, 4.0 / rate))
            first = max(FIRST_SILENT, cap / 2.0)
        if kind == SILENT:
            calls = max(self._traffic.burst(now) + inflight / self._traffic.seconds(now), 1e-9)
            first = min(first, max(1.0, 4.0 / (PER_SUCCESS_SILENT * calls)))
        else:
            cap = min(CAP_PLAIN, max(LEAST_CAP, 1.0 / rate))
            first = min(LEAST_CAP, max(FIRST_PLAIN, 0.5 / max(self._traffic.burst(now), 1e-9)))
            self._first = first = self._first or first
        if kind == SILENT:
            gap = min(cap, first * (1.5 if cap == LEAST_CAP else 2.0) ** min(self._failed_probes, 16))
            self._silent_gap = gap
        else:
            gap = min(cap, first + self._share_of_time(now, waiting))
        self.resume_at = now + gap * (0.75 + 0.5 * draw)

    def _share_of_time(self, now: float, waiting: int) -> float:
        """Return a share of the time since the hold began: a smaller one the more operations can make a probe."""
        operations = max(waiting, self._traffic.arrivals, 1.0)
        return min(1.0, max(LEAST_SHARE, PROBES / operations)) * (now - self._began)

    def postpone(self, until: float) -> None:
        """Take back the probe that was just admitted; ask again at `until`."""
        self.probe_sent, self.resume_at = -1.0, until

    def end(self) -> None:
        """Forget the hold: the next one begins with the first gap."""
        self.until, self.probe_sent, self._began = 0.0, -1.0, -1.0
        self._failed_probes = self._hint_level = 0


class Pace:
    """Calls per second, and when the last one was due."""

    __slots__ = (
        "_aside",
        "_cut_at",
        "_limit",
        "_raised_at",
        "_resumed",
        "_served",
        "_size",
        "_traffic",
        "_undisturbed",
        "last_sent",
        "limited_until",
        "per_second",
    )

    def __init__(self, traffic: Traffic, *, aside: bool = False) -> None:
        self._traffic, self._aside = traffic, aside
        self.per_second, self.last_sent = 1.0, -inf
        self._size = 0.0  # of a request on average
        self._limit, self.limited_until = inf, -inf
        """The highest pace that the service allows, and until when."""
        self._cut_at = self._raised_at = 0.0
        self._resumed = 0.0  # the pace to continue with after an outage that began in RAMP; 0: it did not
        # The pace before the present run of refusals, 0 if there is none, and how many calls succeeded per second then.
        self._undisturbed, self._served = 0.0, 0.0

    @property
    def next_send(self) -> float:
        """When the next call is due."""
        return self.last_sent + 1.0 / self.per_second

    def take_turn(self, now: float, refused: int = 0, size: float = 0.0) -> float:
        """
        Return 0 if a call may be sent now, else when the next one is due.

        `refused`: how often this call was refused. A big call needs a rest before it, in which a limit is refilled; so does one
        that is bigger than others, as far as the `size` of its request is known.
        """
        turns = 1.0
        if size and self._size:
            turns = min(BIGGEST, max(1.0 / BIGGEST, size / self._size))
        if refused > 1:
            turns += 2.0 ** (refused - 1) - 1.0
        at = self.last_sent + turns / self.per_second
        if now < at:
            return at
        if size:
            self._size += (size - self._size) * (SIZE_WEIGHT if self._size else 1.0)
        self.last_sent = max(at, now - BEHIND)
        return 0.0

    def keep(self, *, strained: bool) -> None:
        """Keep the present pace for the end of an outage, or half of it if the service had too much work."""
        self._resumed = SHUT_CUT * self.per_second if strained else self.per_second

    def drop(self) -> None:
        """Drop the pace that was kept."""
        self._resumed = 0.0

    def start(self, now: float, *, strained: bool, limited: bool = False) -> None:
        """
        Set the first pace after an outage.

        `strained`: the service had too much work; `limited`: it refused calls, and did not say until when.
        """
        traffic = self._traffic
        demand = traffic.demand(now)
        if strained:  # what arrives has to be served; workers that waited do not add to it
            demand = traffic.rate(now) if traffic.good_before else max(traffic.burst(now), traffic.batch)
            if self._aside and traffic.good_before:
                demand *= PER_SUCCESS_SILENT
        demand = max(demand, LEAST_PACE)
        self.per_second, self._undisturbed = (
            (START if strained or traffic.good_before else REFUSED_PACE) * demand,
            0.0,
        )
        if limited and traffic.good_before:
            self.per_second = min(self.per_second, max(REFUSED_PACE * traffic.good_before, LEAST_PACE))
        if self._resumed:
            self.per_second = max(self._resumed, SLOWEST * traffic.rate(now), LEAST_PACE)
            if strained:
                self.per_second = min(self.per_second, demand)
        self._resumed = 0.0
        self.last_sent, self._raised_at, self._cut_at = now, now, now

    def start_at_successes(self, now: float, *, together: bool = True) -> None:
        """Begin to pace the calls slightly above what succeeds. If only single callers are refused, only the room is limited."""
        traffic = self._traffic
        good = traffic.good_rate_in_trouble(now) if traffic.good_since else traffic.good_rate(now)
        served = min(traffic.demand(now), REFUSED_PACE * good)
        self.per_second = max(served, LEAST_PACE) if together else inf
        self._raised_at = now

    def follow(
        self, now: float, sent: float, *, run: int = 0, lasted: float = inf, limited: bool = False
    ) -> bool:
        """
        Raise or lower the pace after a good answer. Return whether the answer was calm.

        `run`: how many calls were refused before it, in a row, and `lasted`: for how long; `limited`: the service refuses what is too much for it, so a
        slow answer shows no queue.
        """
        traffic, trip = self._traffic, now - sent
        traffic.note_first_trip(trip)
        if self._undisturbed and run >= KNOWN:
            if traffic.known_before or lasted * self._served > RENEWED:  # a limit was used up, and is renewed
                self.per_second = max(self.per_second, self._undisturbed)
            self._undisturbed = 0.0
        slow = max(SLOW * traffic.usual, traffic.peak) + SLOW_ABOVE
        if trip > slow and not limited:
            factor = (CUT if trip < LONG else LONG_CUT) if trip < FAR * slow else DEEP_CUT
            self._cut(now, sent, factor, max(SLOWEST * traffic.rate(now), GOOD * traffic.good_rate(now)))
            return False
        arriving = max(traffic.demand(now), LEAST_PACE)
        passed, self._raised_at = now - self._raised_at, now
        if self.per_second < arriving:
            rise = min(2.0 if limited else CATCH, exp(min(passed / RETURN, 9.0)))
            self.per_second = min(arriving, self.per_second * rise)
        else:
            doubling = min(SLOW_DOUBLING, max(FAST_DOUBLING, DOUBLING * traffic.usual))
            self.per_second *= min(RISE, 2.0 ** min(passed / doubling, 1.0))
        if now < self.limited_until:
            self.per_second = min(self.per_second, self._limit)
        return True

    def cut_refused(self, now: float, sent: float, *, run: int = 0) -> None:
        """Lower the pace after a refusal; `run`: how many calls were refused in a row, with this one."""
        if run <= 1:
            self._undisturbed, self._served = self.per_second, self._traffic.good_rate_in_trouble(now)
        self._cut(now, sent, REFUSED_CUT, REFUSED_PACE * self._traffic.good_rate_in_trouble(now))

    def limit(self, now: float, remaining: int, seconds: float, *, start: bool) -> bool:
        """
        Obey that the service allows so many calls in the next `seconds`. Return whether more would be sent.

        `start`: calls were not paced yet.
        """
        allowed = max(max(remaining, 1) / max(seconds, 1e-3), LEAST_PACE)
        arrivals = self._traffic.arrivals + 1
        if remaining > arrivals or allowed >= arrivals / self._traffic.seconds(now):
            self._limit, self.limited_until = inf, -inf
            return False
        self._limit, self.limited_until = allowed, now + seconds
        if start:
            self.per_second, self._raised_at, self.last_sent = allowed, now, now
        self.per_second = min(self.per_second, allowed)
        return True

    def _cut(self, now: float, sent: float, factor: float, least: float) -> None:
        """Lower the pace, once in two round trips: the calls sent until the first cut shows are slow as well."""
        self._raised_at = now
        if sent >= self._cut_at:
            self._cut_at = now + (now - sent)
            self.per_second = min(self.per_second, max(factor * self.per_second, least, LEAST_PACE))
