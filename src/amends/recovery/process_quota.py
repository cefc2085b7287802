"""
The quota of repeats of this process: for operations without an Upstream.

It is smaller than that of an Upstream, because nothing else bounds these repeats: an Upstream stops sending when a service
is down, a bare `recover` does not know that other operations fail as well. What it does know decides:

| the failed call | its repeat |
|---|---|
| was answered, or lost at once, or other calls succeeded since it was sent | is taken from savings: 1.5 per success, at most 8 |
| was not answered, and nothing shows that the service works | needs ten successes before it, and the savings are gone |
| the same, before the first success of the process | once; as often as others if the call took 5 s or more |

A time-out may mean that the service has too much work: in a fleet of clients with little traffic each saved repeat is one
more call to it. Each function that is called has savings of its own, so that failures of one service take no repeats from
another.

Repeats for which nothing is left wait in the queue of an Upstream that only they use, also one for each function (`repeats_of`): it
sends one of them from time to time, and all when that one succeeds. First calls never wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from threading import Lock

from amends.recovery.clock import CLOCK
from amends.recovery.schedule import PER_SUCCESS_SILENT
from amends.recovery.upstream import Upstream, for_repeats

__all__ = ["ProcessQuota", "callee_of", "process_quota"]

PER_SUCCESS = 1.5
"""As for an Upstream: a service that fails half of its calls gets the repeats it needs."""
PER_SECOND = 0.005
"""Repeats that a second earns without any success. More: a fleet of small clients repeats more than an overloaded
service can do; fewer: a single operation in an outage has fewer tries."""
SAVED = 8.0
"""The most repeats that are saved up. More: more calls when an outage begins; fewer: short outages fail more."""
SAVED_SECONDS = 15.0
"""The same in seconds of the successes before, if that is more. More: a busy program makes more calls when an outage begins;
fewer: it fails more in short outages than a loop of five tries."""
LONG = 0.5
"""Seconds without an answer that count as a time-out. Shorter: lost connections count; longer: as for PER_SUCCESS_SILENT."""
COLD_LONG = 5.0
"""Time-outs of this length are ordinary failures before the first success. Longer: a program that makes one call has fewer
tries; shorter: a fleet that starts during an overload repeats more."""
ANSWERED = 4
"""Successes since the call was sent which show that the service works. Fewer: successes of calls that were sent before an
overload count; more: processes with little traffic repeat fewer time-outs."""
CALLEES = 256
"""Functions with savings of their own. More: memory; fewer: a function that is called again starts with full savings."""

# Slightly less than 1, so that rounding in the computed wait cannot lead to a loop of zero waits.
_ENOUGH = 0.999


class _Savings:
    """The repeats that are left for one function: of time-outs, and of other failures."""

    __slots__ = ("at", "began", "cap", "counted", "other", "rate", "repeats", "seen", "silent")

    def __init__(self, now: float, started: float) -> None:
        self.other, self.silent = SAVED, 1.0
        self.seen, self.at = 0, now
        self.cap, self.rate, self.began, self.counted = SAVED, 0.0, started, 0
        self.repeats = for_repeats()
        """What is known from the repeats."""

    def earn(self, now: float, successes: int) -> None:
        """Add what the successes and the time since the last failure earned."""
        new, passed = successes - self.seen, max(0.0, now - self.at)
        if new and not self.seen:
            self.silent = 0.0  # the first one was for a process without any success
        self.seen, self.at = successes, now
        if now - self.began >= 1.0:
            fading = 0.5 ** ((now - self.began) / 30.0)
            self.rate = max((successes - self.counted) / (now - self.began), self.rate * fading)
            self.cap = max(SAVED, SAVED_SECONDS * self.rate)
            self.began, self.counted = now, successes
        self.silent = min(1.0, self.silent + PER_SUCCESS_SILENT * new)
        self.other = min(self.cap, self.other + PER_SUCCESS * new + PER_SECOND * passed)


class ProcessQuota:
    """The quota, or none if it is turned off. A successful call only increments `successes`."""

    __slots__ = ("_callees", "_lock", "_on", "_started", "successes")

    def __init__(self) -> None:
        self._lock = Lock()
        self.successes = 0
        """Successful operations without an Upstream. Two threads may lose one of them, which costs one repeat."""
        self.turn(on=True)

    def turn(self, *, on: bool) -> None:
        """Turn the quota on, with full savings, or off."""
        with self._lock:
            self._on, self.successes, self._started = on, 0, CLOCK.now()
            self._callees: OrderedDict[Hashable, _Savings] = OrderedDict()

    def take(self, now: float, *, callee: Hashable = None, silent: float = 0.0, before: int = 0) -> float:
        """
        Take one repeat and return 0, or return the time when one will be available at the latest.

        `callee`: whose savings; `silent`: seconds that the failed call was not answered, 0 if it was; `before`: the
        successes until it was sent.
        """
        if not self._on:
            return 0.0
        with self._lock:
            savings = self._savings_of(callee, now)
            savings.earn(now, self.successes)
            doubtful = silent > LONG and self.successes - before < ANSWERED
            if doubtful and (self.successes or silent < COLD_LONG):
                left, savings.other = savings.silent, 0.0
                if left >= _ENOUGH:
                    savings.silent = 0.0
            else:
                left = savings.other
                if left >= _ENOUGH:
                    savings.other = max(0.0, left - 1.0)
            return 0.0 if left >= _ENOUGH else now + (1.0 - left) / PER_SECOND

    def repeats_of(self, callee: Hashable, now: float) -> Upstream | None:
        """Return the Upstream of a function's repeats, for an operation that needs one; None if the quota is turned off."""
        with self._lock:
            if not self._on:
                return None
            savings = self._savings_of(callee, now)
            savings.earn(now, self.successes)
            savings.repeats.note_demand(now, savings.rate)
            return savings.repeats

    def _savings_of(self, callee: Hashable, now: float) -> _Savings:
        savings = self._callees.pop(callee, None) or _Savings(now, self._started)
        self._callees[callee] = savings
        if len(self._callees) > CALLEES:
            self._callees.popitem(last=False)
        return savings


def callee_of(call: Callable[..., object]) -> Hashable:
    """Return what identifies the code that a call runs. Two lambdas made by the same line are the same."""
    while isinstance(call, partial):
        call = call.func
    return getattr(call, "__code__", None) or getattr(getattr(call, "__func__", None), "__code__", type(call))


process_quota = ProcessQuota()
"""The quota of this process."""
