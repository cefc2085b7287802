"""
Waiting for tasks, whoever works on them.

What this process works on itself, it hears of at once. For the rest it follows their logs, as long as there are few of them;
of many, it looks now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from amends.stores.contract import Store
from amends.stores.errors import StoreClosedError
from amends.tasks.documents import ENDED, Status
from amends.tasks.entries import decode
from amends.tasks.state import TaskState
from amends.tasks.task_reader import known, log_name

__all__ = ["Waiting"]

_LOCAL = (0.1, 0.5)
"""Seconds in which a task is most likely done by this very process; the longer ones when many are waited for."""
_LOOK = (0.5, 2.0)
"""Seconds between looks at a task another process works on, at first and at most, when too many are followed already."""
_FOLLOWED = 16
_REST = frozenset({*ENDED, Status.INPUT_REQUIRED})


class Waiting:
    """Those who wait for tasks in this process."""

    def __init__(self, space: str, *, worker: bool) -> None:
        """
        Args:
            space: which set of tasks.
            worker: whether this process works on tasks itself.
        """
        self._space, self._works = space, worker
        self._futures: dict[str, set[asyncio.Future[TaskState]]] = {}
        self._following = 0
        self._closings = 0

    def __len__(self) -> int:
        """How many tasks are waited for."""
        return len(self._futures)

    def tell(self, state: TaskState) -> None:
        """This process knows that a task is over or needs an answer."""
        for future in self._futures.get(state.head.id, ()):
            if not future.done():
                future.set_result(state)

    def close(self) -> None:
        """Nobody who waits will hear of anything any more."""
        self._closings += 1
        for future in [each for group in self._futures.values() for each in group]:
            if not future.done():
                future.set_exception(StoreClosedError("of this orchestrator"))

    async def wait(self, store: Store, id: str, *, new: bool) -> TaskState:
        """
        A task's state when it is over or needs an answer.

        Args:
            store: where it is.
            id: the task.
            new: whether it was submitted here a moment ago: there is no use in looking at it then.

        Raises:
            TaskNotFoundError: there is no such task.
            StoreClosedError: the orchestrator was closed meanwhile; the task goes on.
        """
        closings = self._closings
        state = None if new else await self._state(store, id)
        here = self._works
        pause = _LOOK[0]
        while state is None or not _at_rest(state):
            if self._closings != closings:
                # While this one looked for itself, and did not listen.
                raise StoreClosedError("of this orchestrator")
            with self._told(id) as future:
                if here:
                    # This process does it, most likely.
                    here = False
                    state = await self._looked(future, store, id, _LOCAL[len(self._futures) > _FOLLOWED])
                elif not self._works or self._following < _FOLLOWED:
                    state = await self._followed(future, store, id)
                else:
                    state = await self._looked(future, store, id, pause)
                    pause = min(pause * 2, _LOOK[1])
        return state

    async def _state(self, store: Store, id: str) -> TaskState:
        return (await known(store, self._space, id))[0]

    @contextmanager
    def _told(self, id: str) -> Iterator[asyncio.Future[TaskState]]:
        """A future that `tell` is heard by."""
        future: asyncio.Future[TaskState] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(id, set()).add(future)
        try:
            yield future
        finally:
            if future.done():
                future.exception()  # heard, or of no use any more
            self._futures[id].discard(future)
            if not self._futures[id]:
                del self._futures[id]

    async def _looked(
        self, future: asyncio.Future[TaskState], store: Store, id: str, seconds: float
    ) -> TaskState:
        """What is told within so many seconds, else what the log says then."""
        await asyncio.wait([future], timeout=seconds)
        return future.result() if future.done() else await self._state(store, id)

    async def _followed(self, future: asyncio.Future[TaskState], store: Store, id: str) -> TaskState:
        """What is told, or what the log comes to: whichever is first."""
        self._following += 1
        follow = asyncio.ensure_future(self._follow(store, id))
        try:
            await asyncio.wait([future, follow], return_when=asyncio.FIRST_COMPLETED)
            return future.result() if future.done() else follow.result()
        finally:
            self._following -= 1
            if not follow.done():
                follow.cancel()
                await asyncio.wait([follow])

    async def _follow(self, store: Store, id: str) -> TaskState:
        """A task's state when its log says that it is over or needs an answer."""
        state, last = await known(store, self._space, id)
        if _at_rest(state):
            return state
        following: Any = store.log(log_name(self._space, id)).follow(last + 1)
        async with aclosing(following):
            async for entry in following:
                state.apply(decode(entry.value))
                if _at_rest(state):
                    break
        return state


def _at_rest(state: TaskState) -> bool:
    return state.status in _REST and not state.heard
