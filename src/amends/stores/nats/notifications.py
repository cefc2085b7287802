"""
Words between processes: something was stored, and this is it. Plain NATS messages, which nobody keeps.

The server sends them itself, when it has stored an entry, to whoever listens for that log; where nobody does, nothing leaves
it. One that is lost (with a connection, or on its way from one server to another) is made good by looking now and then,
and by ringing every bell when a connection was made anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from amends.stores.signal import Signal

if TYPE_CHECKING:
    from amends.stores.contract import Entry
    from amends.stores.nats.connection import Link
    from amends.stores.nats.wire import RawMessage

__all__ = ["Bells"]

_KEPT = 64
_KEPT_BYTES = 1_000_000
"""What a bell remembers of what it was brought: whoever is slower reads the log."""


class _Bell(Signal):
    """A log's bell, and the newest entries it was brought."""

    def __init__(self, entry: Callable[[RawMessage], Entry | None]) -> None:
        super().__init__()
        self.listeners = 0
        self.number = 0
        self._entry = entry
        self._entries: deque[Entry] = deque()
        self._bytes = 0

    def heard(self, message: RawMessage) -> None:
        entry = self._entry(message)
        if entry is not None:
            self._entries.append(entry)
            self._bytes += len(entry.value)
            while len(self._entries) > _KEPT or self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._entries.popleft().value)
        self.ring()

    def brought(self, start: int) -> list[Entry]:
        found: list[Entry] = []
        for entry in self._entries:
            if entry.seq == start + len(found):
                found.append(entry)
        return found


class Bells:
    """The bells one link listens to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._bells: dict[str, _Bell] = {}

    def ring_all(self) -> None:
        """Words may have been lost: everybody looks."""
        for bell in self._bells.values():
            bell.ring()

    @asynccontextmanager
    async def listening(
        self, subject: str, entry: Callable[[RawMessage], Entry | None]
    ) -> AsyncGenerator[Signal]:
        """The bell of a subject, for as long as somebody listens; `entry` reads what a word brings."""
        bell = self._bells.get(subject)
        if bell is None:
            bell = _Bell(entry)
            bell.number = self._link.wire.hear(subject, bell.heard)
            self._bells[subject] = bell
        bell.listeners += 1
        try:
            yield bell
        finally:
            bell.listeners -= 1
            if not bell.listeners:
                self._bells.pop(subject, None)
                if not self._link.closed:
                    self._link.wire.unhear(bell.number)
