"""An event loop in a thread, on which plain functions await a store."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread, started at the first use in each process."""

    def __init__(self, seconds: float, name: str = "amends-keys") -> None:
        self._seconds, self._name = seconds, name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Whether the thread runs in this process."""
        return self._loop is not None and self._process == os.getpid()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                # After a fork the parent's thread is gone.
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Run a coroutine on the loop and return its result.

        Raises:
            TimeoutError: it took too long and was cancelled.

        """
        running = self.start(work)
        try:
            return running.result(self._seconds)
        except TimeoutError:
            running.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._thread is not None and self._process == os.getpid():
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join(self._seconds)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel what is left and close it."""
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_tasks())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _cancel_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
