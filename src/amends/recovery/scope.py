"""
What a call may know about the recovery around it: which operation it serves, and when its time is over.

Set only where there is something to say (a key, a promise, a deadline), so that a plain call never pays for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import CoroutineType
from typing import Any, TypeVar

import msgspec

from amends.core.operation import Operation
from amends.recovery.clock import CLOCK
from amends.recovery.misuse import refuse_plain

__all__ = ["SCOPE", "Scope", "ainside", "current_operation", "inside", "time_left"]

T = TypeVar("T")


class Scope(msgspec.Struct, frozen=True):
    """The innermost recovery that a call runs in."""

    operation: Operation
    until: float | None = None
    """When no further call may start, on the recovery clock."""
    upstreams: tuple[Any, ...] = ()
    """Those that let this call out: what it does to them in turn is part of it, and waits for nobody."""


SCOPE: ContextVar[Scope | None] = ContextVar("amends_recovery_scope", default=None)


def current_operation() -> Operation | None:
    """The operation this call serves, its key included, or None. Transports send the key they find here."""
    scope = SCOPE.get()
    return None if scope is None else scope.operation


def time_left() -> float | None:
    """Seconds until the deadline of the recovery around this call (0 when it is over); None without one."""
    scope = SCOPE.get()
    if scope is None or scope.until is None:
        return None
    return max(0.0, scope.until - CLOCK.now())


def inside(operation: Operation, call: Callable[..., T]) -> Callable[..., T]:
    """`call`, told which operation it serves. The time and the upstreams stay those around it."""

    def told(*args: Any, **kwargs: Any) -> T:
        around = SCOPE.get()
        SCOPE.set(_within(around, operation))
        try:
            return call(*args, **kwargs)
        finally:
            SCOPE.set(around)

    return told


def ainside(operation: Operation, call: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """The same for a call that is awaited."""

    async def told(*args: Any, **kwargs: Any) -> T:
        around = SCOPE.get()
        SCOPE.set(_within(around, operation))
        try:
            promise: Any = call(*args, **kwargs)
            if promise.__class__ is not CoroutineType:
                refuse_plain(promise)
            return await promise  # type: ignore[no-any-return]
        finally:
            SCOPE.set(around)

    return told


def _within(around: Scope | None, operation: Operation) -> Scope:
    return Scope(operation) if around is None else Scope(operation, around.until, around.upstreams)
