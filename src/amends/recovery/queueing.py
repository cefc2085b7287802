"""The parts of a flow that wait for others: a turn, a repeat, new credentials. Generators, like the flow."""

from __future__ import annotations

from typing import Any

from amends.recovery.clock import CLOCK
from amends.recovery.renewal import Turn
from amends.recovery.scope import SCOPE
from amends.recovery.stepper import Stepper
from amends.recovery.steps import Park, Steps, Wait, WaiterMaker
from amends.recovery.upstream import Upstream
from amends.recovery.waiter import Waiter

__all__ = ["parked", "renewed", "repeatable_at", "settled"]


def parked(upstream: Upstream, stepper: Stepper, new_waiter: WaiterMaker) -> Any:
    """
    Stand in line until one may go; whether one may.

    An operation that was never sent goes out at the end of its patience, whatever the state: having waited must not be
    worse than not having waited. Only what the server itself asked for is stronger.
    """
    if upstream.open:
        return True
    around = SCOPE.get()
    if around is not None and upstream in around.upstreams:
        # The call around this one has its turn, and may even be the probe: waiting for it would be for ever.
        upstream.join()
        return True
    now = CLOCK.now()
    patience = stepper.patience(now)
    if upstream.held_for(now) > patience:
        return False
    waiter, over = new_waiter(), now + patience
    try:
        while (again := upstream.look(waiter, now)) != 0.0:
            if now >= over:
                if not stepper.history:
                    return upstream.force(waiter, now)
                upstream.leave(waiter, now)
                return False
            yield Park(waiter, min(again, over) - now)
            waiter.rest()
            now = CLOCK.now()
        # Credentials that are being renewed are worth waiting for.
        while now < over and upstream.renewing(waiter):
            yield Park(waiter, over - now)
            waiter.rest()
            now = CLOCK.now()
    except BaseException:
        upstream.leave(waiter, CLOCK.now())
        raise
    return True


def repeatable_at(upstream: Upstream, over: float) -> Any:
    """Wait for a repeat out of the budget; whether there was one before `over`."""
    while True:
        now = CLOCK.now()
        at = upstream.repeat_at(now)
        if at == 0.0:
            return True
        if at > over:
            return False
        yield Wait(at - now)


def renewed(
    upstream: Upstream, stepper: Stepper, new_waiter: WaiterMaker, generation: int, refresh: Steps
) -> Any:
    """Renew the credentials, or wait for whoever does; whether there are new ones."""
    waiter = new_waiter()
    failures = upstream.renewals_failed()
    now = CLOCK.now()
    over = now + stepper.patience(now)
    while True:
        turn = upstream.renew(waiter, generation, failures)
        if turn is Turn.LEAD:
            return (yield from _lead(upstream, refresh))
        if turn is not Turn.WAIT:
            return turn is Turn.DONE
        now = CLOCK.now()
        if now >= over:
            return False
        yield from _wait_for_leader(upstream, waiter, over - now)


def _lead(upstream: Upstream, refresh: Steps) -> Any:
    worked: bool | None = None
    try:
        worked = (yield from refresh) is not False
        return worked
    finally:
        upstream.renewed(worked, CLOCK.now())


def _wait_for_leader(upstream: Upstream, waiter: Waiter, seconds: float) -> Steps:
    try:
        yield Park(waiter, seconds)
    except BaseException:
        upstream.leave(waiter, CLOCK.now())
        raise
    waiter.rest()


def settled(upstream: Upstream, ended: float, sent: float) -> None:
    """Report a success."""
    upstream.succeeded(ended, sent, CLOCK.draw)
