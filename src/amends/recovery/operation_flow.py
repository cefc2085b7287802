"""
The flow of one operation, from its first call to its result.

The flow is a generator. It yields steps (`amends.recovery.steps`) and does nothing itself: `recover`, `arecover`, the
decorator, `attempts` and `arecover_stream` all run this one flow, so they all behave the same. A first call that needs
nothing arranged is made without a flow (`drivers.call_first`); if it fails, the flow starts with its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from os import urandom
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision, State
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.policy import DEFAULT
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError
from amends.proof import Claim, Proof, rests_on
from amends.recovery.call_errors import MisuseError
from amends.recovery.classify import (
    Signal,
    fault_in_response,
    fault_of,
    is_unregistered_bug,
    matches,
    signal_of,
    waited_below,
)
from amends.recovery.clock import CLOCK
from amends.recovery.events import LONG_WAIT, publish, record_event
from amends.recovery.failover import Failover
from amends.recovery.give_up import final_error, with_fault, with_wait
from amends.recovery.history import Attempt
from amends.recovery.incoming import left
from amends.recovery.plan import Hook, Plan, fallback_arguments, hook_arguments
from amends.recovery.policies import TOOL
from amends.recovery.process_quota import callee_of, process_quota
from amends.recovery.queueing import renew_credentials, wait_for_turn
from amends.recovery.scope import SCOPE, current_tool_call, earlier, scope_of
from amends.recovery.stepper import Stepper, remedy_for
from amends.recovery.steps import Do, Finish, Send, Step, Steps, Wait, WaiterMaker
from amends.recovery.upstream import Upstream

HOOK_SECONDS = 60.0
"""Seconds that a hook or a fallback may take, if the operation has no `timeout`. Longer: an operation whose hook hangs ends later;
shorter: slow checks of what happened are cut off."""

__all__ = ["Flow", "Outcome", "wait_for_quota"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one call returned or raised, and when. `fault` is None if it succeeded."""

    sent: float
    ended: float
    generation: int = 0
    """The generation of the upstream's credentials when the call was sent."""
    successes: int = 0
    """The successes of this process until the call was sent, of operations without an upstream."""
    error: Any = None
    result: object = None
    fault: Fault | None = None
    parked: float = 0.0
    """Seconds the call waited for its turn before it was sent."""


