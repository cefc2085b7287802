"""
The tries of one call that did not succeed at once, and how long its failure is held back for them.

A failure is held back only while a repeat is under way or planned, and somebody waits for it: until shortly before the caller's own
limit, if it names one; else for the wait that the service named, or for `patience` seconds. A first try is not delayed, unless the
service named the time. While a route fails, a caller that names no limit gets the answer to one try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from amends.core import recording
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.gateway.answers import Answer, FailedTry
from amends.gateway.health import INTERVAL
from amends.logs import logger
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import arun_flow
from amends.recovery.history import Attempt
from amends.recovery.incoming import handling
from amends.recovery.operation_flow import Outcome
from amends.recovery.plan import Plan
from amends.recovery.policies import TOOL

if TYPE_CHECKING:
    from amends.gateway.http_upstream import Call, HttpUpstream

__all__ = ["Repeats", "until_near", "waited_in"]

_log = logger("amends.gateway")

_PACED = 0.03
"""Seconds that a first try waits for its turn, if the service named no time. Longer: failures are passed on later; shorter: bursts
that a moment would spread are sent at once."""
_NAMED_WAIT = 60.0
"""Seconds of waiting that a service may ask for, if the caller waits twice as long, and the policy does not say otherwise."""
_REST = 1.0
"""Seconds after a wait that the service named, for the jitter and the try."""


def until_near(limit: float) -> float:
    """
    Return how long to try for a caller that waits `limit` seconds, so that the answer reaches it.

    >>> until_near(10.0), until_near(600.0)
    (9.5, 599.0)
    """
    return max(0.5 * limit, limit - min(max(0.05 * limit, 0.05), 1.0))


def waited_in(history: Sequence[Attempt]) -> float:
    """Return the seconds between tries: a wait and the time in the queue of the upstream overlap."""
    if not history:
        return 0.0
    last = history[-1]
    whole = last.started + last.duration - (history[0].started - history[0].parked)
    return max(0.0, whole - sum(each.duration for each in history))


class Repeats:
    """The tries of one call."""

    def __init__(
        self, upstream: HttpUpstream, call: Call, first: Outcome | None, began: float, *, room: bool
    ) -> None:
        """
        Args:
            upstream: whose call it is.
            call: the call.
            first: the outcome of its first try, if that was made.
            began: when the call arrived, on the monotonic clock.
            room: whether it may wait: not too many calls of its route do.

        """
        self.upstream = upstream
        self.call = call
        self.tries = 0 if first is None else 1
        self.history: list[Attempt] = []
        self.answer: Answer | None = None
        """The answer that did not fail."""
        self.error: FaultError | None = None
        """Why the last try failed, or why none was made."""
        self._first = first
        self._began = began
        self._room = room
        self._limit = call.headers.limit
        self._operation = upstream.operation(call)
        self._cut_off = False
        """Whether a try was under way when the failure was handed over."""
        self._last: Fault | None = None if first is None else first.fault
        self._timer: asyncio.Timeout = asyncio.timeout(None)
        self._hand_over_at: float | None = None
        """When the failure is handed over, on the clock of the event loop."""

    @property
    def repeatable(self) -> bool:
        """Whether a repeat is safe whatever happened."""
        return self._operation.repeatable

    @property
    def waited(self) -> float:
        """Seconds between the tries, and before the first."""
        return waited_in(self.history)

    @property
    def reported_tries(self) -> int:
        """The tries with those that the upstream made below."""
        return max(self.tries, (self.error.fault.attempt or 0) if self.error is not None else 0)

    async def run(self) -> None:
        """Make the tries; then either `answer` or `error` is set."""
        call, first, now = self.call, self._first, CLOCK.now()
        scoped = self.upstream.scope_for(call)
        if first is not None and isinstance(first.error, FailedTry):
            call.keep(first.error.answer)
        if first is None and (self.upstream.down or scoped.hangs(now)):
            self._refuse(scoped.last_failure, scoped.resumes_in(now) or INTERVAL)
            return
        if first is not None and first.fault is not None:
            first = self._first = self._bounded(first)
        fails = first is None and scoped.fails(now)
        policy = self._policy(fails=fails, named=self._is_named(scoped.held_for(now)))
        plan = Plan(
            policy=policy,
            service=self.upstream.service_for(call),
            operation=self._operation,
            first_wait=0.0 if fails else _PACED,
        ).checked()
        loop = asyncio.get_running_loop()
        if self._limit is not None:
            self._hand_over_at = loop.time() + until_near(self._limit) - (monotonic() - self._began)
        elif self._last is not None:
            self._note(self._last)
        self._timer = asyncio.timeout_at(self._hand_over_at)
        try:
            async with self._timer:
                with handling(call.headers.traceparent, self._stated()):
                    self.answer = await arun_flow(plan, self._attempt, (), {}, self.history, first)
        except FaultError as error:
            if self.tries:
                # Tries that the upstream made below count, too.
                error.fault = replace(error.fault, attempt=max(self.tries, error.fault.attempt or 0))
                self.error = error
            else:
                self._refuse(
                    error.fault if error.fault.status else scoped.last_failure, error.fault.retry_after
                )
        except TimeoutError:
            if not self._timer.expired():
                raise
            self._hand_over()

    # Bounds ----------------------------------------------------------------------------------------------------

    def _policy(self, *, fails: bool, named: bool) -> Policy:
        """Return how many tries and how much waiting are allowed."""
        config, limit = self.upstream.config, self._limit
        policy = config.policy
        alone = not self.call.body.whole or self.upstream.caller_repeats(self.call)
        if alone or not self._room or (fails and limit is None):
            policy = replace(policy, attempts=1, rules={})
        if not self._room:
            return replace(policy, max_wait=0.0)
        if limit is not None:
            longest = policy.max_wait
            if longest == TOOL.max_wait and limit > 2 * _NAMED_WAIT:
                longest = _NAMED_WAIT if named else longest
            policy = replace(policy, max_wait=longest, ends_within=until_near(limit))
            if not fails:
                return policy
        if named or policy.max_wait is None:
            return policy
        return replace(policy, max_wait=min(policy.max_wait, config.patience))

    def _is_named(self, held: float) -> bool:
        """Return whether the service named a wait: in the failure of this call, or of another one that holds it back."""
        fault = self._last
        if fault is None:
            return held > 0
        return bool(fault.retry_after is not None and usable(fault.vocabulary, fault.retry_after))

    def _stated(self) -> str | None:
        """Return what the caller has left, as `Amends-Left` says it."""
        stated = self.call.headers.left
        if self._limit is None:
            return stated
        tries, *members = (stated or "").split(";")
        kept = [each for each in members if not each.startswith("deadline-ms=")]
        left = max(0.0, self._limit - (monotonic() - self._began))
        return ";".join([tries, f"deadline-ms={int(left * 1000)}", *kept])

    def _note(self, fault: Fault) -> None:
        """Note a failure, and when it is handed over."""
        self._last = fault
        if self._limit is not None:
            return
        now, patience = asyncio.get_running_loop().time(), self.upstream.config.patience
        wait = None if fault.retry_after is None else usable(fault.vocabulary, fault.retry_after)
        if wait:
            longest = self.upstream.config.policy.max_wait
            bounded = wait if longest is None else min(wait, longest)
            self._hand_over_at = max(self._hand_over_at or 0.0, now + 1.25 * bounded + patience + _REST)
        elif self._hand_over_at is None:
            self._hand_over_at = now + patience

    def _bounded(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a try, as one that is not repeated if the gateway itself stopped waiting for its answer."""
        fault, error = outcome.fault, outcome.error
        assert fault is not None
        if not self._is_own_timeout(error):
            return outcome
        bounded = replace(fault, max_retries=0)
        return replace(outcome, error=FailedTry.of(bounded, None), fault=bounded)

    def _is_own_timeout(self, error: object) -> bool:
        """Return whether the gateway stopped waiting for the answer of a model, and the caller's limit is not known."""
        return (
            isinstance(error, TimeoutError)
            and from_exception(error).executed is not Executed.NO
            and self._operation.computes
            and self._limit is None
        )

    # Tries -----------------------------------------------------------------------------------------------------

    async def _attempt(self) -> Answer:
        call, crowd, route = self.call, self.upstream.crowd, self.call.route
        call.repeated = self.tries > 0
        self.tries += 1
        if call.repeated and self._operation.computes:
            self.upstream.stats.recomputed += (
                self._last is not None and self._last.executed is not Executed.NO
            )
        if not self._operation.repeatable and self._limit is None:
            self._timer.reschedule(
                None
            )  # a call that cannot be repeated is not cut off: nobody would know its effect
        crowd.enter(route)
        try:
            return await self.upstream.attempt(call)
        except FailedTry as failed:
            call.keep(failed.answer)
            self._note(failed.fault)
            raise
        except Exception as error:
            call.keep(None)
            fault = from_exception(error)
            self._note(fault)
            if self._is_own_timeout(error):
                raise FailedTry.of(replace(fault, max_retries=0), None) from error
            raise
        finally:
            crowd.leave(route)
            self._cut_off = self._timer.expired()
            if not self._cut_off:
                self._timer.reschedule(self._hand_over_at)

    # Ends ------------------------------------------------------------------------------------------------------

    def _refuse(self, last: Fault | None, wait: float | None) -> None:
        """Answer for an upstream that is held back: with the code and the status of its last failure, and nothing else of it."""
        code = Fault(code="SERVICE_UNAVAILABLE") if last is None else last
        fault = Fault(
            code=code.code,
            vocabulary=code.vocabulary,
            recovery=code.recovery,
            status=code.status,
            executed=Executed.NO,
            retry_after=None if wait is None else max(wait, 1.0),
        )
        self.error = FaultError.from_fault(fault)
        self._report("refused", fault, "held back")

    def _hand_over(self) -> None:
        """Hand over the last failure, because nobody waits longer for a repeat."""
        fault = self._last
        if fault is None or (self._cut_off and not self._operation.repeatable):
            self.call.keep(None)
            fault = Fault(code="TIMEOUT", status=504, executed=Executed.MAYBE)
        self.error = FaultError.from_fault(fault)
        self._report("passed-on", fault, "the caller does not wait longer")

    def _report(self, outcome: str, fault: Fault, why: str) -> None:
        call, name, waited = self.call, self._operation.name, monotonic() - self._began
        recording.emit(
            "gateway",
            outcome,
            fault,
            name=name,
            trace_id=call.trace,
            upstream=self.upstream.config.name,
            attempt=max(1, self.tries),
            elapsed=waited,
            status=fault.status,
        )
        _log.warning(
            "%s %s: %s%s after attempt %d (%s, %.3g s, trace id %s)",
            outcome,
            name,
            fault.code,
            "" if fault.status is None else f" {fault.status}",
            self.tries,
            why,
            waited,
            call.trace,
        )
