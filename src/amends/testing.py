"""
Helpers for tests of code with recovery: a clock that does not sleep, functions with scripted outcomes, recorded events,
and AdCP's check for error codes.

    from amends.testing import FakeClock, Script

    def test_it_waits_as_asked():
        fetch = Script(RateLimitedError("slow down", retry_after=1.5), "page")
        with FakeClock() as clock:
            assert recover(fetch) == "page"
        assert clock.waits == [1.5]

With pytest, the fixtures `amends_clock`, `amends_events` and `amends_script` are available without an import.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from types import TracebackType
from typing import Any, Self

from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.recovery import events
from amends.recovery.clock import CLOCK
from amends.recovery.events import Event
from amends.recovery.waiter import TaskWaiter, ThreadWaiter
from amends.storyboard import assert_error_code

__all__ = ["FakeClock", "Script", "ScriptEndedError", "assert_error_code", "recorded_events"]

# Iterations of the event loop before time advances, so that other tasks can act at the current time.
_TURNS = 10
# The same for other threads, in seconds of real time.
_MOMENT = 0.002


class FakeClock:
    """
    Replace recovery's clock in the whole process during the block. Waits do not sleep: time advances when all wait.

    There is no jitter, so waits are exactly as long as asked for, or 1, 2, 4 … seconds. Pass `draw` for jitter.
    """

    def __init__(self, *, draw: Callable[[], float] | float = 0.0) -> None:
        self.waits: list[float] = []
        """Seconds of every wait in the order they began, including waits for an upstream's turn."""
        self._now = 1000.0
        self._draw = draw if callable(draw) else lambda: draw
        self._targets: list[float] = []
        self._lock = Lock()
        self._installed: AbstractContextManager[None] | None = None

    @property
    def waited(self) -> float:
        """Seconds waited in all."""
        return sum(self.waits)

    def now(self) -> float:
        """Return the time of this clock in seconds; its start is arbitrary."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the time without a wait, as a call that takes long does."""
        with self._lock:
            self._now += seconds

    def __enter__(self) -> Self:
        self._installed = CLOCK.using(
            now=self.now,
            draw=self._draw,
            sleep=self._sleep,
            asleep=self._asleep,
            park=self._park,
            apark=self._apark,
        )
        self._installed.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._installed is not None
        self._installed.__exit__(kind, error, trace)

    def _begin(self, seconds: float) -> float:
        with self._lock:
            self.waits.append(seconds)
            return self._now + seconds

    def _reach(self, target: float) -> None:
        with self._lock:
            self._now = max(self._now, target)

    def _sleep(self, seconds: float) -> None:
        self._reach(self._begin(seconds))

    def _park(self, waiter: ThreadWaiter, seconds: float) -> None:
        target = self._begin(seconds)
        if not waiter.event.wait(_MOMENT):
            self._reach(target)

    async def _asleep(self, seconds: float) -> None:
        await self._pass(self._begin(seconds), lambda: False)

    async def _apark(self, waiter: TaskWaiter, seconds: float) -> None:
        await self._pass(self._begin(seconds), waiter.future.done)

    async def _pass(self, target: float, woken: Callable[[], bool]) -> None:
        """Let the other tasks run, then set the time to `target` unless another task waits for an earlier time."""
        self._targets.append(target)
        try:
            while self._now < target:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                    if woken():
                        return
                if target <= min(self._targets):
                    self._reach(target)
        finally:
            self._targets.remove(target)


class ScriptEndedError(BaseException):
    """A Script was called more often than it has outcomes. Not an Exception, so that recovery does not catch it."""


class Script:
    """
    A function with one given outcome per call: it raises exceptions and faults, and returns any other value.

        fetch = Script(Fault(code="RATE_LIMITED", retry_after=2), ConnectionError(), "page")

    Async code uses `fetch.acall`. `calls` holds the arguments of every call.
    """

    def __init__(self, *outcomes: Any, repeat: bool = False) -> None:
        """Set the outcomes; with `repeat`, further calls have the last one."""
        self._outcomes = outcomes
        self._repeat = repeat
        self._lock = Lock()
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return or raise the next outcome."""
        with self._lock:
            number = len(self.calls)
            self.calls.append((args, kwargs))
        if number >= len(self._outcomes):
            if not self._repeat:
                raise ScriptEndedError(f"call {number + 1} of a script of {len(self._outcomes)}")
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
        """Return or raise the next outcome, as a coroutine."""
        return self(*args, **kwargs)


@contextmanager
def recorded_events() -> Iterator[list[Event]]:
    """Collect the events of recovery during the block. Other hooks still run."""
    seen: list[Event] = []

    def record(event: Event) -> None:
        seen.append(event)

    events.add_hook(record)
    try:
        yield seen
    finally:
        events.remove_hook(record)