class Flow:
    """One operation. `steps` is the generator; the attributes are its state."""

    __slots__ = (
        "args",
        "bound",
        "call",
        "called",
        "failed",
        "first",
        "history",
        "kwargs",
        "new_waiter",
        "notes",
        "number",
        "only",
        "plan",
        "queued",
        "repeats",
        "stepper",
        "trace",
        "upstream",
    )

    def __init__(
        self,
        plan: Plan,
        call: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        new_waiter: WaiterMaker,
        history: list[Attempt] | None = None,
        first: Outcome | None = None,
    ) -> None:
        """
        Args:
            plan: the checked options.
            call: the function to call.
            args: its arguments.
            kwargs: its keyword arguments.
            new_waiter: makes the waiters of this operation.
            history: a list of the caller that gets every attempt when the operation ends, also if an interrupt ends it.
            first: the outcome of a first call that was made already.

        """
        around, tool, policy = SCOPE.get(), current_tool_call(), plan.policy
        started = None if first is None else first.sent
        if (
            tool is not None
            and policy.attempts is DEFAULT.attempts
            and replace(policy, fallback=False) == DEFAULT
        ):
            policy, started = replace(TOOL, fallback=policy.fallback), tool.started or started
        given = left()
        self.plan = plan
        self.upstream = plan.upstream
        """The Upstream of the present call: the plan's, or that of the present target."""
        self.repeats: Upstream | None = None
        """Without an Upstream: the one that the repeats of the same function share, after the first call has failed."""
        self.number = 0
        """The number of the present target of a Failover."""
        self.called: list[int] = []
        self.failed: set[int] = set()
        """The targets that were called, and those that failed."""
        self.only: int | None = None
        """The only target that can do the request."""
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.new_waiter = new_waiter
        self.history = history
        self.first = first
        self.bound: str | None = None
        """Why no further call is made, such as "delivered": the caller has a part of the result."""
        self.notes: list[str] = []
        self.trace = ""
        self.queued: Stepper | None = None
        """What was published about the wait of the first call."""
        self.stepper = Stepper(
            policy=policy,
            operation=plan.new_operation() if plan.operation.keyed else plan.operation,
            state=State(
                attempt=0,
                started=CLOCK.now() if started is None else started,
                until=earlier(None if around is None else around.until, given.until),
                most=given.tries if around is None or around.tries is None else around.tries,
            ),
        )

    def steps(self) -> Steps:
        """
        Yield the steps of the operation. The last one is Finish, with the result.

        Raises:
            FaultError: when recovery gives up.

        """
        try:
            result = yield from self._result()
        finally:
            if self.history is not None:
                self.history.extend(self.stepper.history)
        yield Finish(result)

    def _result(self) -> Steps:
        """Call, decide, wait and call again. Return the result or raise the final error."""
        outcome = self.first
        while True:
            if outcome is None:
                outcome = yield from self._attempt()
                if outcome is None:
                    return (yield from self._end())
            fault = outcome.fault
            if fault is None:
                return self._succeed(outcome)
            received = fault.retry_after
            fault, unrepeatable, repeatable = self._judge(fault, outcome.error)
            in_use = getattr(outcome.error, "waits_for_key", False)
            held = False
            queue = self.upstream or self.repeats
            if queue is not None:
                held = queue.failed(
                    fault,
                    outcome.ended,
                    outcome.sent,
                    CLOCK.draw(),
                    repeat=self._earlier_calls(),
                    priority=self.stepper.operation.priority,
                )
            self.stepper = self.stepper.failed(
                fault,
                started=outcome.sent,
                ended=outcome.ended,
                draw=CLOCK.draw(),
                error=outcome.error,
                result=outcome.result,
                parked=outcome.parked,
                waited_below=waited_below(outcome.error),
                unrepeatable=unrepeatable,
                repeatable=repeatable or in_use,
                target=self._target_name,
                counted=not in_use,
                exact=fault.retry_after is not received,  # `on` named it
            )
            if self.plan.failover is not None and unrepeatable is None:
                self._move(self.plan.failover, fault, outcome.ended)
            decision = self.stepper.decision
            if decision.action is not Action.RETRY:
                resolved, value = yield from self._resolve(fault, outcome, decision.action)
                if resolved:
                    return value
                decision = self.stepper.decision
                if decision.action is not Action.RETRY:
                    return (yield from self._end())
            with self._publish("retry"):
                in_time = yield from self._wait(decision, fault, outcome, held=held)
            if not in_time:
                return (yield from self._end())
            outcome = None

    # One call --------------------------------------------------------------------------------------------------

    def _attempt(self) -> Generator[Step, Any, Outcome | None]:
        """Wait until the upstream lets the call out, then make it. Return None if it does not within the time left."""
        failover, target = self.plan.failover, None
        if failover is not None:
            stay = None if self._may_move() else self.number
            self.number = failover.choose(CLOCK.now(), self.failed, self.only if stay is None else stay)
            target = failover.targets[self.number]
            self.upstream = target.upstream
        upstream, queue, parked = self.upstream, self.upstream or self.repeats, 0.0
        if queue is not None:
            if queue.open:
                queue.begin()
            else:
                granted, parked = yield from self._queue(queue)
                if not granted:
                    return None
        generation = 0 if upstream is None else upstream.renewal.generation
        stepper, examine, timeout = self.stepper, self.plan.examine, self.plan.timeout
        if failover is not None:
            self.called.append(self.number)
            if examine is _READS_ALL and upstream is not None:
                examine = partial(fault_in_response, vendor=upstream.vendor)
        successes, sent = process_quota.successes, CLOCK.now()
        try:
            call, args = self.call, self.args
            if target is not None and "on_fix" not in stepper.remedies:
                call = target.call or call
                args = args if target.rewrite is None or not args else (target.rewrite(args[0]), *args[1:])
            result = yield Send(
                call,
                args,
                self.kwargs,
                scope_of(stepper, upstream, None if timeout is None else sent + timeout, target),
                changed="on_fix" in stepper.remedies,
                timeout=timeout,
            )
            fault = _examined(examine(result)) if callable(examine) else None
            error = None
        except MisuseError:
            self._abandon(sent)
            raise
        except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
            vendor = None if upstream is None else upstream.vendor
            fault, result, error = fault_of(exc, vendor), None, exc
        except BaseException:
            self._abandon(sent)
            raise
        return Outcome(
            sent=sent,
            ended=CLOCK.now(),
            generation=generation,
            successes=successes,
            error=error,
            result=result,
            fault=fault,
            parked=parked,
        )

    def _queue(self, upstream: Upstream) -> Generator[Step, Any, tuple[bool, float]]:
        """Wait until the upstream lets the call out. Return whether it does, and for how many seconds the call waited."""
        before = CLOCK.now()
        # The wait that a hint asked for was in the event of the retry.
        known = 0.0 if self.stepper.verdict is None else self.stepper.decision.delay or 0.0
        expected, longest = upstream.resumes_in(before), self.plan.first_wait
        if longest is not None and not self.stepper.history and not upstream.held_for(before):
            expected = min(expected, longest)
        with self._publish_queued(upstream, expected if expected > LONG_WAIT + known else 0.0):
            tries = None if self.plan.failover is None else self.called.count(self.number)
            granted = yield from wait_for_turn(
                upstream, self.stepper, self.new_waiter, tries, self.plan.first_wait
            )
        now = CLOCK.now()
        parked = now - before
        if parked > LONG_WAIT + known and expected <= LONG_WAIT + known:
            with self._publish_queued(upstream, parked):
                pass
        self.stepper = self.stepper.waited(parked)
        if not granted:
            self._give_up_unsent(upstream, now)
        return granted, parked

    def _abandon(self, sent: float) -> None:
        """Report to the upstream that a call has no outcome: it was interrupted, or it could not be made."""
        queue = self.upstream or self.repeats
        if queue is not None:
            queue.abandoned(CLOCK.now(), sent)

    def _give_up_unsent(self, upstream: Upstream, now: float) -> None:
        """Decide to give up, because the upstream does not let the call out within the time left."""
        stepper = self.stepper
        held = upstream.held_for(now)
        reason = "wait-too-long" if held else "parked"
        if not stepper.history:
            stepper = replace(stepper, fault=upstream.refusal(now))
        self.stepper = stepper.gave_up(reason, held or None)

    def _wait(
        self, decision: Decision, fault: Fault, outcome: Outcome, *, held: bool
    ) -> Generator[Step, Any, bool]:
        """
        Wait before a repeat. Return False if the quota of repeats is used up.

        `held`: the upstream holds all its calls until the time the server named, so the wait takes place in its queue.
        """
        if held and decision.reason == "hint":
            return True
        in_time, before = True, CLOCK.now()
        if decision.delay:
            yield Wait(decision.delay)
        if decision.reason not in _UNCHARGED and not self._invited(decision, fault):
            if self.upstream is None:
                self._take_from_process(fault, outcome)
            else:
                longest = min(self.stepper.patience(CLOCK.now()), decision.delay or 0.0)
                in_time = yield from wait_for_quota(self.upstream.take_repeat, longest)
            if not in_time:
                self.stepper = self.stepper.gave_up("budget", decision.delay)
        # Count the decided delay even if a test replaced `sleep` by a function that returns at once.
        self.stepper = self.stepper.waited(max(CLOCK.now() - before, decision.delay or 0.0))
        return in_time

    def _invited(self, decision: Decision, fault: Fault) -> bool:
        """Return whether a rate limit named the time of this repeat; an upstream counts it nevertheless."""
        limited = row_for(fault.vocabulary, fault.code, fault.status).everyday == "RATE_LIMITED"
        named = fault.retry_after is not None and usable(fault.vocabulary, fault.retry_after) is not None
        # Who is refused again at the time that was named is one of many that were named the same.
        first = self.upstream is None and len(self.stepper.history) == 1
        return first and decision.reason in _TIMED and named and limited

    def _take_from_process(self, fault: Fault, outcome: Outcome) -> None:
        """Take the repeat of this failure from the quota of the process; if there is none, the repeats are held back."""
        callee, now = self.plan.operation.name or callee_of(self.call), CLOCK.now()
        repeats = self.repeats
        if repeats is None:
            repeats = self.repeats = process_quota.repeats_of(callee, now)
            if repeats is None:
                return
        silent = outcome.ended - outcome.sent if signal_of(fault) is Signal.SILENT else 0.0
        if repeats.open and process_quota.take(now, callee=callee, silent=silent, before=outcome.successes):
            repeats.hold_back(fault, now, outcome.sent, CLOCK.draw())

    # Other targets ---------------------------------------------------------------------------------------------

    def _move(self, failover: Failover, fault: Fault, now: float) -> None:
        """Decide to call another target, if one can be called and a call of it is safe."""
        if self.only is not None:
            return
        self.failed.add(self.number)
        found = failover.after(self.number, fault, self.failed, now, may_move=self._may_move())
        if found is None:
            if len(self.failed) == len(failover.targets):
                self.failed.clear()  # the next round begins with the first one again
            return
        moved = self.stepper.moved(now)
        if moved is not self.stepper:
            number, named = found
            self.stepper, self.only = moved, number if named else None

    @rests_on(Claim.MAY_REPEAT, Proof.USER, Proof.RECORD)
    def _may_move(self) -> bool:
        """Whether another service may be called: nothing has happened at one yet, or the operation changes nothing."""
        operation = self.stepper.operation
        return operation.read_only or operation.computes or self.stepper.executed is Executed.NO

    def _earlier_calls(self) -> int:
        """How many calls of this operation to its service were made before the present one."""
        if self.repeats is not None:
            return 0  # only repeats are reported
        return len(self.stepper.history) if not self.called else self.called.count(self.number) - 1

    @property
    def _target_name(self) -> str:
        failover = self.plan.failover
        return "" if failover is None else failover.targets[self.number].name

    def _hook(self, name: str) -> Hook | None:
        """Return a hook of the caller; the Upstream of the present call may have `refresh`."""
        found: Hook | None = getattr(self.plan, name)
        if found is None and name == "refresh" and self.upstream is not None:
            return self.upstream.refresh
        return found

    # Which failures are repeated -------------------------------------------------------------------------------

    def _judge(self, fault: Fault, error: BaseException | None) -> tuple[Fault, str | None, bool]:
        """
        Apply the option `on`, and find bugs.

        Return the fault, the reason why no repeat can help (None if one can), and whether a repeat is safe whatever the
        operation declares: by naming the exception in `on` the caller asked for the repeat.
        """
        on = self.plan.on
        if self.bound is not None:
            return fault, self.bound, False
        if error is None:
            return fault, None, False
        if on is None:
            bug = not isinstance(error, FaultError) and is_unregistered_bug(error)
            return fault, "bug" if bug else None, False
        try:
            named, wait = matches(on, error)
        except Exception as exc:  # noqa: BLE001 - the final error reports the operation's own failure
            self.notes.append(f"on did not work: {type(exc).__name__}")
            named, wait = False, None
        if not named:
            return fault, "bug" if is_unregistered_bug(error) else "not-in-on", False
        if self._has_hook_for(fault):
            return fault, None, False
        wait = fault.retry_after if wait is None else wait
        return (
            replace(fault, recovery=Recovery.TRANSIENT, retry_after=wait),
            None,
            self.plan.verify is None,
        )

    def _has_hook_for(self, fault: Fault) -> bool:
        """Return whether the caller gave a hook that can remove the cause of this failure, and it has not run."""
        remedy = remedy_for(fault)
        if remedy is not None and remedy not in self.stepper.remedies and self._hook(remedy) is not None:
            return True
        return fault.recovery is Recovery.CORRECTABLE and self.plan.on_fix is not None

    # Hooks -----------------------------------------------------------------------------------------------------

    def _resolve(
        self, fault: Fault, outcome: Outcome, action: Action
    ) -> Generator[Step, Any, tuple[bool, Any]]:
        """
        Run the hook that can remove the cause of the failure, if the caller gave one.

        Return whether `verify` found that the operation has had its effect, and the result it returned then.
        """
        plan = self.plan
        if action is Action.NONE:
            return False, None
        remedy = remedy_for(fault)
        if remedy is not None and remedy not in self.stepper.remedies and self._hook(remedy) is not None:
            if remedy == "refresh":
                worked = yield from self._refresh(fault, outcome)
            else:
                worked = (yield from self._run_hook("setup", fault)) is not False
            if worked:
                reason = "refreshed" if remedy == "refresh" else "set-up"
                self.stepper = self.stepper.remedied(remedy, reason, CLOCK.now())
        elif action is Action.FIX and plan.on_fix is not None:
            changed = yield from self._run_hook("on_fix", fault, failed=None)
            if changed is not None and not callable(changed):
                self.notes.append(f"on_fix returned {type(changed).__name__}, not the function to call")
            elif changed is not None:
                # `args` and `kwargs` stay those of the operation: its fallbacks are called with them.
                self.call = lambda *_args, **_kwargs: changed()
                self.stepper = self.stepper.remedied("on_fix", "changed", CLOCK.now())
        elif action is Action.VERIFY and plan.verify is not None:
            found = yield from self._run_hook("verify", fault, failed=None)
            if found is False:
                self.stepper = self.stepper.not_happened(CLOCK.now(), CLOCK.draw())
            elif found is not None:
                return True, found
        return False, None

    def _refresh(self, fault: Fault, outcome: Outcome) -> Generator[Step, Any, bool]:
        """Renew the credentials, with an upstream only once for all its callers. Return whether that worked."""
        hook = self._run_hook("refresh", fault)
        upstream = self.upstream
        if upstream is None:
            return (yield from hook) is not False
        return (
            yield from renew_credentials(upstream, self.stepper, self.new_waiter, outcome.generation, hook)
        )

    def _run_hook(self, name: str, fault: Fault, failed: object = False) -> Steps:
        """Return what a hook returns. If it raises, return `failed` and note that on the final error."""
        hook = self._hook(name)
        assert hook is not None
        with self._publish(name.removeprefix("on_")):
            try:
                return (yield Do(hook, hook_arguments(hook, fault), timeout=self._hook_time()))
            except Exception as exc:  # noqa: BLE001 - the final error reports the operation's own failure
                self.notes.append(f"{name} did not work: {type(exc).__name__}")
                return failed

    def _hook_time(self) -> float:
        """Return the seconds that a hook may take: those of a call, or a minute; and not beyond the deadline."""
        now = CLOCK.now()
        left, policy, state = self.plan.timeout or HOOK_SECONDS, self.stepper.policy, self.stepper.state
        for until in (
            state.until,
            None if policy.deadline is None else (state.started or now) + policy.deadline,
        ):
            left = left if until is None else min(left, until - now)
        return max(0.0, left)

    # The end ---------------------------------------------------------------------------------------------------

    def _succeed(self, outcome: Outcome) -> object:
        """Report the success and return the result."""
        before = self.stepper
        queue = self.upstream or self.repeats
        if self.upstream is None:
            process_quota.successes += 1
        if queue is not None:
            queue.succeeded(
                outcome.ended,
                outcome.sent,
                repeat=self._earlier_calls() > 0,
                priority=before.operation.priority,
            )
        if before.history:
            with self._publish("recovered"):
                pass
        elif self.queued is not None:
            # The record says that the call waits; nothing else in it would say that it does not any more.
            record_event("recovered", self.queued, CLOCK.now(), self.upstream, self.trace)
        self.stepper = before.succeeded(
            started=outcome.sent, ended=outcome.ended, parked=outcome.parked, target=self._target_name
        )
        return outcome.result

    def _end(self) -> Steps:
        """Return the result of the first fallback that works, if the decision is to fall back; else raise."""
        fallbacks = self.plan.fallback
        if self.stepper.decision.action is Action.FALLBACK and isinstance(fallbacks, tuple):
            for fallback in fallbacks:
                with self._publish("fallback"):
                    try:
                        result = yield Do(
                            fallback,
                            *fallback_arguments(fallback, self.args, self.kwargs, self._failure),
                            timeout=self.plan.timeout or HOOK_SECONDS,
                        )
                    except Exception as exc:  # noqa: BLE001 - the next fallback, or the final error
                        self.notes.append(f"fallback did not work: {type(exc).__name__}")
                    else:
                        return result
        with self._publish("gave-up"):
            pass
        last = self.stepper.history[-1] if self.stepper.history else None
        cause = None if last is None else last.error
        if self.plan.raises == "nothing" and last is not None and cause is None:
            return last.result
        error = final_error(with_wait(self.stepper), cause, self.notes)
        if self.upstream is not None and self.upstream.own:
            error.own = True
        declared = self.plan.operation
        error.key_is_new = error.key_is_new or (declared.keyed and declared.key is None)
        if self.plan.raises != "fault" and cause is not None:
            raise with_fault(cause, error)
        raise error from cause

    def _publish_queued(self, upstream: Upstream, seconds: float) -> AbstractContextManager[object]:
        """Publish that a call waits for its turn at the upstream; nothing if it does not wait long."""
        if not seconds:
            return nullcontext()
        stepper = self.stepper
        waiting = Decision(action=Action.RETRY, delay=seconds, reason="queued")
        fault = stepper.fault or upstream.refusal(CLOCK.now())
        self.queued = replace(stepper, fault=fault, verdict=waiting)
        return self._publish("queued", self.queued)

    def _publish(self, kind: str, stepper: Stepper | None = None) -> AbstractContextManager[object]:
        self.trace = self.trace or urandom(16).hex()
        return publish(
            kind,
            stepper or self.stepper,
            CLOCK.now(),
            self.plan.on_event,
            upstream=self.upstream,
            trace=self.trace,
            target=self._target_name if kind == "recovered" else "",
        )

    @property
    def _failure(self) -> Fault:
        """The last failure."""
        fault = self.stepper.fault
        assert fault is not None
        return fault


def _examined(found: object) -> Fault | None:
    """Return the fault that `examine` found; None for a remark on a call that succeeded."""
    if found is None:
        return None
    if not isinstance(found, Fault):
        if hasattr(found, "__await__") and hasattr(found, "close"):
            found.close()  # a coroutine: without this, Python warns that it was never awaited
        raise MisuseError(f"examine returns a Fault, or None for a success, not {type(found).__name__}")
    return found if found.fatal else None


_READS_ALL: object = fault_in_response
"""What `examine=True` stands for."""
_TIMED = frozenset({"hint", "backoff"})
"""Reasons of repeats that come when a service named the time, or later."""
_UNCHARGED = frozenset({"refreshed", "set-up", "changed", "next-target"})
"""Reasons of repeats that are not taken from the quota: something changed, so they do not repeat the same call."""


def wait_for_quota(take: Callable[[float], float], longest: float) -> Generator[Step, Any, bool]:
    """
    Take a repeat from a quota with `take`. Return whether there was one.

    Waits at most `longest` seconds for it: where most calls fail, a repeat that waits for long would only be one more.
    """
    now = CLOCK.now()
    over = now + longest
    while at := take(now):
        if at > over:
            return False
        yield Wait(at - now)
        now = CLOCK.now()
    return True
