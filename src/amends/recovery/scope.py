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
from amends.recovery.incoming import left
from amends.recovery.stepper import Stepper

__all__ = [
    "SCOPE",
    "Scope",
    "ToolCall",
    "current_operation",
    "current_tool_call",
    "earlier",
    "scope_of",
    "time_left",
    "tool_call",
    "tries_left",
]


class Scope(msgspec.Struct, frozen=True):
    """The innermost operation that a call runs in."""

    operation: Operation | None
    """None if there is only a number of tries."""
    until: float | None = None
    """When no further call may start, on the recovery clock."""
    tries: int | None = None
    """Calls that the operation has left, in a repeat of its call."""
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
    until = earlier(None if scope is None else scope.until, left().until)
    return None if until is None else max(0.0, until - CLOCK.now())


def earlier(one: float | None, other: float | None) -> float | None:
    """Return the earlier of two times, of which either may be missing."""
    return other if one is None else one if other is None else min(one, other)


def tries_left(attempts: int | None) -> int | None:
    """
    Return how many calls a call that is made now may cause, for all layers together; None without a limit.

    >>> tries_left(3), tries_left(None)
    (3, None)

    Args:
        attempts: the limit of the operation that makes it.

    """
    scope = SCOPE.get()
    found = left().tries if scope is None or scope.tries is None else scope.tries
    return attempts if found is None else found if attempts is None else min(attempts, found)


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
    tries = None
    if stepper.history:
        limit = tries_left(stepper.policy.attempts) if state.most is None else state.most
        tries = (
            None if limit is None else max(1, min(limit, stepper.policy.attempts or limit) - stepper.tries)
        )
    plain = stepper.operation.key is None and until == state.until and upstream is None
    if plain and tries is None:
        return None
    around = SCOPE.get()
    upstreams = () if around is None else around.upstreams
    operation: Operation | None = stepper.operation
    if plain:
        # Only the tries are new: the calls inside belong to the operation that they would belong to without them.
        operation = None if around is None else around.operation
    elif around is not None and around.operation is not None and stepper.operation == _UNDECLARED:
        # An operation without any declaration is part of the one around it, so its calls get that one's key.
        operation = around.operation
    all_upstreams = upstreams if upstream is None else (*upstreams, upstream)
    return Scope(operation, until, tries, all_upstreams, target)
