"""
What the operations against one service share in this process.

A hint received by one is obeyed by all; an outage is probed with single calls while the others are parked; repeats are
a bounded share of the calls; credentials are renewed once for everybody. Safe to use from threads and tasks at once:
every method takes one short lock and never waits inside it. There is no background thread: those who wait keep the
time themselves, the first in line for all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from threading import Lock
from typing import Any

import msgspec

from amends.core.backoff import Backoff
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.validate import check_kind
from amends.recovery.budget import Budget
from amends.recovery.health import FLOWING, HELD, STATES, Health, Tuning
from amends.recovery.renewal import Renewal, Turn
from amends.recovery.signals import Signal, signal_of
from amends.recovery.waiter import Waiter

__all__ = ["Snapshot", "Upstream"]

_BACKOFF = Backoff()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream at one moment, for dashboards."""

    name: str
    state: str
    """flowing · draining · down · held"""
    resumes_in: float
    """Seconds until a parked call may go out again; 0 when it may now."""
    parked: int
    """Calls waiting in line."""
    calls: int
    """Calls that have ended so far."""
    repeats: int
    """Repeats taken out of the budget so far …"""
    repeats_left: float
    """… and what is left there now."""
    failing: float
    """Share of the calls that failed lately."""
    round_trip: float
    """Seconds a good answer usually takes; 0 before the first."""
    renewals: int
    """Times the credentials were renewed."""


