"""Doing what a flow asks for, on a thread or on an event loop: with the clock, the only code that waits."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any, NoReturn

from amends.recovery.clock import CLOCK
from amends.recovery.flow import Flow, Outcome
from amends.recovery.history import Attempt
from amends.recovery.plan import Plan
from amends.recovery.reading import fault_of
from amends.recovery.scope import SCOPE
from amends.recovery.steps import Do, Park, Send, Step, Wait
from amends.recovery.waiters import TaskWaiter, ThreadWaiter

__all__ = ["adrive", "aperform", "drive", "failed_first", "perform", "refuse_coroutine"]


def drive(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run a flow on this thread. `first` is a call that was made already."""
    steps = Flow(plan, call, args, kwargs, ThreadWaiter, history, None if first is None else first.sent).run(
        first
    )
    try:
        step = next(steps)
        while True:
            try:
                value = perform(step)
            except BaseException as exc:  # noqa: BLE001 - the flow cleans up and lets pass what is not its business
                step = steps.throw(exc)
            else:
                step = steps.send(value)
    except StopIteration as done:
        result = done.value
    if result.__class__ is CoroutineType:
        refuse_coroutine(result)
    return result


async def adrive(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run a flow on the running event loop. `first` is a call that was made already."""
    steps = Flow(plan, call, args, kwargs, TaskWaiter, history, None if first is None else first.sent).run(
        first
    )
    try:
        step = next(steps)
        while True:
            try:
                value = await aperform(step)
            except BaseException as exc:  # noqa: BLE001 - the flow cleans up and lets pass what is not its business
                step = steps.throw(exc)
            else:
                step = steps.send(value)
    except StopIteration as done:
        return done.value


def perform(step: Step) -> Any:
    """One step, on this thread."""
    if isinstance(step, Wait):
        return CLOCK.sleep(step.seconds)
    if isinstance(step, Park):
        return CLOCK.park(step.waiter, step.seconds)
    if isinstance(step, Do) or step.scope is None:
        return step.call(*step.args, **step.kwargs)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return step.call(*step.args, **step.kwargs)
    finally:
        SCOPE.set(before)


async def aperform(step: Step) -> Any:
    """One step, on the running event loop."""
    if isinstance(step, Wait):
        return await CLOCK.asleep(step.seconds)
    if isinstance(step, Park):
        return await CLOCK.apark(step.waiter, step.seconds)
    if isinstance(step, Do) or step.scope is None:
        return await _finished(step)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return await _finished(step)
    finally:
        SCOPE.set(before)


async def _finished(step: Do | Send) -> Any:
    """What a plain or async function returns in the end."""
    value = step.call(*step.args, **step.kwargs)
    return await value if hasattr(value, "__await__") else value


def failed_first(sent: float, error: Exception, generation: int = 0) -> Outcome:
    """A first call that was made outside the flow and failed."""
    return Outcome(sent=sent, ended=CLOCK.now(), error=error, fault=fault_of(error), generation=generation)


def refuse_coroutine(result: Any) -> NoReturn:
    """A coroutine that nobody awaits is no result."""
    result.close()
    raise TypeError("the call returned a coroutine; await it with arecover, or decorate the async function")
