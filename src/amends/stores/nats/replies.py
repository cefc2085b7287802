"""Buffers for replies and deliveries, and their waiters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["Replies", "header", "headers_of"]


class Replies:
    """The replies to one request."""

    __slots__ = ("arrived", "broken", "waiter")

    def __init__(self) -> None:
        self.arrived: list[Msg] = []
        self.broken = False
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Wake the waiter after a reply, a lost connection or a timeout."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def next(self, wait: float) -> Msg | None:
        """The next reply; None if the connection broke or none came within `wait` seconds."""
        if not self.arrived and not self.broken and wait > 0:
            loop = asyncio.get_running_loop()
            self.waiter = loop.create_future()
            # A timer instead of asyncio.timeout, which cancels and costs three times as much; see bench/stores.py.
            timer = loop.call_later(wait, self.wake)
            try:
                await self.waiter
            finally:
                timer.cancel()
                self.waiter = None
        return self.arrived.pop(0) if self.arrived else None


def header(message: Msg, name: str) -> str | None:
    """The value of a header, or None. A status that the server sent is the header `Status`."""
    return message.headers.get(name) if message.headers else None


def headers_of(message: Msg) -> dict[str, str]:
    """All headers of a message."""
    return message.headers or {}
