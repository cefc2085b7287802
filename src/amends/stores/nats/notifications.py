"""
Change notifications: NATS messages that the server sends when it has stored an entry of a log.

They are plain NATS messages, which are not stored. The server sends them only to subscribers of the log. One may be lost
with a connection or between two servers; watchers therefore also poll from time to time, and all are notified after a
reconnect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from amends.stores.signal import Signal

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from amends.stores.contract import Entry
    from amends.stores.nats.connection import NatsConnection

__all__ = ["Notifications"]

_KEPT = 64
_KEPT_BYTES = 1_000_000
"""How many entries, and how many bytes of them, a subscription keeps. A slower watcher reads the log."""


class _Subscription(Signal):
    """The signal of one log, with the newest entries that came with notifications."""

    def __init__(self, parse: Callable[[Msg], Entry | None]) -> None:
        super().__init__()
        self.watchers = 0
        self.subscription: Subscription | None = None
        self.subscribing = asyncio.Lock()
        self._parse = parse
        self._entries: deque[Entry] = deque()
        self._bytes = 0

    async def receive(self, message: Msg) -> None:
        entry = self._parse(message)
        if entry is not None:
            self._entries.append(entry)
            self._bytes += len(entry.value)
            while len(self._entries) > _KEPT or self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._entries.popleft().value)
        self.notify()

    def entries(self, start: int) -> list[Entry]:
        found: list[Entry] = []
        for entry in self._entries:
            if entry.seq == start + len(found):
                found.append(entry)
        return found


class Notifications:
    """The subscriptions of one connection."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._subscriptions: dict[str, _Subscription] = {}

    def notify_all(self) -> None:
        """Notify all watchers, because notifications may have been lost."""
        for subscription in self._subscriptions.values():
            subscription.notify()

    @asynccontextmanager
    async def subscribe(self, subject: str, parse: Callable[[Msg], Entry | None]) -> AsyncGenerator[Signal]:
        """The signal of a subject; unsubscribes when the last watcher leaves. `parse` extracts the entry of a notification."""
        subscription = self._subscriptions.get(subject)
        if subscription is None:
            subscription = self._subscriptions[subject] = _Subscription(parse)
        subscription.watchers += 1
        try:
            async with subscription.subscribing:
                if subscription.subscription is None:
                    subscription.subscription = await self._connection.subscribe(
                        subject, subscription.receive
                    )
            yield subscription
        finally:
            subscription.watchers -= 1
            if not subscription.watchers:
                self._subscriptions.pop(subject, None)
                if subscription.subscription is not None:
                    await self._connection.unsubscribe(subscription.subscription)
