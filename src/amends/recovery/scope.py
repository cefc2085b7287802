"""
The scope of a call: the operation it belongs to and its deadline, for the code that runs inside the call.

It is a context variable, set only if there is a key, a deadline or an upstream. A first call without these runs
without a scope of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from amends.core.operation import Operation
from amends.recovery.clock import CLOCK
from amends.recovery.stepper import Stepper

__all__ = [
    "SCOPE",
    "Scope",
    "ToolCall",
    "current_operation",
    "current_tool_call",
    "scope_of",
    "time_left",
    "tool_call",
]


class Scope(msgspec.Struct, frozen=True):
    """The innermost operation that a call runs in."""

    operation: Operation
    until: float | None = None
    """When no further call may start, on the recovery clock."""
    upstreams: tuple[object, ...] = ()
    """The upstreams that have let this call out. Calls inside it do not wait for them again."""
    target: object = None
    """The target of the Failover that this call is for."""


SCOPE: ContextVar[Scope | None] = ContextVar("amends_recovery_scope", default=None)


def current_operation() -> Operation | None:
    """
    Return the operation this code runs in, with its key, or None. Transports send that key.

        @recovering(operation=Operation(name="pay", keyed=True))
        def pay(order):
            shop.pay(order, key=current_operation().key)  # the same key at every attempt
    """
    scope = SCOPE.get()
    return None if scope is None else scope.operation


class ToolCall:
    """The tool call of an agent that this code is a part of."""

    __slots__ = ("ended", "started")

    def __init__(self, *, long: bool) -> None:
        self.started = None if long else CLOCK.now()
        """When it began; None if it may take long, so that each recovery inside has a bound of its own."""
        self.ended = False
        """A task that the tool started may outlive it, and has a copy of its context."""


_TOOL_CALL: ContextVar[ToolCall | None] = ContextVar("amends_tool_call", default=None)


@contextmanager
def tool_call(*, long: bool = False) -> Iterator[ToolCall]:
    """
    Bound the recoveries inside as `amends.recovery.TOOL` says, where the user gave no policy: an agent's host waits.

    All of them together end in time; with `long` (an agent's task), each of them.

    >>> with tool_call():
    ...     current_tool_call() is not None
    True
    """
    around = current_tool_call()
    if around is not None:
        yield around  # its host waits, too
        return
    call = ToolCall(long=long)
    token = _TOOL_CALL.set(call)
    try:
        yield call
    finally:
        call.ended = True
        _TOOL_CALL.reset(token)


def current_tool_call() -> ToolCall | None:
    """Return the outermost tool call that this code is a part of, or None."""
    call = _TOOL_CALL.get()
    return None if call is None or call.ended else call


def time_left() -> float | None:
    """
    Return the seconds until the deadline of the operation this code runs in, at least 0; None without one.

        def fetch():
            return socket.create_connection(address, timeout=time_left())

        recover(fetch, read_only=True, policy=Policy(deadline=30))
    """
    scope = SCOPE.get()
    if scope is None or scope.until is None:
        return None
    return max(0.0, scope.until - CLOCK.now())


_UNDECLARED = Operation()


def scope_of(
    stepper: Stepper, upstream: object = None, call_ends: float | None = None, target: object = None
) -> Scope | None:
    """
    Return the scope in which a call of this operation runs, or None if it has nothing to add.

    `call_ends` is when the time of this one call is over; `target`: the target of a Failover that it is for.
    """
    state, deadline = stepper.state, stepper.policy.deadline
    until = state.until
    if deadline is not None and state.started is not None:
        own = state.started + deadline
        until = own if until is None else min(until, own)
    if call_ends is not None:
        until = call_ends if until is None else min(until, call_ends)
    if stepper.operation.key is None and until == state.until and upstream is None:
        return None
    around = SCOPE.get()
    upstreams = () if around is None else around.upstreams
    # An operation without any declaration is part of the one around it, so its calls get that one's key.
    operation = (
        around.operation if around is not None and stepper.operation == _UNDECLARED else stepper.operation
    )
    return Scope(operation, until, upstreams if upstream is None else (*upstreams, upstream), target)
