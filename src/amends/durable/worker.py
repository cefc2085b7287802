"""
Take messages from a queue and handle up to a number of them at once.

A message only says that there may be work to do; a log decides. A superfluous message therefore costs one read. While messages
are handled, a function is called at intervals that keeps what they hold: it extends leases and reads commands.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from amends.stores.contract import Lease, Queue
from amends.stores.errors import StoreClosedError, StoreError

__all__ = ["Worker"]

_BATCH = 8
"""Messages taken at once under load."""
_PAUSE = 1.0
"""Seconds to wait after the store did not answer."""
_STOPPING = 5.0
"""Seconds to wait for cancelled handlers to end."""


class Worker:
    """Takes the messages of a queue."""

    def __init__(
        self,
        queue: Queue,
        handle: Callable[[Lease], Coroutine[Any, Any, None]],
        tick: Callable[[], Awaitable[None]],
        *,
        concurrency: int,
        every: float,
        log: logging.Logger,
    ) -> None:
        """
        Args:
            queue: the queue.
            handle: handles one message.
            tick: called at intervals while messages are handled.
            concurrency: messages handled at once.
            every: seconds between two calls of `tick`.
            log: gets what fails unexpectedly.
        """
        self._queue, self._handle, self._tick = queue, handle, tick
        self._concurrency, self._every, self._log = concurrency, every, log
        self.running: set[asyncio.Task[None]] = set()
        """The handlers under way."""
        self._ticking: asyncio.Task[None] | None = None

    async def serve(self, prepare: Callable[[], Awaitable[object]] | None = None) -> None:
        """Take messages until this is cancelled or the store is closed. `prepare` is called first, and after a failure."""
        while True:
            try:
                if prepare is not None:
                    await prepare()
                while True:
                    await self._take()
            except StoreClosedError:
                return
            except StoreError as error:
                # Running handlers go on, or are fenced.
                self._log.warning("the store does not answer; trying again in %s s: %s", _PAUSE, error)
            except Exception:  # noqa: BLE001 - otherwise the worker would seem alive without taking messages
                self._log.exception("unexpected error in a worker; trying again in %s s", _PAUSE)
            await asyncio.sleep(_PAUSE)

    async def drain(self) -> int:
        """Handle all messages that are due, and return their number."""
        count = 0
        while True:
            lease = await self._queue.take()
            if lease is None:
                if not self.running:
                    return count
                await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
                continue
            count += 1
            await self._wait_for_slot()
            self._spawn(lease)

    async def stop(self, grace: float) -> None:
        """Wait up to `grace` seconds for the handlers under way, then cancel them."""
        if self.running and grace > 0:
            await asyncio.wait(self.running, timeout=grace)
        for task in list(self.running):
            task.cancel()
        if self.running:
            # A handler that ignores its cancellation is left behind: its lease ends, and its writes are refused.
            await asyncio.wait(list(self.running), timeout=_STOPPING)
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    async def _take(self) -> None:
        """Wait for the next message and start its handler; under load, take further messages at once."""
        await self._wait_for_slot()
        lease = await self._queue.take(wait=None)
        if lease is not None:
            self._spawn(lease)
        if len(self.running) < 2:
            return
        # Concurrent takes share one commit. With 64 tasks at once on SQLite with fsync, a task costs about a ninth of a DBOS
        # workflow's processor time; with single takes it is about a quarter, and the target is a fifth (bench/tasks.py).
        count = min(_BATCH, self._concurrency - len(self.running))
        taken = await asyncio.gather(*(self._queue.take() for _ in range(count)), return_exceptions=True)
        for each in taken:
            if each is not None and not isinstance(each, BaseException):
                self._spawn(each)
        for each in taken:
            if isinstance(each, BaseException):
                raise each

    async def _wait_for_slot(self) -> None:
        while len(self.running) >= self._concurrency:
            await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)

    def _spawn(self, lease: Lease) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._handle(lease))
        self.running.add(task)
        task.add_done_callback(self._done)
        if self._ticking is None or self._ticking.done():
            self._ticking = loop.create_task(self._keep_ticking())

    def _done(self, task: asyncio.Task[None]) -> None:
        self.running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error(
                "unexpected error in a worker; the message will be taken again", exc_info=task.exception()
            )

    async def _keep_ticking(self) -> None:
        while self.running:
            await asyncio.sleep(self._every)
            await self._tick()
