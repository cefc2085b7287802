"""
The scope of a call: the operation it belongs to and its deadline, for the code that runs inside the call.

It is a context variable, set only if there is a key, a deadline or an upstream. A first call without these runs
without a scope of its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import msgspec

from amends.core.operation import Operation
from amends.recovery.clock import CLOCK

__all__ = ["SCOPE", "Scope", "current_operation", "time_left"]


class Scope(msgspec.Struct, frozen=True):
    """The innermost operation that a call runs in."""

    operation: Operation
    until: float | None = None
    """When no further call may start, on the recovery clock."""
    upstreams: tuple[Any, ...] = ()
    """The upstreams that have let this call out. Calls inside it do not wait for them again."""


SCOPE: ContextVar[Scope | None] = ContextVar("amends_recovery_scope", default=None)


def current_operation() -> Operation | None:
    """Return the operation this code runs in, with its key, or None. Transports send that key."""
    scope = SCOPE.get()
    return None if scope is None else scope.operation


def time_left() -> float | None:
    """Return the seconds until the deadline of the operation this code runs in, at least 0; None without one."""
    scope = SCOPE.get()
    if scope is None or scope.until is None:
        return None
    return max(0.0, scope.until - CLOCK.now())
