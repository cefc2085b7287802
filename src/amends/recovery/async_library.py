"""
What waits: a thread, or a task of the async library that it runs on, asyncio or trio. Code on anyio runs on one of the two.

asyncio and trio are imported only if the program has imported them. `amends.recovery.clock` calls these functions, so that
tests can replace them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from types import ModuleType

__all__ = [
    "BlockLimit",
    "TaskWaiter",
    "ThreadWaiter",
    "TrioWaiter",
    "Waiter",
    "in_event_loop",
    "new_task_waiter",
    "running_trio",
    "sleep",
    "time_limit",
    "wait_for_waiter",
    "within",
]

T = TypeVar("T")


def running_trio() -> ModuleType | None:
    """Return trio if this code runs in a task of trio, else None."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return None
    return trio


def in_event_loop() -> bool:
    """Return whether this thread is running an event loop, of asyncio or trio."""
    if running_trio() is not None:
        return True
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Waiter:
    """One entry of an upstream's queue. The upstream sets `granted` and `look_at`; the waiter only sleeps."""

    __slots__ = ("granted", "look_at", "priority", "size", "tries")

    def __init__(self) -> None:
        self.priority = 0
        """The priority of its operation. It does not change while the waiter waits."""
        self.size = 0
        """The size of its request in bytes."""
        self.tries = 0
        """The calls that the operation of this waiter has made."""
        self.granted = False
        """Whether the call of this waiter may be sent."""
        self.look_at = 0.0
        """When the upstream asked this waiter to call `look` again."""

    def wake(self) -> None:
        """End the current sleep, or the next one if the waiter is awake."""

    def clear(self) -> None:
        """Discard earlier calls of `wake`, so that the next sleep lasts."""


class ThreadWaiter(Waiter):
    """A waiting thread."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def wake(self) -> None:  # noqa: D102
        self.event.set()

    def clear(self) -> None:  # noqa: D102
        self.event.clear()


class _OneTaskEvent:
    """The same as `asyncio.Event`, for one waiting task. The list of tasks in that one takes 0.7 KB of each parked call."""

    __slots__ = ("_loop", "_set", "_woken")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop, self._set = loop, False
        self._woken: Future[None] | None = None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def clear(self) -> None:
        self._set = False

    async def wait(self) -> None:
        if not self._set:
            self._woken = self._loop.create_future()
            await self._woken


class TaskWaiter(Waiter):
    """A waiting task. Its event is set on its own event loop, from whichever thread `wake` is called."""

    __slots__ = ("event", "loop", "thread")

    def __init__(self) -> None:
        import asyncio

        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.event = _OneTaskEvent(self.loop)

    def wake(self) -> None:  # noqa: D102
        if threading.get_ident() == self.thread:
            self.event.set()
            return
        try:
            self.loop.call_soon_threadsafe(self.event.set)
        except RuntimeError:
            return  # the loop is closed, and its tasks with it

    def clear(self) -> None:  # noqa: D102
        self.event.clear()


class TrioWaiter(Waiter):
    """A waiting task of trio. `wake` may be called from any thread."""

    __slots__ = ("event", "thread", "token")

    def __init__(self) -> None:
        trio = sys.modules["trio"]
        super().__init__()
        self.token = trio.lowlevel.current_trio_token()
        self.thread = threading.get_ident()
        self.event = trio.Event()

    def wake(self) -> None:  # noqa: D102
        if threading.get_ident() == self.thread:
            self.event.set()
            return
        trio = sys.modules["trio"]
        try:
            self.token.run_sync_soon(self.event.set)
        except trio.RunFinishedError:
            return  # the run is over, and its tasks with it

    def clear(self) -> None:  # noqa: D102
        if self.event.is_set():
            trio = sys.modules["trio"]
            self.event = trio.Event()


def new_task_waiter() -> Waiter:
    """Return a waiter for the current task."""
    return TaskWaiter() if running_trio() is None else TrioWaiter()


def sleep(seconds: float) -> Awaitable[None]:
    """Wait so many seconds in this task."""
    trio = running_trio()
    if trio is not None:
        return trio.sleep(seconds)  # type: ignore[no-any-return]
    import asyncio

    return asyncio.sleep(seconds)


async def wait_for_waiter(waiter: Any, seconds: float) -> None:
    """Wait until the waiter is woken, at most so many seconds."""
    if isinstance(waiter, TrioWaiter):
        trio = sys.modules["trio"]
        with trio.move_on_after(seconds):
            await waiter.event.wait()
        return
    import asyncio
    from contextlib import suppress

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiter.event.wait()


def time_limit(seconds: float | None) -> AbstractAsyncContextManager[Any]:
    """
    Return a context that cancels its block after so many seconds; None: no limit.

    It raises the builtin TimeoutError when the time is over.
    """
    if running_trio() is not None:
        return _trio_limit(inf if seconds is None else max(0.0, seconds))
    import asyncio

    return asyncio.timeout(seconds)


@asynccontextmanager
async def _trio_limit(seconds: float) -> AsyncGenerator[None]:
    trio = sys.modules["trio"]
    with trio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimeoutError


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    """
    Await something for at most so many seconds, then cancel it.

    Raises:
        TimeoutError: of amends (TIMEOUT, the effect unknown); the time is over.

    """
    trio = running_trio()
    if trio is not None:
        with trio.move_on_after(seconds) as scope:
            result = await awaitable
        if scope.cancelled_caught:
            raise _time_is_over(seconds)
        return result
    import asyncio

    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await awaitable
    except TimeoutError:
        if not limit.expired():
            raise  # the call's own
        raise _time_is_over(seconds) from None


class BlockLimit:
    """The same as `within` for a block of code: cancels the running task's block after so many seconds."""

    __slots__ = ("_limit", "_scope", "_seconds")

    def __init__(self, seconds: float) -> None:
        import asyncio

        trio = running_trio()
        self._seconds = seconds
        self._scope: Any = None if trio is None else trio.move_on_after(seconds)
        self._limit = asyncio.timeout(seconds) if trio is None else None

    def enter(self) -> None:
        """Start the time."""
        if self._limit is None:
            self._scope.__enter__()
        else:
            _at_once(self._limit.__aenter__())

    def leave(self, error: BaseException | None) -> BaseException | None:
        """End the block and return its error: TIMEOUT if the time was over."""
        kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
        if self._limit is None:
            self._scope.__exit__(kind, error, trace)
            return _time_is_over(self._seconds) if self._scope.cancelled_caught else error
        try:
            _at_once(self._limit.__aexit__(kind, error, trace))
        except TimeoutError:
            return _time_is_over(self._seconds)
        return error


def _at_once(coroutine: Any) -> None:
    """Run a coroutine that does not wait: `asyncio.timeout` is an async context manager that never does."""
    with suppress(StopIteration):
        coroutine.send(None)


def _time_is_over(seconds: float) -> Exception:
    from amends.errors import TimeoutError as OverError

    return OverError(f"The call took longer than its timeout of {seconds:g} s")
