"""A function that recovers whenever it is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

from amends.recovery.call_errors import refuse_coroutine
from amends.recovery.clock import CLOCK
from amends.recovery.perform import adrive, drive, failed_first
from amends.recovery.plan import Options, Plan, plan_for

__all__ = ["recovering"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def recovering(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def recovering(**options: Unpack[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def recovering(function: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
    """
    Decorate a function, plain or async, so that every call of it is one recovered operation.

    Takes what `recover` takes (policy, upstream, operation, fallback, verify, on_fix, refresh, setup, examine), once
    for all calls. `Operation(keyed=True)` makes a fresh key for each.

        @recovering(upstream=search, operation=Operation(name="search", read_only=True))
        async def search(query: str) -> list[str]: ...

    Raises:
        TypeError: for a generator function. Its body runs while somebody reads from it, when the call is long over:
            decorate what it calls, or loop over `attempts`.

    """
    plan = plan_for(**options)
    if plan.operation.name == "" and function is not None:
        plan = _named(plan, function)
    if function is None:
        return lambda decorated: _wrap(decorated, _named(plan, decorated))
    return _wrap(function, plan)


def _named(plan: Plan, function: Callable[..., Any]) -> Plan:
    """Telemetry knows the operation by the function's name where it has no other."""
    from msgspec.structs import replace

    if plan.operation.name:
        return plan
    name = getattr(function, "__qualname__", type(function).__name__)
    return replace(plan, operation=replace(plan.operation, name=name))


def _wrap(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    import inspect

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a generator runs after its call is over; decorate what it calls, or use attempts()")
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is async
    )
    arranged = (
        plan.examine is not None
        or plan.policy.deadline is not None
        or plan.operation.keyed
        or plan.operation.key is not None
    )
    if arranged:
        return wraps(function)((_arranged_async if is_async else _arranged)(function, plan))
    if plan.upstream is not None:
        made = _shared_async if is_async else _shared
    else:
        made = _plain_async if is_async else _plain
    return wraps(function)(made(function, plan))


# Six kinds of calls, so that each pays only for what was asked for.


def _plain(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    clock = CLOCK

    def call(*args: Any, **kwargs: Any) -> Any:
        sent = clock.now()
        try:
            result = function(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
            first = failed_first(sent, exc)
        else:
            if result.__class__ is CoroutineType:
                refuse_coroutine(result)
            return result
        return drive(plan, function, args, kwargs, None, first)

    return call


def _plain_async(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    clock = CLOCK

    async def call(*args: Any, **kwargs: Any) -> Any:
        sent = clock.now()
        try:
            return await function(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001
            first = failed_first(sent, exc)
        return await adrive(plan, function, args, kwargs, None, first)

    return call


def _shared(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    clock, upstream = CLOCK, cast("Any", plan.upstream)

    def call(*args: Any, **kwargs: Any) -> Any:
        first = None
        if upstream.open:
            sent, generation = clock.now(), upstream.generation
            try:
                result = function(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001
                first = failed_first(sent, exc, generation)
            except BaseException:
                upstream.abandoned(clock.now(), sent)
                raise
            else:
                upstream.succeeded(clock.now(), sent, clock.draw)
                if result.__class__ is CoroutineType:
                    refuse_coroutine(result)
                return result
        return drive(plan, function, args, kwargs, None, first)

    return call


def _shared_async(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    clock, upstream = CLOCK, cast("Any", plan.upstream)

    async def call(*args: Any, **kwargs: Any) -> Any:
        first = None
        if upstream.open:
            sent, generation = clock.now(), upstream.generation
            try:
                result = await function(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001
                first = failed_first(sent, exc, generation)
            except BaseException:
                upstream.abandoned(clock.now(), sent)
                raise
            else:
                upstream.succeeded(clock.now(), sent, clock.draw)
                return result
        return await adrive(plan, function, args, kwargs, None, first)

    return call


def _arranged(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return drive(plan, function, args, kwargs)

    return call


def _arranged_async(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await adrive(plan, function, args, kwargs)

    return call
