"""Work on a store that is completed although its caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

__all__ = ["complete", "in_background", "wait_for_background"]

T = TypeVar("T")

_TASKS: set[asyncio.Future[Any]] = set()
"""The event loop itself keeps only weak references to its tasks."""


def in_background(work: Awaitable[T]) -> asyncio.Future[T]:
    """Start a task that ends even if the caller is cancelled. Await `asyncio.shield` of it for its result."""
    task = asyncio.ensure_future(work)
    _TASKS.add(task)
    task.add_done_callback(_done)
    return task


def _done(task: asyncio.Future[Any]) -> None:
    _TASKS.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it when the caller was cancelled


async def complete(work: Awaitable[T]) -> T:
    """Run a write to its end, also if the caller is cancelled, so that no part of it is missing."""
    return await asyncio.shield(in_background(work))


async def wait_for_background() -> None:
    """Wait until nothing runs in the background of this event loop. For tests."""
    loop = asyncio.get_running_loop()
    while running := [task for task in _TASKS if task.get_loop() is loop]:
        await asyncio.wait(running)
