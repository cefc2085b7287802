"""
One operation from its first call to its result, as a generator: it yields what is to be done and never does it.

Both drivers and both iterators run this one flow, so what happens is the same everywhere. It is entered only when
something has gone wrong or something has to be arranged first; a plain successful call never gets here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision, State
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.recovery.call_errors import MisuseError
from amends.recovery.clock import CLOCK
from amends.recovery.events import telling
from amends.recovery.give_up import final_error
from amends.recovery.history import Attempt
from amends.recovery.plan import Plan, hearing
from amends.recovery.queueing import parked, renewed, repeatable_at, settled
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.stepper import Stepper, remedy_for
from amends.recovery.steps import Do, Send, Steps, Wait, WaiterMaker
from amends.recovery.to_fault import fault_of, waited_below
from amends.recovery.upstream import Upstream

__all__ = ["Flow", "Outcome"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call."""

    sent: float
    ended: float
    generation: int = 0
    error: Any = None
    result: Any = None
    fault: Fault | None = None
    parked: float = 0.0


class Flow:
    """The way of one operation. `run` is the generator; the rest is what it remembers."""

    __slots__ = ("args", "call", "kwargs", "new_waiter", "notes", "plan", "stepper", "trail")

    def __init__(
        self,
        plan: Plan,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        new_waiter: WaiterMaker,
        trail: list[Attempt] | None = None,
        began: float | None = None,
    ) -> None:
        around = SCOPE.get()
        self.plan = plan
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.new_waiter = new_waiter
        self.trail = trail
        self.notes: list[str] = []
        self.stepper = Stepper(
            policy=plan.policy,
            operation=plan.started(),
            state=State(
                attempt=0,
                started=CLOCK.now() if began is None else began,
                until=None if around is None else around.until,
            ),
        )

    def run(self, first: Outcome | None = None) -> Steps:
        """Every step until the result, which is returned, or the FaultError, which is raised. `first`: made already."""
        outcome = first
        while True:
            if outcome is None:
                outcome = yield from self._attempt()
                if outcome is None:
                    return (yield from self._end())
            fault = outcome.fault
            if fault is None:
                return self._succeeded(outcome)
            held = False
            if self.plan.upstream is not None:
                held = self.plan.upstream.failed(fault, outcome.ended, outcome.sent, CLOCK.draw())
            self.stepper = self.stepper.failed(
                fault,
                started=outcome.sent,
                ended=outcome.ended,
                draw=CLOCK.draw(),
                error=outcome.error,
                result=outcome.result,
                parked=outcome.parked,
                waited_below=waited_below(outcome.error),
            )
            done, value = yield from self._resolve(fault, outcome)
            if done:
                return value
            if self.stepper.decision.action is not Action.RETRY:
                return (yield from self._end())
            with self._telling("retry"):
                in_time = yield from self._pause(self.stepper.decision, held=held)
            if not in_time:
                return (yield from self._end())
            outcome = None

    # One call --------------------------------------------------------------------------------------------------

    def _attempt(self) -> Any:
        """Wait for one's turn, then make the call. None when there will be no turn."""
        upstream = self.plan.upstream
        generation, spent = 0, 0.0
        if upstream is not None:
            before = CLOCK.now()
            allowed = yield from parked(upstream, self.stepper, self.new_waiter)
            now = CLOCK.now()
            spent = now - before
            self.stepper = self.stepper.waited(spent)
            if not allowed:
                self._refused(now)
                return None
            generation = upstream.generation
        stepper = self.stepper
        sent = CLOCK.now()
        try:
            result = yield Send(
                self.call, self.args, self.kwargs, scope_of(stepper, upstream), "on_fix" in stepper.remedies
            )
            fault = self.plan.examine(result) if self.plan.examine is not None else None
            error = None
        except MisuseError:
            self._abandoned(sent)
            raise
        except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
            fault, result, error = fault_of(exc), None, exc
        except BaseException:
            self._abandoned(sent)
            raise
        return Outcome(
            sent=sent,
            ended=CLOCK.now(),
            generation=generation,
            error=error,
            result=result,
            fault=fault,
            parked=spent,
        )

    def _abandoned(self, sent: float) -> None:
        """The call says nothing about the service: it was no call, or nobody waited for its end."""
        if self.plan.upstream is not None:
            self.plan.upstream.abandoned(CLOCK.now(), sent)

    def _refused(self, now: float) -> None:
        """No call may be made within the time there is."""
        upstream, stepper = self.plan.upstream, self.stepper
        assert upstream is not None
        held = upstream.held_for(now)
        reason = "wait-too-long" if held else "parked"
        if not stepper.history:
            stepper = replace(stepper, fault=upstream.refusal(now))
        self.stepper = stepper.gave_up(reason, held or None)

    def _pause(self, decision: Decision, *, held: bool) -> Any:
        """The wait before a repeat; whether it may go on. A shared hint is waited for in line, behind the others."""
        if held and decision.reason == "hint":
            return True
        in_time, before = True, CLOCK.now()
        if decision.delay:
            yield Wait(decision.delay)
        if self.plan.upstream is not None and decision.reason not in _UNCHARGED:
            patience = self.stepper.patience(before)
            in_time = yield from repeatable_at(self.plan.upstream, before + patience)
            if not in_time:
                self.stepper = self.stepper.gave_up("budget")
        # What was asked for counts also where somebody's test has made sleeping a no-op.
        self.stepper = self.stepper.waited(max(CLOCK.now() - before, decision.delay or 0.0))
        return in_time

    # Ways out beside repeating ---------------------------------------------------------------------------------

    def _resolve(self, fault: Fault, outcome: Outcome) -> Any:
        """Remove the cause, where a hook can. Whether that ended the operation, and with which result."""
        plan, action = self.plan, self.stepper.decision.action
        if action is Action.RETRY:
            return False, None
        remedy = remedy_for(fault)
        if remedy is not None and remedy not in self.stepper.remedies and getattr(plan, remedy) is not None:
            if remedy == "refresh":
                worked = yield from self._refresh(fault, outcome)
            else:
                worked = (yield from self._hook("setup", fault)) is not False
            if worked:
                reason = "refreshed" if remedy == "refresh" else "set-up"
                self.stepper = self.stepper.remedied(remedy, reason, CLOCK.now())
        elif action is Action.FIX and plan.on_fix is not None:
            changed = yield from self._hook("on_fix", fault, failed=None)
            if changed is not None:
                # The arguments stay those of the operation, for its fallbacks.
                self.call = lambda *_args, **_kwargs: changed()
                self.stepper = self.stepper.remedied("on_fix", "changed", CLOCK.now())
        elif action is Action.VERIFY and plan.verify is not None:
            seen = yield from self._hook("verify", fault, failed=None)
            if seen is False:
                self.stepper = self.stepper.not_happened(CLOCK.now(), CLOCK.draw())
            elif seen is not None:
                self._leave_trail()
                return True, seen
        return False, None

    def _refresh(self, fault: Fault, outcome: Outcome) -> Any:
        """New credentials: by everybody's one renewal where there is an upstream."""
        upstream = self.plan.upstream
        if upstream is None:
            return (yield from self._hook("refresh", fault)) is not False
        turn = renewed(
            upstream, self.stepper, self.new_waiter, outcome.generation, self._hook("refresh", fault)
        )
        return (yield from turn)

    def _hook(self, name: str, fault: Fault, failed: Any = False) -> Any:
        """What a hook returns; `failed` when it raises, which is noted on the error that will be raised then."""
        hook = getattr(self.plan, name)
        with self._telling(name.removeprefix("on_")):
            try:
                return (yield Do(hook, hearing(hook, fault)))
            except Exception as exc:  # noqa: BLE001 - the failure in hand is the one to report
                self.notes.append(f"{name} did not work: {type(exc).__name__}")
                return failed

    # The end ---------------------------------------------------------------------------------------------------

    def _succeeded(self, outcome: Outcome) -> Any:
        before = self.stepper
        if self.plan.upstream is not None:
            settled(self.plan.upstream, outcome.ended, outcome.sent)
        if before.history:
            with self._telling("recovered"):
                pass
        self.stepper = before.succeeded(started=outcome.sent, ended=outcome.ended, parked=outcome.parked)
        self._leave_trail()
        return outcome.result

    def _end(self) -> Steps:
        """The declared other way, or the error."""
        if self.stepper.decision.action is Action.FALLBACK:
            for fallback in self.plan.fallbacks:
                with self._telling("fallback"):
                    try:
                        result = yield Do(fallback, self.args, self.kwargs)
                    except Exception as exc:  # noqa: BLE001
                        self.notes.append(f"fallback did not work: {type(exc).__name__}")
                    else:
                        self._leave_trail()
                        return result
        with self._telling("gave-up"):
            pass
        self._leave_trail()
        cause = self.stepper.history[-1].error if self.stepper.history else None
        raise final_error(self.stepper, cause, self.notes) from cause

    def _leave_trail(self) -> None:
        if self.trail is not None:
            self.trail.extend(self.stepper.history)

    def _telling(self, kind: str) -> Any:
        stepper = self.stepper
        assert stepper.fault is not None
        return telling(
            kind,
            stepper.operation.name,
            stepper.fault,
            stepper.decision,
            stepper.state.attempt,
            CLOCK.now() - (stepper.state.started or 0.0),
        )


_UNKNOWN = Operation()
_UNCHARGED = frozenset({"refreshed", "set-up", "changed"})
"""Repeats that are no repeats of the same thing, so they cost nothing."""


def scope_of(stepper: Stepper, upstream: Upstream | None = None) -> Scope | None:
    """What a call of this operation is told, or None when there is nothing to tell."""
    state, deadline = stepper.state, stepper.policy.deadline
    until = state.until
    if deadline is not None and state.started is not None:
        own = state.started + deadline
        until = own if until is None else min(until, own)
    if stepper.operation.key is None and until == state.until and upstream is None:
        return None
    around = SCOPE.get()
    upstreams = () if around is None else around.upstreams
    # An operation that says nothing of itself is part of the one around it, and so are its key and name.
    operation = (
        around.operation if around is not None and stepper.operation == _UNKNOWN else stepper.operation
    )
    return Scope(operation, until, upstreams if upstream is None else (*upstreams, upstream))
