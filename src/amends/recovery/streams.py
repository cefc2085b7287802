"""
`arecover_stream`: recovery around an async generator.

The items are yielded as they arrive, and a repeat starts the source again. Items that were yielded cannot be taken
back, so the source decides from when on it must not be started again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec.structs import replace

from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.recovery.operation_flow import Flow
from amends.recovery.perform import aperform
from amends.recovery.plan import Hook, plan_for
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Finish, Send
from amends.recovery.upstream import Upstream
from amends.recovery.waiter import TaskWaiter

__all__ = ["arecover_stream"]

T = TypeVar("T")


async def arecover_stream(
    source: Callable[[], AsyncGenerator[T]],
    *,
    bound: Callable[[], bool],
    policy: Policy | None = None,
    upstream: Upstream | None = None,
    operation: Operation | None = None,
    verify: Hook | None = None,
    refresh: Hook | None = None,
) -> AsyncGenerator[T]:
    """
    Yield the items of `source()`, and start it again where that can help and is safe, within the policy's bounds.

    Args:
        source: starts one attempt.
        bound: returns whether the source must not be started again, because of the items that were yielded or for a
            reason of its own. It is asked after each failure.
        policy: how many calls and how much waiting are allowed.
        upstream: the state that all callers of the same service share.
        operation: whether a repeat is safe.
        verify: finds out what became of an attempt that may have had its effect. It returns an async generator of the
            remaining items, False if there was no effect, or None if it cannot find out.
        refresh: renews credentials that were refused.

    Raises:
        FaultError: when recovery gives up, as from `recover`.

    """
    plan = plan_for(policy=policy, upstream=upstream, operation=operation, verify=verify, refresh=refresh)
    flow = Flow(plan, source, (), {}, TaskWaiter)
    steps = flow.steps()
    step = next(steps)
    while not isinstance(step, Finish):
        value: Any = None
        try:
            if isinstance(step, Send):
                async with aclosing(source()) as items:
                    while True:
                        try:
                            item = await _next_item(items, step.scope)
                        except StopAsyncIteration:
                            break
                        yield item
            else:
                value = await aperform(step)
        except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
            if isinstance(exc, Exception) and bound():
                _forbid_repeats(flow)
            step = steps.throw(exc)
        else:
            step = steps.send(value)
    rest: AsyncGenerator[T] | None = step.result
    if rest is not None:
        async with aclosing(rest):
            async for item in rest:
                yield item


async def _next_item(items: AsyncIterator[T], scope: Scope | None) -> T:
    """Return the next item. The source runs in the attempt's scope, the code that gets the item does not."""
    if scope is None:
        return await anext(items)
    before = SCOPE.get()
    SCOPE.set(scope)
    try:
        return await anext(items)
    finally:
        SCOPE.set(before)


def _forbid_repeats(flow: Flow) -> None:
    """Change the flow so that it makes no further attempt and runs no hook that could lead to one."""
    policy = replace(flow.plan.policy, attempts=1, rules={})
    flow.plan = replace(flow.plan, policy=policy, verify=None, refresh=None)
    flow.stepper = replace(flow.stepper, policy=policy)
