"""`recover` and `arecover`: call a function with recovery, on a thread or on an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import CoroutineType
from typing import Any, TypeVar

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.recovery.call_errors import refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.history import Attempt
from amends.recovery.perform import arun_flow, failed_call, run
from amends.recovery.plan import UNKNOWN, Hook, Plan, first_call_is_plain, plan_for
from amends.recovery.process_quota import process_quota
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
    Call `call(*args, **kwargs)`, and call it again where that can help and is safe, within the policy's bounds.

    Args:
        call: the function to call. If it takes keyword arguments with the names below, wrap it in `functools.partial`.
        args: its arguments.
        policy: how many calls and how much waiting are allowed.
        upstream: the state that all callers of the same service share.
        operation: whether a repeat is safe. Without it, a call is repeated only if it surely had no effect.
        fallback: one function or several, called in order with the same arguments where repeating cannot help.
        verify: finds out whether a call that may have had its effect had it. It returns False if it had not (the call is
            then repeated), None if it cannot find out, and otherwise the result of the operation.
        on_fix: gets a fault that asks for a changed request, with its `field` and `suggestions`. It returns the
            function to call instead, without arguments, or None.
        refresh: renews credentials that were refused; once per operation, and with an upstream once for all callers.
            It failed if it returns False or raises.
        setup: sets up what is missing (MCP_NOT_CONNECTED), under the same rules.
        examine: looks at what the call returned, and returns a Fault or None. True reads it with `amends.extract`,
            for calls that return failed responses instead of raising.
        history: a list that gets every attempt, also when the operation succeeds.
        kwargs: the keyword arguments of the call.

    Raises:
        FaultError: of the failure's own class, with `.fault`, `.decision` and `.history`; its cause is the last
            exception. KeyboardInterrupt, cancellation and other exceptions that are no Exception are not handled.
        TypeError: if `call` cannot be called like this, for example because it is async. Nothing is repeated then.

    """
    policy = DEFAULT if policy is None else policy
    operation = UNKNOWN if operation is None else operation
    plan = Plan(policy, upstream, operation, fallback, verify, on_fix, refresh, setup, examine)
    return run(plan, call, args, kwargs, history)  # type: ignore[no-any-return]


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
    Await `call(*args, **kwargs)` with recovery. The same as `recover`; hooks may be plain or async functions.

    Cancelling the task ends the operation at once, whether it is calling or waiting.
    """
    first = None
    if history is None and first_call_is_plain(policy, upstream, operation, examine):
        # The same as in `arun`, written out. Through `arun`, with a Plan and one more coroutine, a successful call costs
        # 0.75 of google-api-core's retry instead of 0.53 (target 0.6), with an Upstream 1.42 instead of 1.16 (target
        # 1.3): bench/overhead.py, CPython 3.11.
        generation = 0 if upstream is None else upstream.generation
        sent = CLOCK.now()
        try:
            coroutine = call(*args, **kwargs)
            if not isinstance(coroutine, CoroutineType):
                refuse_plain(coroutine)
            result = await coroutine
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
    return await arun_flow(plan, call, args, kwargs, history, first)  # type: ignore[no-any-return]
