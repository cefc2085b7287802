"""
Record the outcome of a thread that ended after its step had been given up.

A time-out cannot stop a thread. The step is in doubt until the thread ends; what it returned, or what `verify` finds then, is
appended to the task's log as a verification, as a user could do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from amends.core.enums import Executed
from amends.errors.base import FaultError
from amends.stores.contract import Store
from amends.stores.errors import StoreError
from amends.tasks.commands import send_command, verify
from amends.tasks.task_reader import TaskNotFoundError
from amends.tasks.values import to_json_value

__all__ = ["LateResults"]

_log = logging.getLogger("amends.tasks")
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two attempts to record an outcome: the doubt itself may not be recorded yet."""


class LateResults:
    """The threads of this process whose steps are in doubt."""

    def __init__(self) -> None:
        self._watched: dict[Future[Any], asyncio.Task[None]] = {}

    def watch(
        self,
        thread: Future[Any],
        store: Store,
        space: str,
        step: tuple[str, str],
        *,
        verify: Callable[[], Awaitable[Any]],
        clock: Callable[[], float],
    ) -> None:
        """
        Record the outcome of a thread when it ends.

        Args:
            thread: the thread's future.
            store: where the task is.
            space: the name of the set of tasks.
            step: the task's id and the name of the step.
            verify: checks whether the step happened, if the thread raised an exception.
            clock: wall-clock seconds.
        """
        if thread in self._watched:
            return
        work = self._record(thread, store, space, step, verify, clock)
        task = asyncio.get_running_loop().create_task(work)
        self._watched[thread] = task
        task.add_done_callback(lambda _: self._watched.pop(thread, None))

    async def close(self) -> None:
        """Watch no longer. The threads go on; another worker verifies their steps."""
        watching = list(self._watched.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    async def _record(
        self,
        thread: Future[Any],
        store: Store,
        space: str,
        step: tuple[str, str],
        check: Callable[[], Awaitable[Any]],
        clock: Callable[[], float],
    ) -> None:
        seen = await _outcome(thread, check)
        if seen is None:
            return
        happened, result = seen
        id, name = step
        for pause in _PAUSES:
            try:
                await send_command(
                    store,
                    space,
                    id,
                    lambda state: verify(state, now=clock(), happened=happened, result=result, step=name),
                    _not_here,
                )
            except (FaultError, StoreError):
                await asyncio.sleep(pause)
            except TaskNotFoundError:
                return
            else:
                return
        _log.warning("the late outcome of step %s of task %s could not be recorded", name, id)


async def _outcome(thread: Future[Any], check: Callable[[], Awaitable[Any]]) -> tuple[bool, Any] | None:
    """Whether the step happened, and its result; None if that is unknown."""
    try:
        return True, to_json_value(await asyncio.wrap_future(thread))
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a thread may end with any exception
        if isinstance(error, FaultError) and error.fault.executed is Executed.NO:
            return False, None
    seen = await check()
    return None if seen is None else (seen is not False, None if seen is False else seen)


async def _not_here(_: str) -> bool:
    return False
