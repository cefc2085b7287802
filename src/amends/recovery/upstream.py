"""
`Upstream`: the state that all operations against one service share in this process.

All callers obey a hint that one of them receives. During an outage, single calls probe the service while the others
wait in a queue. After it, and in an overload, calls are paced. Repeats are bounded by a quota. Credentials are renewed
once for all callers. `controller` decides; this module has the queue, the lock and the scopes.

An Upstream can be used from threads and tasks at the same time: every method holds one lock for a short time and never
waits inside it. There is no background thread. One waiter in the queue wakes up when the next call may be sent, and
lets the others out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from math import inf
from threading import RLock

import msgspec

from amends.carriers.limits import Limit, fewest
from amends.core.backoff import Backoff
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.validate import check_count, check_flag, check_kind
from amends.core.vocabulary import row_for
from amends.core.wrong_calls import explains_wrong_calls
from amends.recovery.async_library import Waiter
from amends.recovery.classify import Signal, signal_of
from amends.recovery.clock import CLOCK
from amends.recovery.controller import HELD, OPEN, RAMP, SHUT, STATES, Controller
from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT
from amends.recovery.published import LONGEST, NOTHING, Published
from amends.recovery.quota import Quota
from amends.recovery.renewal import Renewal, Turn
from amends.recovery.sharing import Shared, Sharing
from amends.recovery.waiting_line import WaitingLine

__all__ = ["Snapshot", "Upstream", "for_repeats"]

_BACKOFF = Backoff()
_KINDS = {Signal.PLAIN: PLAIN, Signal.REFUSED: REFUSED, Signal.HINT: HINT, Signal.SILENT: SILENT}
_MOST_SCOPES = 1000
"""Scopes that an Upstream keeps. More: memory; fewer: where many tenants are in trouble, some are forgotten."""
_LONG_HINT = 30.0
"""After a longer hint, waiting calls are woken and fail if it exceeds their waiting time."""


_MOST_JITTER = 5.0
"""The most seconds by which a held call is later than the server asked. More: better spread; less: earlier return."""


_NO_SCOPES: dict[str, Upstream] = {}
"""Of all Upstreams without scopes; it stays empty. An Upstream takes 2 KB, and most have none."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """
    The state of an upstream at one moment, for dashboards.

    >>> now = Upstream("shop").snapshot()
    >>> now.state, now.parked
    ('open', 0)
    """

    name: str
    state: str
    """open · ramp · shut"""
    resumes_in: float
    """Seconds until a parked call may be sent; 0 if it may be sent now."""
    parked: int
    """The number of calls in the queue."""
    calls: int
    """The number of calls that have ended."""
    repeats: int
    """Repeats taken from the quota so far …"""
    repeats_left: float
    """… and how many are left in it."""
    failing: float
    """The share of the calls that failed lately, outages left out."""
    round_trip: float
    """Seconds a good answer usually takes; 0 before the first."""
    renewals: int
    """How often the credentials were renewed."""
    pace: float | None = None
    """Calls per second, while they are paced."""
    in_flight: int = 0
    """Calls that were sent and have not ended."""
    room: float | None = None
    """How many calls may be in flight, while that is limited."""
    demand: float = 0.0
    """Operations per second that would arrive if none had to wait."""
    limits: Mapping[str, float] = {}
    """What is left of the limits that the service published, by their names."""
    scopes: tuple[str, ...] = ()
    """The scopes that are in trouble, or in which calls failed lately."""


class Upstream:
    """
    One service, with the state that its callers share. Make one per service and keep it.

        payments = Upstream("payments", refresh=renew_token)
        recover(charge, order, upstream=payments, operation=Operation(name="charge", keyed=True))

    Where the service has limits per tenant, `payments.scope("tenant-7")` is an Upstream of its own for that tenant.
    """

    @explains_wrong_calls
    def __init__(
        self,
        name: str = "",
        *,
        vendor: str | None = None,
        own: bool = False,
        keyed: bool | None = None,
        concurrency: int | None = None,
        shared: Shared | None = None,
        refresh: Callable[..., object] | None = None,
        address: str | None = None,
    ) -> None:
        """
        Args:
            name: for logs and telemetry, and for `shared`.
            vendor: whose error format to expect, such as "openai".
            own: the service is part of our own system: a server that calls it passes its failures on as they were read.
            keyed: whether the service honours idempotency keys; the clients' transports repeat a request with a key if
                it does. None: unknown.
            concurrency: how many calls may be in flight at once. None: any number.
            shared: shares what is known about the service with other processes; see `amends.recovery.Shared`.
            refresh: renews the credentials; the default for operations that have no `refresh` of their own.
            address: the base address of the service, for `Failover`.

        Raises:
            LookupError: for a `vendor` that no service file names.

        """
        check_kind("name", name, str, 'Upstream("payments")')
        if vendor is not None:
            check_kind("vendor", vendor, str, 'Upstream("models", vendor="openai")')
            from amends.vendors.registry import check

            vendor = check(vendor)
        check_flag("own", own)
        if keyed is not None:
            check_flag("keyed", keyed)
        if refresh is not None and not callable(refresh):
            raise TypeError(f"refresh is a function, not {type(refresh).__name__}")
        if address is not None:
            check_kind("address", address, str, 'Upstream("a", address="https://api.example.com/v1")')
        if address is not None and "://" not in address:
            raise ValueError("address is the base URL of the service, such as 'https://api.example.com/v1'")
        if concurrency is not None:
            check_count("concurrency", concurrency)
            if concurrency < 1:
                raise ValueError("concurrency counts calls in flight: it is at least 1")
        self.name = name
        self.service = name
        """The name without the scope."""
        self.vendor = vendor
        self.own = own
        self.keyed = keyed
        self.concurrency = concurrency
        self.shared = shared
        self.refresh = refresh
        self.address = address
        self._lock = RLock()
        self._controller = Controller()
        self._quota = Quota()
        self.renewal = Renewal()
        """The credentials. A call notes `renewal.generation` when it is sent."""
        self._sharing = None if shared is None else Sharing(shared, name)
        self._queue = WaitingLine()
        self._published = NOTHING
        self._timed: Waiter | None = None
        self._numbers = count(1)
        self._held_by: Fault | None = None
        self.last_failure: Fault | None = None
        """The last failure that says something about the state of the service."""
        self._asked_until = 0.0
        self._scopes = _NO_SCOPES  # in the order of use
        self.last_used = 0.0
        """When a call last ended with something else than a success in OPEN, or began to wait."""
        self.open = self._is_open()
        """Whether a call may be sent at once: the state is OPEN and no call waits. Read without the lock."""

    def __deepcopy__(self, memo: object) -> Upstream:
        # A copy of a client calls the same service, so it shares what is known about it.
        return self

    def __reduce__(self) -> tuple[object, ...]:
        # Another process learns the state of the service itself; only the declaration is pickled.
        options = {
            each: getattr(self, each)
            for each in ("vendor", "own", "keyed", "concurrency", "shared", "refresh", "address")
        }
        return partial(Upstream, self.name, **options), ()

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {STATES[self._controller.state]})"

    def snapshot(self, now: float | None = None) -> Snapshot:
        """Return the state at this moment."""
        now = CLOCK.now() if now is None else now
        with self._lock:
            controller = self._controller
            state = controller.state
            return Snapshot(
                name=self.name,
                state=STATES[state],
                resumes_in=self.resumes_in(now),
                parked=len(self._queue),
                calls=controller.traffic.calls,
                repeats=self._quota.taken,
                repeats_left=self._quota.saved,
                failing=controller.evidence.failing,
                round_trip=controller.traffic.usual,
                renewals=self.renewal.generation,
                pace=controller.pace.per_second
                if state == RAMP and controller.pace.per_second < inf
                else None,
                in_flight=controller.inflight,
                room=controller.room.calls if state == RAMP and controller.room.limited else None,
                demand=controller.traffic.demand(now) if controller.traffic.calls else 0.0,
                limits=self._published.shown(now),
                scopes=tuple(name for name, each in self._scopes.items() if each.troubled),
            )

    def resumes_in(self, now: float) -> float:
        """Return the seconds until a call that waits may be sent; 0 if it may be sent now."""
        controller = self._controller
        if controller.state == OPEN:
            return 0.0
        at = controller.pace.next_send if controller.state == RAMP else controller.hold.resume_at
        return max(0.0, at - now)

    def scope(self, name: str) -> Upstream:
        """
        Return the Upstream of one part of the service: a tenant, a route, a credential. The same name gives the same one.

        It has its own state and queue. The quota of repeats and the credentials are those of this Upstream.

        >>> shop = Upstream("shop")
        >>> shop.scope("tenant-7") is shop.scope("tenant-7")
        True
        """
        check_kind("name", name, str, 'upstream.scope("tenant-7")')
        with self._lock:
            found = self._scopes.get(name)
            if found is None:
                if self._scopes is _NO_SCOPES:
                    self._scopes = {}
                found = self._scopes[name] = _scope_of(self, name)
                idle = next((each for each in self._scopes if len(self._scopes) > _MOST_SCOPES), None)
                if idle is not None:
                    del self._scopes[idle]
            else:
                self._scopes[name] = self._scopes.pop(name)
            return found

    def reset(self) -> None:
        """Forget all trouble: hints, outages, paces, in every scope. Waiting calls are sent. For operators and tests."""
        with self._lock:
            inflight = self._controller.inflight
            self._controller, self._numbers = Controller(), count(inflight + 1)
            self._controller.sent = inflight
            self._published = NOTHING
            self._held_by, self._asked_until = None, 0.0
            scopes = tuple(self._scopes.values())
            self._let_out(CLOCK.now())
        if self._sharing is not None:
            self._sharing.clear()
        for each in scopes:
            each.reset()

    @property
    def troubled(self) -> bool:
        """Whether calls are held back or paced, or failed lately, here or in a scope of it."""
        controller = self._controller
        own = controller.state != OPEN or controller.evidence.failing > 0.0 or bool(self._queue)
        return own or any(each.troubled for each in self._scopes.values())

    def held(self, now: float) -> dict[str, float]:
        """Return the scopes whose calls are held back, each with the seconds until the next one may be sent."""
        with self._lock:
            shut = {name: each for name, each in self._scopes.items() if each._controller.state == SHUT}  # noqa: SLF001
            return {name: max(each.resumes_in(now), each.held_for(now)) for name, each in shut.items()}

    @property
    def idle(self) -> bool:
        """Whether nothing would be lost if this Upstream were dropped: OPEN, without waiting calls or failures."""
        with self._lock:
            quiet = not self._queue and not self.renewal.leading and self._controller.state == OPEN
            return quiet and all(each.idle for each in self._scopes.values())

    # Sending ---------------------------------------------------------------------------------------------------

    def ready(self, now: float) -> bool:
        """Return whether a call may be sent at once: no other call waits, and the state allows it."""
        if self.open:
            return True
        if self._sharing is not None:
            self._learn_from_others(now)
        with self._lock:
            free = (
                not self._queue
                and not self._is_full()
                and not self._published.wait(now, self._controller.inflight)
            )
            return free and self._controller.ready(now)

    def look(self, waiter: Waiter, now: float, *, tries: int = 0, priority: int = 0, size: int = 0) -> float:
        """
        Return 0 if the waiter's call may be sent; its outcome has to be reported then.

        Otherwise put the waiter into the queue and return the time to look again. It may be woken earlier. `tries`: the
        calls that the operation has made; `priority`: waiters with a higher one are sent first;
        `size`: that of the request, for limits per token.
        """
        if self._sharing is not None:
            self._learn_from_others(now)
        with self._lock:
            if waiter not in self._queue and not waiter.granted:
                waiter.tries, waiter.priority, waiter.size = tries, priority, size
                self._queue.add(waiter)
                self.last_used = now
                if not tries and self._controller.state != OPEN:
                    self._controller.traffic.arrived()
            if not waiter.granted:
                self._let_out(now, waiter)
            if waiter.granted:
                return 0.0
            look_at = waiter.look_at if self._timed is waiter else inf
        return look_at if self._sharing is None else min(look_at, now + self._sharing.interval)

    def leave(self, waiter: Waiter, now: float) -> None:
        """Remove a waiter from the queue, or give back the turn it got and cannot use."""
        with self._lock:
            if waiter.granted:
                self._published.ended(now)
                self._controller.abandoned(now)
                waiter.granted = False
            else:
                self._queue.discard(waiter)
            self.renewal.waiters.discard(waiter)
            self._let_out(now)

    def force(self, waiter: Waiter, now: float, *, overload: bool = False) -> bool:
        """
        Let a waiter out before its turn. Return False if the server asked for no calls, or is overloaded.

        `overload`: also in an overload.
        """
        with self._lock:
            if waiter.granted:
                return True
            self._queue.discard(waiter)
            may = not self._controller.held_until() > now if overload else self._controller.may_force(now)
            allowed = may and not self._is_full()
            if allowed:
                self.begin()
            self._let_out(now)
            return allowed

    def fails(self, now: float) -> bool:
        """Return whether calls are held back because they failed, and not until a time that the server named."""
        with self._lock:
            return self._controller.state == SHUT and self._controller.held_until() <= now

    def hangs(self, now: float) -> bool:
        """Return whether the service did not answer, and a call is under way that shows whether it does again."""
        with self._lock:
            controller = self._controller
            probing = controller.hold.probe_sent >= 0.0 and not controller.ready(now)
            return controller.state == SHUT and controller.silent_at >= controller.since and probing

    def begin(self) -> None:
        """Count a call that is sent. Every one is reported once: as succeeded, failed or abandoned."""
        self._controller.sent = next(self._numbers)

    def take_back(self) -> None:
        """Count a call no longer that has not been sent after all."""
        with self._lock:
            self._controller.taken_back += 1

    def held_for(self, now: float) -> float:
        """Return the seconds for which the server asked for no calls; 0 if it did not."""
        with self._lock:
            held = self._controller.held_until()
            return max(0.0, held - now, self._asked_until - now) if held > now else 0.0

    def refuses(self, now: float, patience: float, priority: int = 0) -> bool:
        """Return whether a call cannot be sent within `patience` seconds, because the server asked for that."""
        with self._lock:
            controller, hold = self._controller, self._controller.hold
            if priority > controller.level:
                return False
            due = controller.state in HELD and hold.probe_sent < 0.0 and now >= hold.resume_at
            soon = hold.doubted and hold.resume_at - now < patience
            return controller.held_until() - now > patience and not due and not soon

    def refusal(self, now: float) -> Fault:
        """Return the fault of an operation whose call could not be sent."""
        held = self.held_for(now)
        with self._lock:
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

    def take_repeat(self, now: float) -> float:
        """
        Take one repeat from the quota and return 0, or return the time when one will be available.

        Only repeats in OPEN are taken from it: in the other states the queue bounds them.
        """
        with self._lock:
            controller = self._controller
            return (
                self._quota.take(now, controller.traffic.good_rate(now)) if controller.state == OPEN else 0.0
            )

    # Reports ---------------------------------------------------------------------------------------------------

    def succeeded(self, now: float, sent: float, *, repeat: bool = False, priority: int = 0) -> None:
        """Report that the call sent at `sent` succeeded. `repeat`: it was not the first call of its operation."""
        # `with self._lock` costs 0.15 µs more on CPython 3.11 (bench/overhead.py).
        self._lock.acquire()
        try:
            self._quota.earned += 1
            if self._published.times:
                self._published.ended(sent)
            if self.open and not repeat:
                self._controller.succeeded(now, sent)
            else:
                self._succeeded(now, sent, repeat=repeat, priority=priority)
        finally:
            self._lock.release()

    def _succeeded(self, now: float, sent: float, *, repeat: bool, priority: int) -> None:
        was = self._controller.state
        self._controller.succeeded(now, sent, waiting=bool(self._queue), repeat=repeat, priority=priority)
        if self._sharing is not None and was in HELD and self._controller.state not in HELD:
            self._sharing.clear()
        self._let_out(now)

    def failed(
        self, fault: Fault, now: float, sent: float, draw: float, *, repeat: int = 0, priority: int = 0
    ) -> bool:
        """
        Report that the call sent at `sent` failed. Return whether its hint now holds back all calls of this priority.

        `repeat`: how many calls its operation made before.
        """
        signal = signal_of(fault)
        with self._lock:
            self.last_used = now
            self._published.ended(sent)
            controller, held = self._controller, False
            if signal is Signal.WELL:
                self._succeeded(now, sent, repeat=repeat > 0, priority=priority)
                return False
            if signal is Signal.NOTHING:
                controller.abandoned(sent)
            else:
                hint = 0.0
                if signal is Signal.HINT:
                    named = usable(fault.vocabulary, fault.retry_after) or 0.0
                    hint = min(_BACKOFF.above(named, draw), named + _MOST_JITTER)
                    asked = now + (fault.retry_after or 0.0)
                    held_already = controller.held_until() > now
                    self._asked_until = max(asked, self._asked_until) if held_already else asked
                    self._held_by = fault
                limited = _is_limit(fault)
                kind = _KINDS[signal]
                self.last_failure = fault
                held = controller.failed(
                    now,
                    sent,
                    draw,
                    kind,
                    hint,
                    repeat=repeat,
                    limited=limited,
                    priority=priority,
                    waiting=len(self._queue),
                )
                if held and hint > _LONG_HINT:
                    for waiter in self._queue:
                        waiter.wake()
                if self._sharing is not None and controller.state == SHUT:
                    self._sharing.write(controller.hold, now)
            self._let_out(now)
            return held

    def hold_back(self, fault: Fault, now: float, sent: float, draw: float) -> None:
        """Hold back all calls from now on, because the call sent at `sent` failed and nothing is left to repeat it."""
        signal = signal_of(fault)
        kind = _KINDS.get(signal, PLAIN)
        with self._lock:
            hint = (usable(fault.vocabulary, fault.retry_after) or 0.0) if kind == HINT else 0.0
            if self._controller.state == OPEN:
                self._controller.shut(now, sent, draw, kind, hint, limited=_is_limit(fault))
            self._let_out(now)

    def note_demand(self, now: float, rate: float) -> None:
        """
        Count an operation whose first call was not sent through this Upstream, and failed.

        `rate`: how many such operations succeeded per second lately.
        """
        with self._lock:
            if (
                not self._controller.limited or self._controller.state == OPEN
            ):  # at a limit they are what it lets through
                self._controller.traffic.know(now, rate)
            self._controller.traffic.failed(now)

    def abandoned(self, now: float, sent: float) -> None:
        """Report that the call sent at `sent` was interrupted."""
        with self._lock:
            self._published.ended(sent)
            self._controller.abandoned(sent)
            self._let_out(now)

    def allow(self, remaining: int, seconds: float, now: float) -> None:
        """
        Report that an answer allowed `remaining` calls within the next `seconds` (`RateLimit`, `x-ratelimit-remaining`).

        If that is less than arrives, the calls are paced so that they last until then.
        """
        with self._lock:
            self._controller.allow(now, remaining, seconds)
            self._let_out(now)

    def note_limits(self, found: Iterable[Limit], now: float, sent: float, *, ok: bool = True) -> None:
        """
        Report the limits that the answer to the call sent at `sent` published (`amends.carriers.limits.published`).

        Calls are held back when nothing is left, until the limit starts again and for at most a minute; if it lasts longer, they
        are paced. `ok`: the call was not refused.
        """
        found = tuple(found)
        with self._lock:
            if self._published is NOTHING:
                self._published = Published()
            self._published.note(now, sent, found, self._controller.inflight, ok=ok)
            window = fewest(each for each in found if each.reset is not None and each.reset > LONGEST)
            if window is not None:
                self._controller.allow(now, *window)
            self._let_out(now)

    # Inside ----------------------------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        return self.concurrency is not None and self._controller.inflight >= self.concurrency

    def _is_open(self) -> bool:
        return (
            self._controller.state == OPEN
            and not self._controller.crowded
            and not self._published.tight
            and not self._queue
            and not self.renewal.leading
            and self.concurrency is None
            and self._sharing is None
        )

    def _next(self, now: float) -> Waiter:
        """Return the waiter whose turn is next. Before the hinted time, that is one that has not received the hint."""
        queue = self._queue
        head = queue.head()
        if head.tries and self._controller.probes_fresh:
            return next((each for each in queue if not each.tries), head)
        return head

    def _let_out(self, now: float, asking: Waiter | None = None) -> None:
        """Grant the calls that may be sent, in the order of the queue, and give the next waiter its time to look."""
        queue, controller = self._queue, self._controller
        self.open = False
        ended = controller.traffic.calls + controller.taken_back
        if ended > controller.sent:  # an end that no call belongs to
            controller.sent = ended
            self._numbers = count(controller.sent + 1)
        while queue:
            head = self._next(now)
            look_at = inf if self._is_full() else self._published.wait(now, controller.inflight, head.size)
            if not look_at:
                look_at = controller.admit(now, tries=head.tries, priority=head.priority, size=head.size)
            if look_at == 0.0:
                if self._sharing is not None and controller.state in HELD and not self._sharing.may_probe():
                    controller.hold.postpone(now + self._sharing.interval)
                    continue
                queue.discard(head)
                head.granted = True
                self.begin()
                self._published.let_out(now, head.size)
            elif head is self._timed and look_at == head.look_at:
                return
            head.look_at, self._timed = look_at, head
            if head is not asking:
                head.wake()
            if look_at:
                return
        self.open = self._is_open()

    def _learn_from_others(self, now: float) -> None:
        """Take over what another process wrote about the service."""
        assert self._sharing is not None
        record = self._sharing.read(now, self._controller.traffic.last_answered)
        if record is not None:
            with self._lock:
                self._controller.learn(now, *record)

    # Credentials -----------------------------------------------------------------------------------------------

    def failed_renewals(self) -> int:
        """Return the number of failed renewals. An operation notes it before it asks to renew."""
        with self._lock:
            return self.renewal.failures

    def watch_renewal(self, waiter: Waiter) -> bool:
        """Return whether the credentials are being renewed. If so, wake `waiter` at the end of the renewal."""
        with self._lock:
            if self.renewal.leading:
                self.renewal.waiters.add(waiter)
            return self.renewal.leading

    def ask_to_renew(self, waiter: Waiter, generation: int, failures: int) -> Turn:
        """Return what an operation has to do about refused credentials of that generation."""
        with self._lock:
            turn = self.renewal.ask(waiter, generation, failures)
            if turn is Turn.LEAD:
                self.open = False
            return turn

    def end_renewal(self, worked: bool | None, now: float) -> None:
        """Report the end of a renewal. None: it was interrupted."""
        with self._lock:
            self.renewal.end(worked)
            self._let_out(now)


def for_repeats() -> Upstream:
    """Return an Upstream for the repeats of operations whose first calls are not sent through it."""
    upstream = Upstream()
    upstream._controller = Controller(aside=True)  # noqa: SLF001
    return upstream


def _is_limit(fault: Fault) -> bool:
    return row_for(fault.vocabulary, fault.code, fault.status).everyday == "RATE_LIMITED"


def _scope_of(parent: Upstream, name: str) -> Upstream:
    """Return a new scope: its own state, with the parent's declaration, quota and credentials."""
    scope = Upstream(
        f"{parent.name}/{name}" if parent.name else name,
        vendor=parent.vendor,
        own=parent.own,
        keyed=parent.keyed,
        concurrency=parent.concurrency,
        shared=parent.shared,
        refresh=parent.refresh,
        address=parent.address,
    )
    scope.service = parent.service
    scope._lock, scope._quota, scope.renewal = parent._lock, parent._quota, parent.renewal  # noqa: SLF001
    return scope
