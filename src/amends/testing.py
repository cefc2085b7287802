"""
For tests of code that recovers: time that passes at once, failures by script, and what recovery did; and S4's check for
the code an agent answers with.

    from amends.testing import FakeClock, Script

    def test_it_waits_as_told():
        fetch = Script(RateLimitedError("slow down", retry_after=1.5), "page")
        with FakeClock() as clock:
            assert recover(fetch) == "page"
        assert clock.waits == [1.5]

With pytest the fixtures `amends_clock`, `amends_events` and `amends_script` are there without an import.
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

# Turns of the event loop that other tasks get before time passes, so that they can act at this moment.
_TURNS = 10
# The same for other threads: they need real time, but not much.
_MOMENT = 0.002


class FakeClock:
    """
    Recovery's clock while the block lasts, for the whole process: nobody sleeps, and time passes when all wait.

    There is no jitter, so waits are exactly what was asked for, or 1, 2, 4 … seconds; `draw` brings it back.
    """

    def __init__(self, *, draw: Callable[[], float] | float = 0.0) -> None:
        self.waits: list[float] = []
        """Seconds of every wait in the order they began, also those in the line of an upstream."""
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
        """The time on this clock; it begins anywhere."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass without anybody waiting: a call that takes long."""
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
        await self._pass(self._begin(seconds), waiter.event.is_set)

    async def _pass(self, target: float, woken: Callable[[], bool]) -> None:
        """Let the other tasks act; then, if nobody waits for an earlier moment, it is that moment."""
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
    """A scripted call was made more often than the script says. No Exception: recovery must not catch it."""


class Script:
    """
    A function that does what it is told, call by call: exceptions and faults are raised, the rest is returned.

        fetch = Script(Fault(code="RATE_LIMITED", retry_after=2), ConnectionError(), "page")

    `await`ing code uses `fetch.acall`. `calls` holds the arguments of every call.
    """

    def __init__(self, *outcomes: Any, repeat: bool = False) -> None:
        """`repeat`: the last outcome goes on for ever."""
        self._outcomes = outcomes
        self._repeat = repeat
        self._lock = Lock()
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @property
    def count(self) -> int:
        """Calls so far."""
        return len(self.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The next outcome."""
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
        """The next outcome, for code that awaits."""
        return self(*args, **kwargs)


@contextmanager
def recorded_events() -> Iterator[list[Event]]:
    """The events of recovery while the block lasts, beside what the other hooks do."""
    seen: list[Event] = []

    def record(event: Event) -> None:
        seen.append(event)

    events.add_hook(record)
    try:
        yield seen
    finally:
        events.remove_hook(record)
