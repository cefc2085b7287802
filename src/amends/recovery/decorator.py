"""`recovering`: a decorator that makes every call of a function a recovered operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from msgspec.structs import replace

from amends.recovery.drivers import acall_first, arun_flow, call_first, run_flow
from amends.recovery.plan import Options, Plan, RecoveryOptions, plan_for
from amends.recovery.upstream import Upstream

__all__ = ["recovering"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def recovering(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def recovering(
    *, options: Options | None = None, **named: Unpack[RecoveryOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def recovering(
    function: Callable[..., object] | None = None,
    /,
    *,
    options: Options | None = None,
    **named: Unpack[RecoveryOptions],
) -> Any:
    """
    Decorate a function, plain or async, so that every call of it is one operation with recovery.

    Takes the options of `recover` (on, timeout, read_only, raises, policy, operation, fallback, …) once for all calls,
    by name or as `options=Options(…)`.
    `Operation(keyed=True)` makes a new key for each call. A plain function that returns an awaitable is recovered when
    the awaitable is awaited; the decorated function returns a coroutine then.

    Without `upstream`, the function gets an Upstream of its own, which all its calls share: they obey each other's
    hints, and repeats are a bounded share of the calls. Give the same Upstream to functions that call the same service,
    or `upstream=None` for none. `decorated.upstream` is the one in use.

        @recovering(read_only=True)
        async def search(query: str) -> list[str]: ...

    Raises:
        TypeError: for a generator function: its body runs after the call has returned. Read it with `recover_stream`,
            decorate the function that it calls, or use `attempts` inside it.

    """
    plan = plan_for(options, **named)
    own_upstream = "upstream" not in named and plan.upstream is None and plan.failover is None

    def wrap(decorated: Callable[..., object]) -> Callable[..., Any]:
        return _wrap(decorated, plan, own_upstream=own_upstream)

    return wrap if function is None else wrap(function)


def _wrap(function: Callable[..., object], plan: Plan, *, own_upstream: bool) -> Callable[..., object]:
    import inspect

    if isinstance(function, classmethod | staticmethod):
        raise TypeError(f"write @{type(function).__name__} above @recovering, not below it")
    if not callable(function):
        raise TypeError(f"recovering decorates a function, not {type(function).__name__}")
    called = getattr(function, "__call__", None)  # noqa: B004 - an object with a generator or async __call__
    if any(
        kind(each)
        for kind in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        for each in (function, called)
    ):
        raise TypeError(
            "a generator runs after its call is over; read it with recover_stream or arecover_stream, decorate what it "
            "calls, or use attempts()"
        )
    plan = _with_name(plan, function)
    if own_upstream:
        upstream = Upstream(plan.operation.name)
        plan = replace(plan, service=upstream, upstream=upstream, refresh=plan.refresh or upstream.refresh)
    wrapper: Any
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):

        @wraps(function)
        async def acall(*args: object, **kwargs: object) -> Any:
            upstream, first = plan.upstream, None
            if plan.direct and (upstream is None or upstream.open):
                result, first = await acall_first(upstream, function, args, kwargs)
                if first is None:
                    return result
            return await arun_flow(plan, function, args, kwargs, None, first)

        wrapper = acall
    else:

        @wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            upstream, first = plan.upstream, None
            if plan.direct and (upstream is None or upstream.open):
                result, first = call_first(upstream, function, args, kwargs, awaitables=True)
                if first is None:
                    return result
                if first.fault is None:
                    return _await_first(plan, function, args, kwargs, result)
            return run_flow(plan, function, args, kwargs, None, first, awaitables=True)

        wrapper = call
    wrapper.upstream = plan.failover or plan.upstream
    return wrapper  # type: ignore[no-any-return]


async def _await_first(
    plan: Plan,
    function: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    awaitable: Awaitable[object],
) -> object:
    """Await what the first call of a plain function returned, and run the flow if it fails."""
    result, first = await acall_first(plan.upstream, lambda: awaitable, (), {})
    if first is None:
        return result
    return await arun_flow(plan, function, args, kwargs, None, first)


def _with_name(plan: Plan, function: Callable[..., object]) -> Plan:
    """Return the plan with the function's name as the operation's, if that has none. Events carry it."""
    if plan.operation.name:
        return plan
    name = getattr(function, "__qualname__", type(function).__name__)
    return replace(plan, operation=replace(plan.operation, name=name))
