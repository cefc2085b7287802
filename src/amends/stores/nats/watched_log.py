# ruff: noqa: D102  (contract.py documents the methods)
"""Reading, following and watching a log on NATS. The server sends each stored entry to the log's watchers (see `notifications`)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from amends.stores.contract import Bounds, Entry
from amends.stores.errors import StoreError, StoreUnavailableError, TrimmedError
from amends.stores.nats.stream_settings import NOTIFICATION
from amends.stores.nats.streams import Streams
from amends.stores.signal import Signal

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["PAGE", "WatchedLog"]

PAGE = 256
_POLL_EVERY = 1.0
_REPLICA_LAG = 0.02


class WatchedLog(ABC):
    """A log in a stream: the stream of this kind and name, and what the log's subject has beyond that of the stream."""

    def __init__(self, streams: Streams, name: str, kind: str, stream_name: str, suffix: str) -> None:
        self._streams, self.name = streams, name
        self._kind, self._stream_name, self._suffix = kind, stream_name, suffix

    @abstractmethod
    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]: ...
    @abstractmethod
    async def bounds(self) -> Bounds: ...
    @abstractmethod
    async def entries_from(self, number: int, limit: int) -> list[Entry]:
        """The entries from `number` on, as far as one replica has them; the first may be a later one."""

    @staticmethod
    @abstractmethod
    def parse_notification(message: Msg) -> Entry | None:
        """The entry in a notification; None if the notification has none."""

    async def read_on(self, start: int, last: int | None, limit: int) -> list[Entry]:
        """Up to `limit` entries from `start` on, up to `last`; without `last`, as far as the replica that answers has them."""
        entries: list[Entry] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self._streams.connection.timeout
        while len(entries) < limit and (last is None or start + len(entries) <= last):
            wanted = start + len(entries)
            found = await self.entries_from(wanted, min(limit - len(entries), PAGE))
            if found and found[0].seq != wanted:
                if entries:
                    break
                raise TrimmedError(self.name, wanted, found[0].seq)
            entries += found
            if not found:
                if last is None:
                    break
                # A replica that lags may have answered.
                if loop.time() > end:
                    raise StoreUnavailableError(
                        f"no replica of log {self.name!r} has entry {wanted} yet: try again"
                    )
                await asyncio.sleep(_REPLICA_LAG)
        return entries

    async def follow(self, start: int | None = None) -> AsyncGenerator[Entry, None]:
        async with self.watch() as signal:
            if start is None:
                start = (await self.bounds()).first
            while True:
                seen = signal.count
                delivered = signal.entries(start)
                entries = delivered or await self.read(start, limit=PAGE)
                for entry in entries:
                    yield entry
                    start = entry.seq + 1
                if delivered or not entries:
                    # A notification may be lost with its connection; the entry is not.
                    await signal.wait(seen, _POLL_EVERY)

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[Signal]:
        with suppress(StoreError):
            # Notifications come from the stream; if it cannot be created now, the next writer creates it.
            await self._streams.ensure(self._kind, self._stream_name)
        subject = self._streams.subject(NOTIFICATION, self._stream_name) + self._suffix
        async with self._streams.notifications.subscribe(subject, self.parse_notification) as signal:
            yield signal
