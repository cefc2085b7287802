"""
Doing what must not be done twice, for as long as nobody else may do it.

The log refuses a worker that has lost its task, but what that worker does in the meantime the log cannot refuse. So it stops by
itself when its hold has run out by its own clock, which it has from before it asked: whoever takes the task over looks, or asks,
whether the step happened, and must not be told "no" while it is still about to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from amends.stores.contract import Lease
from amends.tasks.journal import Fenced

__all__ = ["held"]

T = TypeVar("T")


async def held(lease: Lease, work: Awaitable[T]) -> T:
    """
    The result of some work, which is cancelled when the lease runs out before it is extended.

    Raises:
        Fenced: it was.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    over = False
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal over, timer
        left = lease.expires_in
        if left > 0:
            timer = loop.call_later(left, look)
        else:
            over = True
            # Not by a timeout, which would take another turn of the loop: the work may be about to go on in this one.
            task.cancel()

    try:
        timer = loop.call_later(lease.expires_in, look)
        return await work
    except asyncio.CancelledError:
        if over and task.cancelling() == 1:  # nobody else wants it to stop
            raise Fenced from None
        raise
    finally:
        if timer is not None:
            timer.cancel()
        if over:
            # Also where it would not be stopped: what it did, it did, and the log decides whether that counts.
            task.uncancel()
