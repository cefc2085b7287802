"""
Wait for tasks, whichever process works on them.

A process that works on tasks notifies its own waiters directly. For a task of another process, a waiter follows the task's
log. In a process that also works on tasks, only `_FOLLOWED` waiters follow logs at a time; the others read them at intervals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

from amends.durable.journal import ImpossibleRecord
from amends.stores.contract import Store
from amends.stores.errors import StoreClosedError
from amends.tasks.documents import AT_REST
from amends.tasks.fold import fold
from amends.tasks.journal import log_name, read_existing, task_logs
from amends.tasks.state import TaskState

__all__ = ["TaskWaiters", "WaitTimeoutError"]

_LOCAL = (0.1, 0.5)
"""Seconds to wait for a notification from this process before the log is followed: with few waiters, and with many."""
_POLL = (0.5, 2.0)
"""Seconds between two reads of a log that is not followed: at first, and at most."""
_FOLLOWED = 16
"""Logs followed at the same time by a process that works on tasks itself."""
_READ_AGAIN = 30.0
"""Seconds after which a followed log is read again: if it was deleted, nothing more is appended to it."""


class WaitTimeoutError(TimeoutError):
    """
    A task was not over after the time that a caller wanted to wait. The task goes on.

        try:
            response = await orchestrator.run("book", {"train": 7}, timeout=30)
        except WaitTimeoutError as late:
            response = await orchestrator.get(late.id).wait()
    """

    unanswered = True
    """For `amends.foreign.in_doubt`: whoever called the code that waited must not cause a second task."""

    def __init__(self, id: str, seconds: float) -> None:
        super().__init__(id, seconds)
        self.id, self.seconds = id, seconds

    def __str__(self) -> str:
        return f"task {self.id!r} was not over after {self.seconds:g} s; it goes on: wait again, or cancel it"


class TaskWaiters:
    """The callers in this process that wait for tasks."""

    def __init__(self, space: str, *, worker: bool) -> None:
        """
        Args:
            space: the name of the set of tasks.
            worker: whether this process works on tasks itself.
        """
        self._space, self._works = space, worker
        self._futures: dict[str, set[asyncio.Future[TaskState]]] = {}
        self._following = 0

    def __len__(self) -> int:
        """The number of tasks that have waiters."""
        return len(self._futures)

    def notify(self, state: TaskState) -> None:
        """Give the waiters of a task its state: it is over, or it needs an answer."""
        for future in self._futures.get(state.head.id, ()):
            if not future.done():
                future.set_result(state)

    def close(self) -> None:
        """Raise StoreClosedError in all waiters."""
        for future in [each for group in self._futures.values() for each in group]:
            if not future.done():
                future.set_exception(StoreClosedError("of this orchestrator"))

    async def wait(
        self, store: Store, id: str, seconds: float | None = None, *, new: bool = False
    ) -> TaskState:
        """
        Wait until a task is over or needs an answer, and return its state.

        Args:
            store: where the task is.
            id: the task.
            seconds: the longest wait.
            new: the task was stored just now, so a worker of this process will notify before there is anything to read.

        Raises:
            TaskNotFoundError: there is no such task.
            WaitTimeoutError: it is not over after so many seconds; the task goes on.
            StoreClosedError: the orchestrator was closed while this waited; the task goes on.
        """
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._wait(store, id, new)
        except TimeoutError:
            if limit.expired():
                raise WaitTimeoutError(id, seconds or 0.0) from None
            raise

    async def _wait(self, store: Store, id: str, new: bool) -> TaskState:
        local, interval = self._works, _POLL[0]
        if local and new:
            local = False
            with self._subscription(id) as notified:
                await self._wait_locally(notified)
                if notified.done() and _at_rest(notified.result()):
                    return notified.result()
        while True:
            with self._subscription(id) as notified:
                # Read after subscribing, so that no change between the two is missed.
                state, last, _ = await read_existing(store, self._space, id)
                if not _at_rest(state):
                    if local:
                        local = False
                        await self._wait_locally(notified)
                    elif not self._works or self._following < _FOLLOWED:
                        state = await self._follow(notified, store, state, last)
                    else:
                        await asyncio.wait([notified], timeout=interval)
                        interval = min(interval * 2, _POLL[1])
                    if notified.done():
                        state = notified.result()
            if _at_rest(state):
                return state

    async def _wait_locally(self, notified: asyncio.Future[TaskState]) -> None:
        """Wait a short time for a notification from this process."""
        await asyncio.wait([notified], timeout=_LOCAL[len(self._futures) > _FOLLOWED])

    @contextmanager
    def _subscription(self, id: str) -> Iterator[asyncio.Future[TaskState]]:
        """A future that `notify` and `close` complete."""
        future: asyncio.Future[TaskState] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(id, set()).add(future)
        try:
            yield future
        finally:
            if future.done():
                future.exception()  # retrieved, so that asyncio does not log it
            self._futures[id].discard(future)
            if not self._futures[id]:
                del self._futures[id]

    async def _follow(
        self, notified: asyncio.Future[TaskState], store: Store, state: TaskState, last: int
    ) -> TaskState:
        """Follow the log for some time, until the task is at rest or `notified` is done. Return the task's state."""
        self._following += 1
        follow: asyncio.Future[TaskState] = asyncio.ensure_future(self._apply_entries(store, state, last))
        both: list[asyncio.Future[TaskState]] = [notified, follow]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=_READ_AGAIN)
            return follow.result() if follow.done() else state
        finally:
            self._following -= 1
            if not follow.done():
                follow.cancel()
                await asyncio.wait([follow])

    async def _apply_entries(self, store: Store, state: TaskState, last: int) -> TaskState:
        following = store.log(log_name(self._space, state.head.id)).follow(last + 1)
        async with aclosing(following):
            async for entry in following:
                try:
                    state = fold(state, task_logs(self._space).decode(entry.value))
                except ImpossibleRecord:
                    break  # the whole log is read again
                if _at_rest(state):
                    break
        return state


def _at_rest(state: TaskState) -> bool:
    return state.status in AT_REST and not state.command_pending
