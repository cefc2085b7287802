"""Doing what a flow asks for, on a thread or on an event loop: with the clock, the only code that waits."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from amends.recovery.call_errors import MisuseError, refuse_coroutine, refuse_misuse, refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow, Outcome
from amends.recovery.plan import Plan
from amends.recovery.scope import SCOPE
from amends.recovery.steps import Do, Park, Send, Step, Wait
from amends.recovery.to_fault import fault_of
from amends.recovery.waiter import TaskWaiter, ThreadWaiter

__all__ = ["adrive", "aperform", "drive", "failed_first", "perform"]


def drive(
    plan: Plan,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run a flow on this thread. `first` is a call that was made already."""
    if first is not None and isinstance(first.error, TypeError):
        _refuse_first(plan, call, args, kwargs, first)
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
    if first is not None and isinstance(first.error, TypeError):
        _refuse_first(plan, call, args, kwargs, first)
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
    if isinstance(step, Do):
        return step.call(*step.args, **step.kwargs)
    if step.scope is None:
        return _made(step)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return _made(step)
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


def _made(step: Send) -> Any:
    try:
        return step.call(*step.args, **step.kwargs)
    except TypeError as error:
        refuse_misuse(step.call, step.args, step.kwargs, error)
        raise


async def _finished(step: Do | Send) -> Any:
    """What a function returns in the end. Those of hooks may be plain; the call itself is async."""
    if isinstance(step, Do) or step.changed:
        value = step.call(*step.args, **step.kwargs)
        return await value if hasattr(value, "__await__") else value
    value = _made(step)
    if value.__class__ is not CoroutineType:
        refuse_plain(value)
    return await value


def failed_first(sent: float, error: Exception, generation: int = 0) -> Outcome:
    """A first call that was made outside the flow and failed."""
    return Outcome(sent=sent, ended=CLOCK.now(), error=error, fault=fault_of(error), generation=generation)


def _refuse_first(
    plan: Plan, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], first: Outcome
) -> None:
    """Raise a first call's TypeError as it is, where it says that the call cannot have been meant."""
    try:
        if isinstance(first.error, MisuseError):
            raise first.error
        refuse_misuse(call, args, kwargs, first.error)
    except MisuseError:
        if plan.upstream is not None:
            plan.upstream.abandoned(CLOCK.now(), first.sent)
        raise
