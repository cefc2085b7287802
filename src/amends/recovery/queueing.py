"""
The parts of a flow that wait for other calls: for a turn, and for new credentials.

They are generators of steps, like the flow.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from amends.recovery.async_library import Waiter
from amends.recovery.clock import CLOCK
from amends.recovery.renewal import Turn
from amends.recovery.scope import SCOPE
from amends.recovery.stepper import Stepper
from amends.recovery.steps import Park, Step, Steps, WaiterMaker
from amends.recovery.upstream import Upstream

__all__ = ["renew_credentials", "wait_for_turn"]

_Waiting = Generator[Step, Any, bool]


def wait_for_turn(
    upstream: Upstream,
    stepper: Stepper,
    new_waiter: WaiterMaker,
    tries: int | None = None,
    first_wait: float | None = None,
) -> _Waiting:
    """
    Wait in the upstream's queue until the call may be sent. Return whether it may.

    `tries`: the calls of the operation to this upstream; None: all its calls. `first_wait`: the most seconds that its first call
    waits, unless the server named the time; it is sent then in any case. A later call does not wait if its turn cannot come in time.

    When the policy's waiting is used up, an operation that has made no call yet is sent in any case: having waited
    must not be worse than not having waited. The exceptions are a wait that the server itself asked for, and an overload
    in which fewer calls can be sent than arrive.
    """
    if upstream.open:
        upstream.begin()
        return True
    around = SCOPE.get()
    if around is not None and upstream in around.upstreams:
        # This call is part of one that the upstream has let out, perhaps of the probe. Waiting would be a deadlock.
        upstream.begin()
        return True
    now = CLOCK.now()
    priority, size = stepper.operation.priority, stepper.operation.size
    over, tries = now + stepper.patience(now), len(stepper.history) if tries is None else tries
    short = first_wait is not None and not tries and not upstream.held_for(now)
    if short:
        over = min(over, now + (first_wait or 0.0))
    elif upstream.refuses(now, over - now, priority) or (
        first_wait is not None and _is_too_long(upstream, now, over - now)
    ):
        return False
    waiter = new_waiter()
    try:
        while (look_at := upstream.look(waiter, now, tries=tries, priority=priority, size=size)) != 0.0:
            if now >= over:
                if not tries:
                    return upstream.force(waiter, now, overload=short)
                upstream.leave(waiter, now)
                return False
            yield Park(waiter, min(look_at, over) - now)
            waiter.clear()
            now = CLOCK.now()
            if not waiter.granted and not short and upstream.refuses(now, over - now, priority):
                upstream.leave(waiter, now)
                return False
        # If the credentials are being renewed, wait for the new ones.
        while now < over and upstream.watch_renewal(waiter):
            yield Park(waiter, over - now)
            waiter.clear()
            now = CLOCK.now()
    except BaseException:
        upstream.leave(waiter, CLOCK.now())
        raise
    return True


def _is_too_long(upstream: Upstream, now: float, patience: float) -> bool:
    """Return whether the turn of a call comes later, as far as can be said now."""
    soonest = upstream.resumes_in(now)
    return soonest > 0 and max(upstream.held_for(now), soonest if upstream.fails(now) else 0.0) > patience


def renew_credentials(
    upstream: Upstream, stepper: Stepper, new_waiter: WaiterMaker, generation: int, refresh: Steps
) -> _Waiting:
    """
    Renew the credentials with `refresh`, or wait for the operation that is renewing them. Return whether that worked.

    `generation` is that of the credentials that were refused.
    """
    waiter = new_waiter()
    failures = upstream.failed_renewals()
    now = CLOCK.now()
    over = now + stepper.patience(now)
    while True:
        turn = upstream.ask_to_renew(waiter, generation, failures)
        if turn is Turn.LEAD:
            return (yield from _lead(upstream, refresh))
        if turn is not Turn.WAIT:
            return turn is Turn.DONE
        now = CLOCK.now()
        if now >= over:
            return False
        yield from _wait_for_leader(upstream, waiter, over - now)


def _lead(upstream: Upstream, refresh: Steps) -> _Waiting:
    worked: bool | None = None
    try:
        worked = (yield from refresh) is not False
        return worked
    finally:
        upstream.end_renewal(worked, CLOCK.now())


def _wait_for_leader(upstream: Upstream, waiter: Waiter, seconds: float) -> Steps:
    try:
        yield Park(waiter, seconds)
    except BaseException:
        upstream.leave(waiter, CLOCK.now())
        raise
    waiter.clear()
