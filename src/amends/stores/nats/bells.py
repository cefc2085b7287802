"""
Words between processes: something was stored, look. Plain NATS messages, which nobody keeps.

One that is lost (with a connection, with the process that was about to send it) is made good by looking now and then,
and by ringing every bell when a connection was made anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from amends.stores.signal import Signal

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from amends.stores.nats.link import Link

__all__ = ["Bells"]


class _Bell:
    __slots__ = ("listeners", "signal", "subscription")

    def __init__(self) -> None:
        self.signal = Signal()
        self.listeners = 0
        self.subscription: Subscription | None = None

    async def ring(self, _: Msg) -> None:
        self.signal.ring()


class Bells:
    """The bells one link listens to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._bells: dict[str, _Bell] = {}

    async def ring(self, subject: str) -> None:
        """Call whoever listens, in whichever process."""
        await self._link.tell(subject)

    def ring_all(self) -> None:
        """Words may have been lost: everybody looks."""
        for bell in self._bells.values():
            bell.signal.ring()

    @asynccontextmanager
    async def listening(self, subject: str) -> AsyncGenerator[Signal]:
        """The bell of a subject, for as long as somebody listens."""
        bell = self._bells.setdefault(subject, _Bell())
        bell.listeners += 1
        try:
            if bell.subscription is None:
                bell.subscription = await self._link.client.subscribe(subject, cb=bell.ring)
            yield bell.signal
        finally:
            bell.listeners -= 1
            if not bell.listeners:
                self._bells.pop(subject, None)
                if bell.subscription is not None:
                    with contextlib.suppress(Exception):
                        await bell.subscription.unsubscribe()
