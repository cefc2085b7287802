"""The messages of a request that are read before its handler asks for them, so that a client that leaves is noticed."""

from __future__ import annotations

import asyncio
from collections import deque

from amends.http.asgi_types import Message

__all__ = ["ReadAhead"]

_MESSAGE = 512
"""Bytes that a message counts in addition to its body, so that many empty ones are bounded too."""


class ReadAhead:
    """
    A queue of ASGI messages, bounded by the bytes of their bodies. A disconnect is the last message, and is repeated.

    >>> async def first() -> object:
    ...     messages = ReadAhead(100)
    ...     await messages.put({"type": "http.request", "body": b"whole"})
    ...     return (await messages.get())["body"]
    >>> asyncio.run(first())
    b'whole'
    """

    def __init__(self, limit: int) -> None:
        """
        Args:
            limit: bytes that may wait. A single message may be larger.

        """
        self._limit = limit
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._last: Message | None = None
        self._changed = asyncio.Condition()

    async def put(self, message: Message) -> None:
        """Add a message, when there is room for it."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._waiting or self._bytes < self._limit)
            if message["type"] == "http.disconnect":
                self._last = message
            else:
                self._waiting.append(message)
                self._bytes += _size(message)
            self._changed.notify_all()

    async def get(self) -> Message:
        """Return the next message, when there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._waiting) or self._last is not None)
            if not self._waiting:
                assert self._last is not None
                return self._last
            message = self._waiting.popleft()
            self._bytes -= _size(message)
            self._changed.notify_all()
            return message


def _size(message: Message) -> int:
    return len(message.get("body") or b"") + _MESSAGE
