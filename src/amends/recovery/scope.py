"""
What a call may know about the recovery around it: which operation it serves, and when its time is over.

Set only where there is something to say (a key, a deadline), so that a plain successful call never pays for it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import msgspec

from amends.core.operation import Operation
from amends.recovery.clock import CLOCK

__all__ = ["SCOPE", "Scope", "current_operation", "time_left"]


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
