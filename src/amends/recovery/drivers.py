"""
Calling something with recovery, on a thread or on an event loop.

A plain call that succeeds costs a clock reading and a `try`. Everything else begins when it fails. That is why the
two functions say the same twice, and why `plan_for`'s arguments are written out: editors show them, and a call that
succeeds packs and unpacks nothing. What is of another class than it should be takes the long way, where `plan_for`
says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import CoroutineType
from typing import Any, TypeVar

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.recovery.call_errors import refuse_coroutine, refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.history import Attempt
from amends.recovery.perform import adrive, drive, failed_first
from amends.recovery.plan import Hook, plan_for
from amends.recovery.upstream import Upstream

__all__ = ["arecover", "recover"]

T = TypeVar("T")


def recover(
    call: Callable[..., T],
    /,
    *args: Any,
    policy: Policy | None = DEFAULT,
    upstream: Upstream | None = None,
    operation: Operation | None = None,
    fallback: Callable[..., T] | Iterable[Callable[..., T]] | None = None,
    verify: Hook | None = None,
    on_fix: Hook | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    examine: Callable[[T], Fault | None] | bool | None = None,
    history: list[Attempt] | None = None,
    **kwargs: Any,
) -> T:
    """
    `call(*args, **kwargs)`, repeated where that can help and cannot harm, within the policy's bounds.

    Args:
        call: what to call. Arguments that clash with the names below go through `functools.partial`.
        args: its arguments.
        policy: how far to go.
        upstream: what is shared with the other callers of the same service.
        operation: whether a repeat is safe. Says nothing: only what surely did not happen is repeated.
        fallback: another way, or several in order, taken with the same arguments where repeating cannot help.
        verify: looks whether a call that may have had its effect had it. False: it had not, so it is tried again;
            None: nobody can tell; anything else: it had, and this is the result.
        on_fix: gets a fault that asks for another request, with its `field` and `suggestions`; returns the call to
            make instead (no arguments), or None.
        refresh: renews credentials after they were refused; once per operation, once for everybody with an upstream.
            False, or an exception: it did not work.
        setup: sets up what is missing (MCP_NOT_CONNECTED); the same.
        examine: looks at what the call returned: a Fault, or None if all is well. True: read it with
            `amends.extract`, for calls that return failed responses instead of raising.
        history: a list that gets every attempt, also when the operation succeeds.
        kwargs: the call's keyword arguments.

    Raises:
        FaultError: of the failure's own class, with `.fault`, `.decision` and `.history`, the exception that was
            raised last as its cause. KeyboardInterrupt, cancellation and their like pass through at once.
        TypeError: for what cannot be called like this, an async function among it; nothing is repeated then.

    """
    first = None
    if (
        examine is None
        and history is None
        and (policy is DEFAULT or policy is None or (policy.__class__ is Policy and policy.deadline is None))
        and (
            operation is None
            or (operation.__class__ is Operation and not (operation.keyed or operation.key is not None))
        )
    ):
        if upstream is None:
            sent = CLOCK.now()
            try:
                result = call(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
                first = failed_first(sent, exc)
            else:
                if result.__class__ is CoroutineType:
                    refuse_coroutine(result)
                return result
        elif upstream.__class__ is Upstream and upstream.open:
            sent, generation = CLOCK.now(), upstream.generation
            try:
                result = call(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001
                first = failed_first(sent, exc, generation)
            except BaseException:
                upstream.abandoned(CLOCK.now(), sent)
                raise
            else:
                upstream.succeeded(CLOCK.now(), sent, CLOCK.draw)
                if result.__class__ is CoroutineType:
                    refuse_coroutine(result)
                return result
    plan = plan_for(
        policy=policy,
        upstream=upstream,
        operation=operation,
        fallback=fallback,
        verify=verify,
        on_fix=on_fix,
        refresh=refresh,
        setup=setup,
        examine=examine,
    )
    return drive(plan, call, args, kwargs, history, first)  # type: ignore[no-any-return]


async def arecover(
    call: Callable[..., Awaitable[T]],
    /,
    *args: Any,
    policy: Policy | None = DEFAULT,
    upstream: Upstream | None = None,
    operation: Operation | None = None,
    fallback: Callable[..., Any] | Iterable[Callable[..., Any]] | None = None,
    verify: Hook | None = None,
    on_fix: Hook | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    examine: Callable[[T], Fault | None] | bool | None = None,
    history: list[Attempt] | None = None,
    **kwargs: Any,
) -> T:
    """
    `await call(*args, **kwargs)`, with recovery. The same as `recover`; hooks may be plain or async functions.

    Cancelling the task ends it at once, whether it is calling, waiting or parked.
    """
    first = None
    if (
        examine is None
        and history is None
        and (policy is DEFAULT or policy is None or (policy.__class__ is Policy and policy.deadline is None))
        and (
            operation is None
            or (operation.__class__ is Operation and not (operation.keyed or operation.key is not None))
        )
    ):
        if upstream is None:
            sent = CLOCK.now()
            try:
                promise = call(*args, **kwargs)
                if promise.__class__ is not CoroutineType:
                    refuse_plain(promise)
                return await promise
            except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
                first = failed_first(sent, exc)
        elif upstream.__class__ is Upstream and upstream.open:
            sent, generation = CLOCK.now(), upstream.generation
            try:
                promise = call(*args, **kwargs)
                if promise.__class__ is not CoroutineType:
                    refuse_plain(promise)
                result = await promise
            except Exception as exc:  # noqa: BLE001
                first = failed_first(sent, exc, generation)
            except BaseException:
                upstream.abandoned(CLOCK.now(), sent)
                raise
            else:
                upstream.succeeded(CLOCK.now(), sent, CLOCK.draw)
                return result
    plan = plan_for(
        policy=policy,
        upstream=upstream,
        operation=operation,
        fallback=fallback,
        verify=verify,
        on_fix=on_fix,
        refresh=refresh,
        setup=setup,
        examine=examine,
    )
    return await adrive(plan, call, args, kwargs, history, first)  # type: ignore[no-any-return]
