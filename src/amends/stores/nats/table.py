# ruff: noqa: D102  (contract.py documents the methods)
"""
The table on NATS: a stream with one message per key, whose sequence number is the revision.

A deletion is a message too, with a time to live. An expiry is stored twice: as the server's time to live, in whole seconds,
so that the server removes the message; and in milliseconds for readers, who count it from the server's time stamp.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.contract import Row
from amends.stores.errors import ConflictError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.scan import scan
from amends.stores.nats.stored_messages import StoredMessage, foreign_message, latest
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header, key_filters, key_subject

__all__ = ["NatsTable"]

_ID, _LAST, _TTL = "Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence", "Nats-TTL"
_KEY, _EXPIRES, _DELETED = "Amends-Key", "Amends-Expires-Ms", "Amends-Deleted"
# How long a deletion marker is kept: longer than the two minutes (`sync_interval`) for which a server holds a removal only in
# memory. A server that is killed before that finds the removed value in its files again, and only the marker overrides it.
_DELETION_KEPT = "300s"
_OVERDUE = 60.0
"""Seconds after its end for which a message that the server has not removed yet counts as expired."""
_STALE_READS, _PAUSE = 40, 0.05
"""How often to read again from a replica that lags, and the seconds in between."""


class NatsTable:
    """See `contract.Table`."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams = streams
        self.name = name

    async def get(self, key: str) -> Row | None:
        return await self._row(await self._latest(check_key(key)))

    async def _latest(self, key: str) -> StoredMessage | None:
        return await latest(self._streams, "table", self.name, f".{key_subject(key)}")

    async def _row(self, stored: StoredMessage | None) -> Row | None:
        if stored is None or _DELETED in stored.headers:
            return None
        if _KEY not in stored.headers:
            raise foreign_message("table", self.name, stored)
        left = None
        if _EXPIRES in stored.headers:
            now = await self._streams.connection.server_time(self._streams.stream("table", self.name))
            # The estimate of the server's time may be behind: never return more than the requested expiry.
            whole = int(stored.headers[_EXPIRES]) / 1000
            left = min(whole, stored.time + whole - now)
            if left < -_OVERDUE:
                # The server would have removed it. The clocks of two servers differ, and a key must not be free because of that.
                left = whole
            if left <= 0:
                return None
        return Row(from_header(stored.headers[_KEY]), stored.data, stored.seq, left)

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        headers = {_KEY: as_header(check_key(key))}
        if expires_in is not None:
            seconds = check_seconds(expires_in, "expires_in")
            headers[_EXPIRES] = str(math.ceil(seconds * 1000))
            headers[_TTL] = f"{math.ceil(seconds) + 1}s"
        return await self._write(key, check_value(value), headers, revision)

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        while True:
            row = await self.get(key)
            if revision is not None and (row is None or row.revision != revision):
                raise ConflictError(self.name, revision, row.revision if row else 0, key)
            if row is None:
                return False
            headers = {_KEY: as_header(key), _DELETED: "1", _TTL: _DELETION_KEPT}
            try:
                await self._write(key, b"", headers, row.revision)
            except ConflictError:
                if revision is not None:
                    raise
                continue  # changed since it was read: read again
            return True

    async def discard(self, key: str) -> None:
        headers = {_KEY: as_header(check_key(key)), _DELETED: "1", _TTL: _DELETION_KEPT}
        await self._write(key, b"", headers, None)

    async def scan(self, prefix: str = "", *, after: str | None = None) -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        if after is not None:
            check_key(after, "after")
        async for stored in scan(self._streams, "table", self.name, key_filters(prefix)):
            row = await self._row(stored)
            if row is not None and row.key.startswith(prefix) and (after is None or row.key > after):
                yield row

    async def drop(self) -> None:
        await self._streams.drop("table", self.name)

    async def _write(self, key: str, value: bytes, headers: dict[str, str], revision: int | None) -> int:
        headers[_ID] = self._streams.connection.new_id()
        subject = f".{key_subject(key)}"
        if revision is None:
            return await self._streams.publish("table", self.name, subject, value, headers)
        headers[_LAST] = str(revision)
        tries: list[int] = []
        stale = 0
        while True:
            try:
                return await self._streams.publish("table", self.name, subject, value, headers, tries)
            except ApiError as error:
                if not error.conflict:
                    raise
            stored = await self._latest(key)
            if stored is not None and len(tries) > 1 and stored.headers.get(_ID) == headers[_ID]:
                return stored.seq  # an earlier attempt to send this write succeeded
            row = await self._row(stored)
            actual = 0 if row is None else row.revision
            expected = str(0 if stored is None else stored.seq)
            if actual == revision and expected == headers[_LAST] and stale < _STALE_READS:
                # The leader has a newer write than the replica that was read, which lags.
                stale += 1
                await asyncio.sleep(_PAUSE)
                continue
            if actual != revision or expected == headers[_LAST]:
                raise ConflictError(self.name, revision, actual, key)
            # Absent to a reader, but the subject has a message: a deletion marker or an expired value.
            headers[_LAST] = expected
