"""
The threads of one agent, for functions that are not async.

A thread cannot be stopped. A caller that no longer waits for one leaves it running, and a later call with the same key waits for
that thread instead of starting another. The threads are daemons, so the end of the process does not wait for them.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

__all__ = ["NoThreadError", "Threads"]

LIMIT = 32
"""Threads of one agent, if it does not choose."""


class NoThreadError(Exception):
    """All threads of the agent are in use."""


class Threads:
    """The threads of one agent. Not more than a number of them run at once."""

    def __init__(self, limit: int = LIMIT, name: str = "agent") -> None:
        if limit < 1:
            raise ValueError("an agent needs at least one thread")
        self._limit, self._name = limit, name
        self._running: dict[Hashable, Future[Any]] = {}

    def running(self, key: Hashable) -> Future[Any] | None:
        """The future of the thread that was started with this key, if it has not ended."""
        return self._running.get(key)

    async def run(
        self, key: Hashable, function: Callable[..., Any], *arguments: Any, wait: bool = False
    ) -> Any:
        """
        Run a function in a thread and return its result; if a thread with this key is running, wait for that one.

        Args:
            key: identifies the call: the same for every attempt of it.
            function: the function.
            arguments: its arguments.
            wait: whether to wait for a thread if all are in use.

        Raises:
            NoThreadError: all threads are in use, and `wait` is false.
        """
        while True:
            found = self._running.get(key)
            if found is not None:
                return await asyncio.wrap_future(found)
            if len(self._running) < self._limit:
                return await asyncio.wrap_future(self._start(key, function, arguments))
            if not wait:
                raise NoThreadError
            waiting = [asyncio.wrap_future(each) for each in list(self._running.values())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, key: Hashable, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        self._running[key] = future
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result = context.run(function, *arguments)
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                self._running.pop(key, None)
                future.set_exception(error)
            else:
                self._running.pop(key, None)
                future.set_result(result)

        thread = threading.Thread(target=work, name=f"amends-{self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            del self._running[key]
            raise
        return future
