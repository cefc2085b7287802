"""`recovering`: a decorator that makes every call of a function a recovered operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from amends.recovery.perform import arun, run
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
    Decorate a function, plain or async, so that every call of it is one operation with recovery.

    Takes the options of `recover` (policy, upstream, operation, fallback, verify, on_fix, refresh, setup, examine) once
    for all calls. `Operation(keyed=True)` makes a new key for each call.

        @recovering(upstream=search, operation=Operation(name="search", read_only=True))
        async def search(query: str) -> list[str]: ...

    Raises:
        TypeError: for a generator function: its body runs after the call has returned. Decorate the function that
            it calls, or use `attempts` inside it.

    """
    plan = plan_for(**options)
    return _wrap(function, plan) if function is not None else lambda decorated: _wrap(decorated, plan)


def _wrap(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    import inspect

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a generator runs after its call is over; decorate what it calls, or use attempts()")
    plan = _with_name(plan, function)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    ):

        @wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            return await arun(plan, function, args, kwargs)

        return acall

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(plan, function, args, kwargs)

    return call


def _with_name(plan: Plan, function: Callable[..., Any]) -> Plan:
    """Return the plan with the function's name as the operation's, if that has none. Events carry it."""
    from msgspec.structs import replace

    if plan.operation.name:
        return plan
    name = getattr(function, "__qualname__", type(function).__name__)
    return replace(plan, operation=replace(plan.operation, name=name))
