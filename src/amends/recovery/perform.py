"""
Runs an operation on a thread or on an event loop.

`run_flow` and `arun_flow` run the flow of `operation_flow`: `perform` and `aperform` do what each step of it asks for.
Together with the clock this is the only code that waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any

from msgspec.structs import replace

from amends.recovery.async_library import new_task_waiter, within
from amends.recovery.call_errors import LOOP_CHECK, MisuseError, refuse_coroutine, refuse_misuse, refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.events import log_late_call
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow, Outcome
from amends.recovery.plan import Plan
from amends.recovery.scope import SCOPE
from amends.recovery.steps import Do, Finish, Park, Send, Step, Steps, Wait
from amends.recovery.waiter import ThreadWaiter

__all__ = [
    "aadvance",
    "advance",
    "aperform",
    "arun_flow",
    "perform",
    "run_flow",
]


def run_flow(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
    *,
    awaitables: bool = False,
) -> Any:
    """
    Run the flow of one operation on this thread. `first` is a first call that was made already and failed.

    With `awaitables`, the flow goes on in a coroutine as soon as a call has returned an awaitable.
    """
    if first is not None:
        _refuse_misused(plan, call, args, kwargs, first)
    flow = Flow(plan, call, args, kwargs, ThreadWaiter, history, first)
    steps = flow.steps()
    step = next(steps)
    while not isinstance(step, Finish):
        if not awaitables or not isinstance(step, Send):
            LOOP_CHECK.check()
            step = advance(steps, step)
            continue
        try:
            value = perform(step)
        except BaseException as exc:  # noqa: BLE001 - as in `advance`
            step = steps.throw(exc)
            continue
        if hasattr(value, "__await__"):
            flow.new_waiter = new_task_waiter
            return _await_rest(steps, step, value)
        step = steps.send(value)
    if isinstance(step.result, CoroutineType):
        refuse_coroutine(step.result)
    return step.result


async def _await_rest(steps: Steps, step: Step, awaitable: Awaitable[Any]) -> Any:
    """Go on with a flow whose call returned an awaitable."""
    assert isinstance(step, Send)
    step = await aadvance(steps, replace(step, call=lambda: awaitable, args=(), kwargs={}))
    while not isinstance(step, Finish):
        step = await aadvance(steps, step)
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
    steps = Flow(plan, call, args, kwargs, new_task_waiter, history, first).steps()
    step = next(steps)
    while not isinstance(step, Finish):
        step = await aadvance(steps, step)
    return step.result


def advance(steps: Steps, step: Step) -> Step:
    """Perform a step on this thread, give the flow its value or exception, and return the next step."""
    try:
        value = perform(step)
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


def perform(step: Step) -> Any:
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
    before, sent = SCOPE.get(), CLOCK.now()
    SCOPE.set(step.scope)
    try:
        return _call(step)
    finally:
        SCOPE.set(before)
        if step.timeout is not None and CLOCK.now() - sent > step.timeout:
            log_late_call(step.call, step.timeout)


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
        value = step.call(*step.args, **step.kwargs)
        if not hasattr(value, "__await__"):
            return value
    else:
        value = _call(step)
        refuse_plain(value)
    return await value if step.timeout is None else await within(step.timeout, value)


async def _await_if_needed(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


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
