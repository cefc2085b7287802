"""Where answers and deliveries arrive, who waits for them, and who has waited long enough."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.stores.nats.connection import Link
    from amends.stores.nats.wire import RawMessage

__all__ = ["Answers", "Inbox", "Patience", "header"]


class Answers:
    """Where the answers to one request arrive."""

    __slots__ = ("arrived", "broken", "waiter")

    def __init__(self) -> None:
        self.arrived: list[RawMessage] = []
        self.broken = False
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Something arrived, broke, or took too long: let whoever waits look."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def next(self, patience: float) -> RawMessage | None:
        """The next answer; None when the connection broke or nothing came in time."""
        if not self.arrived and not self.broken and patience > 0:
            loop = asyncio.get_running_loop()
            self.waiter = loop.create_future()
            timer = loop.call_later(patience, self.wake)
            try:
                await self.waiter
            finally:
                timer.cancel()
                self.waiter = None
        return self.arrived.pop(0) if self.arrived else None


class Patience:
    """
    The same patience for many, by one timer: whoever begins to wait later has waited long enough later.

    A timer for each of thousands of requests, nearly all of them answered within a millisecond, would be most of what waiting costs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def next(self, answers: Answers) -> RawMessage | None:
        """See `Answers.next`."""
        if not answers.arrived and not answers.broken:
            loop = asyncio.get_running_loop()
            answers.waiter = waiter = loop.create_future()
            self._waiting.append((loop.time() + self._seconds, waiter))
            if self._timer is None:
                self._timer = loop.call_later(self._seconds, self._look, loop)
            try:
                await waiter
            finally:
                answers.waiter = None
        return answers.arrived.pop(0) if answers.arrived else None

    def stop(self) -> None:
        """Nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= now):
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)
        self._timer = loop.call_at(self._waiting[0][0], self._look, loop) if self._waiting else None


class Inbox:
    """
    A subscription of its own, for deliveries: they keep their subject, so only the subscription tells whose they are.

    One that nobody listens to any more hands tasks back, so that they go to the next worker at once.
    """

    __slots__ = ("answers", "link", "number", "subject")

    def __init__(self, link: Link, subject: str) -> None:
        self.link = link
        self.subject = subject
        self.answers: Answers | None = None
        self.number = 0
        """Of the subscription."""

    def arrived(self, message: RawMessage) -> None:
        """Called by the subscription for every delivery."""
        if self.answers is not None:
            self.answers.arrived.append(message)
            self.answers.wake()
        elif message.reply.startswith("$JS.ACK."):
            self.link.tell(message.reply, b"-NAK")


def header(message: RawMessage, name: str) -> str | None:
    """A header's value, or None."""
    return message.headers.get(name)
