"""The background tasks of one node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from amends.durable.batch import run_without_waiting
from amends.logs import logger

__all__ = ["Tasks"]

_log = logger("amends.arcp")
_RESTART_PAUSE = 1.0
"""Seconds before a supervised task that failed is restarted."""


class Tasks:
    """Starts tasks, keeps references to them, and logs their exceptions."""

    def __init__(self, *, immediate: bool) -> None:
        """`immediate`: the store never suspends its caller, see `Traits.immediate`."""
        self.loop = asyncio.get_running_loop()
        self.running: set[asyncio.Task[Any]] = set()
        self.immediate = immediate

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in a task; an exception is logged."""
        task = self.loop.create_task(work)
        self.running.add(task)
        task.add_done_callback(self._done)
        return task

    def supervise(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """
        Run something for as long as the node lives, and restart it after an exception.

        Without the restart, the node would renew its row and appear alive while a part of its work is no longer done.
        """
        return self.spawn(self._restart_on_failure(work))

    def run_or_spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that awaits only the store: at once if the store never suspends, otherwise in a task."""
        if self.immediate:
            run_without_waiting(work)
        else:
            self.spawn(work)

    async def _restart_on_failure(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001 - the work has to be restarted after any failure
                _log.exception(
                    "the background task %s failed; it is restarted in %s s", _name_of(work), _RESTART_PAUSE
                )
                await asyncio.sleep(_RESTART_PAUSE)
            else:
                return

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            name = getattr(task.get_coro(), "__qualname__", "")
            _log.error("the background task %s failed", name, exc_info=error)


def _name_of(work: Callable[..., Any]) -> str:
    return str(getattr(getattr(work, "func", work), "__qualname__", work))
