"""
Runs an operation on a thread or on an event loop.

`run` and `arun` make the first call directly where that is possible. If it fails, or if it needs something arranged
first, they run the flow of `operation_flow`: `perform` and `aperform` do what each step of it asks for. Together with
the clock this is the only code that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from amends.recovery.call_errors import MisuseError, refuse_coroutine, refuse_misuse, refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow, Outcome
from amends.recovery.plan import Plan, first_call_is_plain
from amends.recovery.process_quota import process_quota
from amends.recovery.scope import SCOPE
from amends.recovery.steps import Do, Finish, Park, Send, Step, Steps, Wait
from amends.recovery.to_fault import fault_of
from amends.recovery.waiter import TaskWaiter, ThreadWaiter

__all__ = ["aadvance", "advance", "aperform", "arun", "arun_flow", "failed_call", "run", "run_flow"]


def run(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
) -> Any:
    """Make the call with recovery on this thread, and return its result."""
    upstream, first = plan.upstream, None
    if history is None and first_call_is_plain(plan.policy, upstream, plan.operation, plan.examine):
        generation = 0 if upstream is None else upstream.generation
        sent = CLOCK.now()
        try:
            result = call(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
            first = failed_call(sent, exc, generation)
        except BaseException:
            if upstream is not None:
                upstream.abandoned(CLOCK.now(), sent)
            raise
        else:
            if upstream is None:
                process_quota.earned += 1
            else:
                upstream.succeeded(CLOCK.now(), sent, CLOCK.draw)
            if isinstance(result, CoroutineType):
                refuse_coroutine(result)
            return result
    return run_flow(plan.checked(), call, args, kwargs, history, first)


async def arun(plan: Plan, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make the call with recovery on the running event loop, and return its result."""
    upstream, first = plan.upstream, None
    if first_call_is_plain(plan.policy, upstream, plan.operation, plan.examine):
        generation = 0 if upstream is None else upstream.generation
        sent = CLOCK.now()
        try:
            result = await call(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
            first = failed_call(sent, exc, generation)
        except BaseException:
            if upstream is not None:
                upstream.abandoned(CLOCK.now(), sent)
            raise
        else:
            if upstream is None:
                process_quota.earned += 1
            else:
                upstream.succeeded(CLOCK.now(), sent, CLOCK.draw)
            return result
    return await arun_flow(plan.checked(), call, args, kwargs, None, first)


def run_flow(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run the flow of one operation on this thread. `first` is a first call that was made already and failed."""
    if first is not None:
        _refuse_misused(plan, call, args, kwargs, first)
    steps = Flow(plan, call, args, kwargs, ThreadWaiter, history, first).steps()
    step = next(steps)
    while not isinstance(step, Finish):
        step = advance(steps, step)
    if isinstance(step.result, CoroutineType):
        refuse_coroutine(step.result)
    return step.result


async def arun_flow(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run the flow of one operation on the running event loop. `first` is a first call that failed already."""
    if first is not None:
        _refuse_misused(plan, call, args, kwargs, first)
    steps = Flow(plan, call, args, kwargs, TaskWaiter, history, first).steps()
    step = next(steps)
    while not isinstance(step, Finish):
        step = await aadvance(steps, step)
    return step.result


def advance(steps: Steps, step: Step) -> Step:
    """Perform a step on this thread, give the flow its value or exception, and return the next step."""
    try:
        value = _perform(step)
    except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
        return steps.throw(exc)
    return steps.send(value)


async def aadvance(steps: Steps, step: Step) -> Step:
    """Perform a step on the running event loop, give the flow its value or exception, and return the next step."""
    try:
        value = await aperform(step)
    except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
        return steps.throw(exc)
    return steps.send(value)


def _perform(step: Step) -> Any:
    """Perform one step on this thread, and return its value."""
    if isinstance(step, Wait):
        return CLOCK.sleep(step.seconds)
    if isinstance(step, Park):
        return CLOCK.park(step.waiter, step.seconds)
    if isinstance(step, Do):
        return step.call(*step.args, **step.kwargs)
    assert isinstance(step, Send)
    if step.scope is None:
        return _call(step)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return _call(step)
    finally:
        SCOPE.set(before)


async def aperform(step: Step) -> Any:
    """Perform one step on the running event loop, and return its value."""
    if isinstance(step, Wait):
        return await CLOCK.asleep(step.seconds)
    if isinstance(step, Park):
        return await CLOCK.apark(step.waiter, step.seconds)
    if isinstance(step, Do):
        return await _await_if_needed(step.call(*step.args, **step.kwargs))
    assert isinstance(step, Send)
    if step.scope is None:
        return await _acall(step)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return await _acall(step)
    finally:
        SCOPE.set(before)


def _call(step: Send) -> Any:
    try:
        return step.call(*step.args, **step.kwargs)
    except TypeError as error:
        refuse_misuse(step.call, step.args, step.kwargs, error)
        raise


async def _acall(step: Send) -> Any:
    """Make the call and await it. A call that `on_fix` returned may be a plain function; the original one is async."""
    if step.changed:
        return await _await_if_needed(step.call(*step.args, **step.kwargs))
    value = _call(step)
    refuse_plain(value)
    return await value


async def _await_if_needed(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


def failed_call(sent: float, error: Exception, generation: int = 0) -> Outcome:
    """Return the outcome of a first call that was made outside the flow and raised `error`."""
    return Outcome(sent=sent, ended=CLOCK.now(), error=error, fault=fault_of(error), generation=generation)


def _refuse_misused(
    plan: Plan, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], first: Outcome
) -> None:
    """Raise MisuseError if the first call failed because it cannot be made like this."""
    if not isinstance(first.error, TypeError):
        return
    try:
        if isinstance(first.error, MisuseError):
            raise first.error
        refuse_misuse(call, args, kwargs, first.error)
    except MisuseError:
        if plan.upstream is not None:
            plan.upstream.abandoned(CLOCK.now(), first.sent)
        raise
