"""
Recovery around something that answers piece by piece.

Pieces are handed on as they come, and a repeat begins the source anew. What has been handed on cannot be taken back, so
the source says from when on it may not be repeated.
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
from amends.recovery.steps import Send, Step
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
    The pieces of `source()`, begun again where that can help and cannot harm, within the policy's bounds.

    Args:
        source: begins one attempt.
        bound: whether what was handed on, or what the source knows, forbids another beginning.
        policy: as in `recover`, like the others.
        upstream: what is shared with the other callers of the same service.
        operation: whether a repeat is safe.
        verify: looks for what became of an attempt nobody knows about; returns the pieces that are still to come as
            an async generator, False if it had not happened, None if nobody can tell.
        refresh: renews credentials after they were refused.

    Raises:
        FaultError: as from `recover`.

    """
    plan = plan_for(policy=policy, upstream=upstream, operation=operation, verify=verify, refresh=refresh)
    flow = Flow(plan, source, (), {}, TaskWaiter)
    steps = flow.run()
    try:
        step: Step = next(steps)
        while True:
            value: Any = None
            try:
                if isinstance(step, Send):
                    async with aclosing(source()) as pieces:
                        while True:
                            try:
                                scope = step.scope
                                piece = await (anext(pieces) if scope is None else _next(pieces, scope))
                            except StopAsyncIteration:
                                break
                            yield piece
                else:
                    value = await aperform(step)
            except BaseException as exc:  # noqa: BLE001 - the flow cleans up and lets pass what is not its business
                if isinstance(exc, Exception) and bound():
                    _once_only(flow)
                step = steps.throw(exc)
            else:
                step = steps.send(value)
    except StopIteration as done:
        rest: AsyncGenerator[T] | None = done.value
    if rest is not None:
        async with aclosing(rest):
            async for piece in rest:
                yield piece


async def _next(pieces: AsyncIterator[T], scope: Scope) -> T:
    """The next piece. The scope is the attempt's, and not that of whoever gets the piece."""
    before = SCOPE.get()
    SCOPE.set(scope)
    try:
        return await anext(pieces)
    finally:
        SCOPE.set(before)


def _once_only(flow: Flow) -> None:
    """From here on there is no repeat, and nothing that would lead to one."""
    policy = replace(flow.plan.policy, attempts=1, rules={})
    flow.plan = replace(flow.plan, policy=policy, verify=None, refresh=None)
    flow.stepper = replace(flow.stepper, policy=policy)
