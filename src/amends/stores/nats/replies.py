"""Buffers for replies and deliveries, and the timeouts of their waiters."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.stores.nats.connection import NatsConnection
    from amends.stores.nats.wire import RawMessage

__all__ = ["Inbox", "Replies", "ReplyTimeout", "header"]


class Replies:
    """The replies to one request."""

    __slots__ = ("arrived", "broken", "waiter")

    def __init__(self) -> None:
        self.arrived: list[RawMessage] = []
        self.broken = False
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Wake the waiter after a reply, a lost connection or a timeout."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def next(self, wait: float) -> RawMessage | None:
        """The next reply; None if the connection broke or none came within `wait` seconds."""
        if not self.arrived and not self.broken and wait > 0:
            loop = asyncio.get_running_loop()
            self.waiter = loop.create_future()
            timer = loop.call_later(wait, self.wake)
            try:
                await self.waiter
            finally:
                timer.cancel()
                self.waiter = None
        return self.arrived.pop(0) if self.arrived else None


class ReplyTimeout:
    """
    One timeout for many waiters, with one timer: they time out in the order in which they began to wait.

    With thousands of requests, nearly all answered within a millisecond, a timer for each would be most of the cost of waiting.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def next(self, replies: Replies) -> RawMessage | None:
        """See `Replies.next`."""
        if not replies.arrived and not replies.broken:
            loop = asyncio.get_running_loop()
            replies.waiter = waiter = loop.create_future()
            self._waiting.append((loop.time() + self._seconds, waiter))
            if self._timer is None:
                self._timer = loop.call_later(self._seconds, self._expire, loop)
            try:
                await waiter
            finally:
                replies.waiter = None
        return replies.arrived.pop(0) if replies.arrived else None

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= now):
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)
        self._timer = loop.call_at(self._waiting[0][0], self._expire, loop) if self._waiting else None


class Inbox:
    """
    A subscription for the deliveries of one pull request: deliveries keep their subject, so the subscription identifies them.

    Without a waiter it returns deliveries to the server, which passes them to the next worker at once.
    """

    __slots__ = ("connection", "number", "replies", "subject")

    def __init__(self, connection: NatsConnection, subject: str) -> None:
        self.connection = connection
        self.subject = subject
        self.replies: Replies | None = None
        self.number = 0
        """The number of the subscription."""

    def receive(self, message: RawMessage) -> None:
        """Handle a delivery."""
        if self.replies is not None:
            self.replies.arrived.append(message)
            self.replies.wake()
        elif message.reply.startswith("$JS.ACK."):
            self.connection.publish(message.reply, b"-NAK")


def header(message: RawMessage, name: str) -> str | None:
    """The value of a header, or None."""
    return message.headers.get(name)
