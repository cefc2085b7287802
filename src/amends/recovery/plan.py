"""What a caller asked for: the policy, the shared upstream, and the ways out beside repeating."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypedDict

import msgspec
from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.validate import check_kind
from amends.recovery.upstream import Upstream

__all__ = ["Hook", "Options", "Plan", "hearing", "plan_for"]

Hook = Callable[..., Any]
"""Called with the fault if it needs an argument, else with nothing. Async drivers await what it returns."""

_UNKNOWN = Operation()


class Options(TypedDict, total=False):
    """What `recover` takes beside the call, by name: see there."""

    policy: Policy | None
    upstream: Upstream | None
    operation: Operation | None
    fallback: Callable[..., Any] | Iterable[Callable[..., Any]] | None
    verify: Hook | None
    on_fix: Hook | None
    refresh: Hook | None
    setup: Hook | None
    examine: Callable[[Any], Fault | None] | bool | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `recover` was told, normalised once. The same for every call of a decorated function."""

    policy: Policy = DEFAULT
    upstream: Upstream | None = None
    operation: Operation = _UNKNOWN
    fallbacks: tuple[Callable[..., Any], ...] = ()
    verify: Hook | None = None
    on_fix: Hook | None = None
    refresh: Hook | None = None
    setup: Hook | None = None
    examine: Callable[[Any], Fault | None] | None = None

    def started(self) -> Operation:
        """The operation of one call of this plan: with a key of its own where it asks for one."""
        operation = self.operation
        if operation.keyed and operation.key is None:
            from uuid import uuid4

            return replace(operation, key=str(uuid4()))
        return operation


def plan_for(
    *,
    policy: Policy | None = None,
    upstream: Upstream | None = None,
    operation: Operation | None = None,
    fallback: Callable[..., Any] | Iterable[Callable[..., Any]] | None = None,
    verify: Hook | None = None,
    on_fix: Hook | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    examine: Callable[[Any], Fault | None] | bool | None = None,
) -> Plan:
    """
    The keyword arguments of every driver as a Plan.

    Raises:
        TypeError: for what is of another kind than it has to be; the message shows how it is written.

    """
    policy = DEFAULT if policy is None else policy
    _check(policy, upstream, operation)
    fallbacks = _ways(fallback)
    if not isinstance(examine, bool):
        _check_functions(examine=examine)
    _check_functions(verify=verify, on_fix=on_fix, refresh=refresh, setup=setup)
    if fallbacks and not policy.fallback:
        policy = replace(policy, fallback=True)
    if examine is True:
        from amends.recovery.to_fault import failed_answer

        examine = failed_answer
    return Plan(
        policy=policy,
        upstream=upstream,
        operation=_UNKNOWN if operation is None else operation,
        fallbacks=fallbacks,
        verify=verify,
        on_fix=on_fix,
        refresh=refresh or (upstream.refresh if upstream is not None else None),
        setup=setup,
        examine=examine or None,
    )


def _check(policy: Any, upstream: Any, operation: Any) -> None:
    check_kind("policy", policy, Policy, "Policy(attempts=3)")
    if upstream is not None:
        check_kind("upstream", upstream, Upstream, 'Upstream("payments")')
    if operation is not None:
        check_kind("operation", operation, Operation, 'Operation(name="search", read_only=True)')


def _check_functions(**hooks: Any) -> None:
    for name, hook in hooks.items():
        if hook is not None and not callable(hook):
            raise TypeError(f"{name} is a function, not {type(hook).__name__}")


def _ways(fallback: Any) -> tuple[Callable[..., Any], ...]:
    if fallback is None or callable(fallback):
        return () if fallback is None else (fallback,)
    if not isinstance(fallback, Iterable):
        raise TypeError(f"fallback is a function, or several in a list, not {type(fallback).__name__}")
    ways = tuple(fallback)
    for way in ways:
        _check_functions(fallback=way)
    return ways


def hearing(hook: Hook, fault: Fault) -> tuple[Any, ...]:
    """The arguments a hook gets: the fault if it needs one, else nothing: an optional `force` is not for a fault."""
    import inspect

    try:
        parameters = inspect.signature(hook).parameters.values()
    except (TypeError, ValueError):
        return ()  # a builtin that does not say
    needs = any(
        each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} and each.default is each.empty
        for each in parameters
    )
    return (fault,) if needs else ()