class Upstream:
    """
    One service, as far as its callers share their experience with it. Make one per service and keep it.

        payments = Upstream("payments", refresh=renew_token)
        recover(charge, order, upstream=payments, operation=Operation(name="charge", keyed=True))
    """

    def __init__(
        self,
        name: str = "",
        *,
        refresh: Callable[..., Any] | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        """
        Args:
            name: for people and telemetry.
            refresh: renews the credentials, for everybody; the default for operations that bring none.
            tuning: other constants than those the simulator found.

        """
        check_kind("name", name, str, 'Upstream("payments")')
        self.name = name
        self.refresh = refresh
        tuning = tuning or Tuning()
        self._lock = Lock()
        self._health = Health(tuning)
        self._budget = Budget(tuning)
        self._renewal = Renewal()
        self._line: OrderedDict[Waiter, None] = OrderedDict()
        self._held_by: Fault | None = None
        self.open = True
        """Whether a call may simply go out and report back: all is well, and nobody waits. Read without the lock."""

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {STATES[self._health.state]})"

    def snapshot(self, now: float | None = None) -> Snapshot:
        """The state at this moment, read as a whole."""
        if now is None:
            from amends.recovery.clock import CLOCK

            now = CLOCK.now()
        with self._lock:
            health = self._health
            resumes = (health.next_send, health.resume_at)[health.state > 1] if health.state else now
            return Snapshot(
                name=self.name,
                state=STATES[health.state],
                resumes_in=max(0.0, resumes - now),
                parked=len(self._line),
                calls=health.calls,
                repeats=self._budget.taken,
                repeats_left=self._budget.saved,
                failing=health.share,
                round_trip=health.usual,
                renewals=self._renewal.generation,
            )

    # Going out -------------------------------------------------------------------------------------------------

    def look(self, waiter: Waiter, now: float) -> float:
        """0: go, and report back. Otherwise stand in line and look again at that time, or when woken."""
        with self._lock:
            if waiter not in self._line and not waiter.granted:
                self._line[waiter] = None
            if not waiter.granted:
                self._pump(now, waiter)
            if waiter.granted:
                return 0.0
            return waiter.again if next(iter(self._line)) is waiter else inf

    def leave(self, waiter: Waiter, now: float) -> None:
        """Give up one's place, or the turn one has got and cannot use."""
        with self._lock:
            if waiter.granted:
                self._health.abandoned(now)
                waiter.granted = False
            else:
                self._line.pop(waiter, None)
            self._renewal.waiters.discard(waiter)
            self._pump(now)

    def force(self, waiter: Waiter, now: float) -> bool:
        """Go although it is not one's turn, unless the server itself asked for silence."""
        with self._lock:
            if waiter.granted:
                return True
            self._line.pop(waiter, None)
            allowed = self._health.state != HELD
            if allowed:
                self._health.force()
            self._pump(now)
            return allowed

    def join(self) -> None:
        """Go out as part of a call that has its turn."""
        with self._lock:
            self._health.force()

    def held_for(self, now: float) -> float:
        """Seconds for which the server asked for silence; 0 if it did not."""
        with self._lock:
            return max(0.0, self._health.held_until() - now)

    def refusal(self, now: float) -> Fault:
        """Why nothing may go out now, as the fault an operation gets that was never sent."""
        with self._lock:
            held = self._health.held_until() - now
            by = self._held_by
            if by is None or held <= 0:
                return Fault(code="SERVICE_UNAVAILABLE", executed=Executed.NO)
            return Fault(
                code=by.code,
                vocabulary=by.vocabulary,
                recovery=by.recovery,
                status=by.status,
                retry_after=held,
                executed=Executed.NO,
            )

    def repeat_at(self, now: float) -> float:
        """Take one repeat out of the budget: 0, or when there will be one."""
        with self._lock:
            return self._budget.take(now, self._health.calls)

    # Reporting -------------------------------------------------------------------------------------------------

    def succeeded(self, now: float, sent: float, draw: Callable[[], float]) -> None:
        """The call sent at `sent` succeeded."""
        with self._lock:
            if self.open:
                self._health.flowed(now, sent)
            else:
                self._health.succeeded(now, sent, draw(), waiting=bool(self._line))
                self._pump(now)

    def failed(self, fault: Fault, now: float, sent: float, draw: float) -> bool:
        """The call sent at `sent` failed; whether everybody now waits because of what it said."""
        signal = signal_of(fault)
        with self._lock:
            health = self._health
            if signal is Signal.HINT:
                hint = usable(fault.vocabulary, fault.retry_after) or 0.0
                self._held_by = fault
                health.hinted(now, sent, now + _BACKOFF.above(hint, draw))
            elif signal is Signal.WELL:
                health.succeeded(now, sent, draw, waiting=bool(self._line))
            elif signal is Signal.NOTHING:
                health.abandoned(sent)
            else:
                health.failed(now, sent, draw, silent=signal is Signal.SILENT)
            self._pump(now)
            return signal is Signal.HINT

    def abandoned(self, now: float, sent: float) -> None:
        """The call sent at `sent` was interrupted from outside."""
        with self._lock:
            self._health.abandoned(sent)
            self._pump(now)

    def _pump(self, now: float, asking: Waiter | None = None) -> None:
        """Let out of the line whoever may go, and see that the first of the rest keeps the time."""
        line, health = self._line, self._health
        self.open = False
        while line:
            head = next(iter(line))
            again = health.admit(now)
            if again == 0.0:
                del line[head]
                head.granted = True
            elif again == head.again:
                return
            head.again = again
            if head is not asking:
                head.wake()
            if again:
                return
        self.open = health.state == FLOWING and not self._renewal.leading

    # Credentials -----------------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Which credentials are the current ones; a call remembers it when it goes out."""
        return self._renewal.generation

    def renewals_failed(self) -> int:
        """How often renewing did not work; whoever asks for a turn remembers it."""
        with self._lock:
            return self._renewal.failures

    def renewing(self, waiter: Waiter) -> bool:
        """Whether somebody is renewing the credentials; then `waiter` is woken at the end of it."""
        with self._lock:
            if self._renewal.leading:
                self._renewal.waiters.add(waiter)
            return self._renewal.leading

    def renew(self, waiter: Waiter, generation: int, failures: int) -> Turn:
        """What to do about refused credentials of that generation."""
        with self._lock:
            turn = self._renewal.ask(waiter, generation, failures)
            if turn is Turn.LEAD:
                self.open = False
            return turn

    def renewed(self, worked: bool | None, now: float) -> None:
        """The turn to LEAD is over."""
        with self._lock:
            self._renewal.end(worked)
            self._pump(now)
