"""
Helpers for tests of code that uses recovery.

`FakeClock` replaces recovery's clock, so that tests do not sleep; `Script` is a function with scripted failures and results;
`recorded_events` collects recovery's events; `assert_error_code` is AdCP's storyboard check. `Rehearsal` lets a block of code meet
the failures that its services really send (docs/rehearse.md).

    from amends.testing import FakeClock, Script

    def test_it_waits_for_retry_after():
        fetch = Script(RateLimitedError("slow down", retry_after=1.5), "page")
        with FakeClock() as clock:
            assert recover(fetch) == "page"
        assert clock.waits == [1.5]

In pytest, the fixtures `amends_clock`, `amends_events`, `amends_script` and `amends_rehearsal` need no import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from types import TracebackType
from typing import Any, Self

from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.recovery import events
from amends.recovery.async_library import ThreadWaiter, sleep
from amends.recovery.clock import CLOCK
from amends.recovery.events import Event
from amends.recovery.origins import forget_origins
from amends.recovery.process_quota import process_quota
from amends.rehearse.rehearsal import Rehearsal
from amends.storyboard import assert_error_code

__all__ = ["FakeClock", "Rehearsal", "Script", "ScriptEndedError", "assert_error_code", "recorded_events"]

# Iterations of the event loop before the clock advances, so that other tasks can run first.
_LOOP_ITERATIONS = 10
# Seconds of real time before the clock advances, so that other threads can run first.
_THREAD_GRACE = 0.002


class FakeClock:
    """
    A context manager that replaces recovery's clock in the whole process: waits take no real time.

    The clock advances when all tasks wait. There is no jitter unless `draw` is given: a wait is exactly the server's
    `retry_after`, or 1, 2, 4 … seconds.

    >>> from amends import FaultError, recover
    >>> busy = Script(FaultError(code="RATE_LIMITED", retry_after=60), "page 1")
    >>> with FakeClock() as clock:
    ...     recover(busy, read_only=True), clock.waits
    ('page 1', [60.0])
    """

    @explains_wrong_calls
    def __init__(self, *, draw: Callable[[], float] | float = 0.0) -> None:
        self.waits: list[float] = []
        """The seconds of every wait in the order of their start, including waits for a turn at an upstream."""
        self._now = 1000.0
        self._draw = draw if callable(draw) else lambda: draw
        self._targets: list[float] = []
        self._lock = Lock()
        self._installed: AbstractContextManager[None] | None = None

    @property
    def waited(self) -> float:
        """The sum of `waits`."""
        return sum(self.waits)

    def now(self) -> float:
        """Return the time of this clock in seconds; its start value is arbitrary."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the clock without a wait, for example to simulate a slow call."""
        with self._lock:
            self._now += seconds

    def __enter__(self) -> Self:
        self._installed = CLOCK.using(
            now=self.now,
            wall=self.now,
            draw=self._draw,
            sleep=self._sleep,
            asleep=self._asleep,
            park=self._park,
            apark=self._apark,
        )
        self._installed.__enter__()
        process_quota.turn(on=True)  # the time of this clock starts again, and so does the quota
        forget_origins()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._installed is not None
        self._installed.__exit__(kind, error, trace)
        process_quota.turn(on=True)
        forget_origins()

    def _start_wait(self, seconds: float) -> float:
        with self._lock:
            self.waits.append(seconds)
            return self._now + seconds

    def _advance_to(self, target: float) -> None:
        with self._lock:
            self._now = max(self._now, target)

    def _sleep(self, seconds: float) -> None:
        self._advance_to(self._start_wait(seconds))

    def _park(self, waiter: ThreadWaiter, seconds: float) -> None:
        target = self._start_wait(seconds)
        if not waiter.event.wait(_THREAD_GRACE):
            self._advance_to(target)

    async def _asleep(self, seconds: float) -> None:
        await self._wait_until(self._start_wait(seconds), lambda: False)

    async def _apark(self, waiter: Any, seconds: float) -> None:
        await self._wait_until(self._start_wait(seconds), waiter.event.is_set)

    async def _wait_until(self, target: float, woken: Callable[[], bool]) -> None:
        """Let the other tasks run, then advance the clock to `target` unless a task waits for an earlier time."""
        self._targets.append(target)
        try:
            while self._now < target:
                for _ in range(_LOOP_ITERATIONS):
                    await sleep(0)
                    if woken():
                        return
                if target <= min(self._targets):
                    self._advance_to(target)
        finally:
            self._targets.remove(target)


class ScriptEndedError(BaseException):
    """
    A Script was called more often than it has outcomes. It is a BaseException so that recovery does not catch it.

    >>> fetch = Script("page 1")
    >>> fetch()
    'page 1'
    >>> fetch()
    Traceback (most recent call last):
    amends.testing.ScriptEndedError: call 2, but the script has 1 outcomes
    """


class Script:
    """
    A function with one scripted outcome per call: it raises exceptions and faults, and returns all other values.

        fetch = Script(Fault(code="RATE_LIMITED", retry_after=2), ConnectionError(), "page")

    `fetch.acall` is the async form. `calls` has the arguments of every call.
    """

    @explains_wrong_calls
    def __init__(self, *outcomes: Any, repeat: bool = False) -> None:
        """`repeat`: repeat the last outcome for all further calls."""
        self._outcomes = outcomes
        self._repeat = repeat
        self._lock = Lock()
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise or return the next outcome."""
        with self._lock:
            number = len(self.calls)
            self.calls.append((args, kwargs))
        if number >= len(self._outcomes):
            if not self._repeat:
                raise ScriptEndedError(
                    f"call {number + 1}, but the script has {len(self._outcomes)} outcomes"
                )
            number = -1
        outcome = self._outcomes[number]
        if isinstance(outcome, Fault):
            raise FaultError.from_fault(outcome)
        if isinstance(outcome, BaseException) or (
            inspect.isclass(outcome) and issubclass(outcome, BaseException)
        ):
            raise outcome
        return outcome

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Raise or return the next outcome; the async form of a call."""
        return self(*args, **kwargs)


@contextmanager
def recorded_events() -> Iterator[list[Event]]:
    """
    Collect recovery's events inside the block. Other hooks still run.

    >>> from amends import recover
    >>> with FakeClock(), recorded_events() as events:
    ...     recover(Script(TimeoutError(), "page 1"), read_only=True)
    'page 1'
    >>> [event.kind for event in events]
    ['retry', 'recovered']
    """
    seen: list[Event] = []

    def record(event: Event) -> None:
        seen.append(event)

    events.add_hook(record)
    try:
        yield seen
    finally:
        events.remove_hook(record)
