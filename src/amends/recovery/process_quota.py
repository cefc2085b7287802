"""
The quota of repeats of this process: for operations without an Upstream.

It is smaller than that of an Upstream, because nothing else bounds these repeats: an Upstream stops sending when a service
is down, a bare `recover` does not know that other operations fail as well. A repeat after a call that was not answered
costs more: the service may have too much work, and each repeat adds to it.

Each function that is called has savings of its own, so that failures of one service take no repeats from another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from threading import Lock
from typing import Any

from amends.recovery.quota import Quota

__all__ = ["ProcessQuota", "callee_of", "process_quota"]

PER_SUCCESS = 1.5
"""As for an Upstream: a service that fails half of its calls gets the repeats it needs."""
PER_SECOND = 0.005
"""Repeats that a second earns without any success. More: a fleet of small clients repeats more than an overloaded
service can do; fewer: a single operation in an outage has fewer tries."""
SAVED = 8.0
"""The most repeats that are saved up. More: more calls when an outage begins; fewer: short outages fail more."""
PER_SILENT_SECOND, MOST = 3.5, 8.0
"""What a repeat costs more for each second without an answer, and the most it costs. Less: fleets of small clients keep an
overloaded service busy with calls that time out; more: fewer time-outs are repeated."""
MOST_COLD = 2.0
"""The most it costs before the first success of the process. More: a program that makes one call has fewer tries."""
ANSWERED = 2
"""Successes during the call which show that the service works and a message was lost: the repeat costs 1. Fewer: successes
that were sent before an overload count; more: processes with little traffic repeat fewer time-outs."""
CALLEES = 256
"""Functions with savings of their own. More: memory; fewer: a function that is called again starts with full savings."""


class ProcessQuota:
    """The quota, or none if it is turned off. A successful call only increments `successes`."""

    __slots__ = ("_callees", "_lock", "_on", "successes")

    def __init__(self) -> None:
        self._lock = Lock()
        self.successes = 0
        """Successful operations without an Upstream. Two threads may lose one of them, which costs one repeat."""
        self.turn(on=True)

    def turn(self, *, on: bool) -> None:
        """Turn the quota on, with full savings, or off."""
        with self._lock:
            self._on, self.successes = on, 0
            self._callees: OrderedDict[Hashable, tuple[Quota, int]] = OrderedDict()

    def take(self, now: float, *, callee: Hashable = None, silent: float = 0.0, before: int = 0) -> float:
        """
        Take one repeat and return 0, or return the time when one will be available at the latest.

        `callee`: whose savings; `silent`: seconds that the failed call was not answered, 0 if it was; `before`: the
        successes until it was sent.
        """
        if not self._on:
            return 0.0
        with self._lock:
            cost = 1.0
            if silent and self.successes - before < ANSWERED:
                cost = min(MOST if self.successes else MOST_COLD, 1.0 + PER_SILENT_SECOND * silent)
            quota, seen = self._callees.pop(callee, (Quota(PER_SUCCESS, PER_SECOND, SAVED), 0))
            quota.earned = self.successes - seen
            self._callees[callee] = quota, self.successes
            if len(self._callees) > CALLEES:
                self._callees.popitem(last=False)
            return quota.take(now, cost)


def callee_of(call: Callable[..., Any]) -> Hashable:
    """Return what identifies the code that a call runs. Two lambdas made by the same line are the same."""
    while isinstance(call, partial):
        call = call.func
    return getattr(call, "__code__", None) or getattr(getattr(call, "__func__", None), "__code__", type(call))


process_quota = ProcessQuota()
"""The quota of this process."""
