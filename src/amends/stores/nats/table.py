# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""
The table on NATS: a stream with one message per key, whose sequence number is the revision.

A deletion is a message too, with a time to live. An expiry is kept twice: as the server's time to live, in whole seconds,
to be rid of the message; and in milliseconds for readers, who count it from the server's own time stamp.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.contract import Row
from amends.stores.errors import ConflictError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.scan import sweep
from amends.stores.nats.stored_messages import Stored, latest
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header, key_filters, key_subject

__all__ = ["NatsTable"]

_ID, _LAST, _TTL = "Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence", "Nats-TTL"
_KEY, _EXPIRES, _DELETED = "Amends-Key", "Amends-Expires-Ms", "Amends-Deleted"
# How long a deletion is remembered: longer than a server keeps what it has removed only in mind (two minutes, its
# `sync_interval`). Killed before that, it finds the removed value in its files again, and only the mark tells it otherwise.
_DELETION_KEPT = "300s"
_STALE, _PAUSE = 40, 0.05
"""Looks at a copy that is behind, and seconds between them."""


class NatsTable:
    """See `contract.Table`."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams = streams
        self.name = name

    async def get(self, key: str) -> Row | None:
        return await self._row(await self._latest(check_key(key)))

    async def _latest(self, key: str) -> Stored | None:
        return await latest(self._streams, "table", self.name, f".{key_subject(key)}")

    async def _row(self, stored: Stored | None) -> Row | None:
        if stored is None or _DELETED in stored.headers or _KEY not in stored.headers:
            return None
        left = None
        if _EXPIRES in stored.headers:
            now = await self._streams.link.server_time(self._streams.stream("table", self.name))
            # Our idea of the server's time may be behind it: never more than was asked for.
            whole = int(stored.headers[_EXPIRES]) / 1000
            left = min(whole, stored.time + whole - now)
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
                raise ConflictError(self._what(key), revision, row.revision if row else 0)
            if row is None:
                return False
            headers = {_KEY: as_header(key), _DELETED: "1", _TTL: _DELETION_KEPT}
            try:
                await self._write(key, b"", headers, row.revision)
            except ConflictError:
                if revision is not None:
                    raise
                continue  # changed since we looked: look again
            return True

    async def discard(self, key: str) -> None:
        headers = {_KEY: as_header(check_key(key)), _DELETED: "1", _TTL: _DELETION_KEPT}
        await self._write(key, b"", headers, None)

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        async for stored in sweep(self._streams, "table", self.name, key_filters(prefix)):
            row = await self._row(stored)
            if row is not None and row.key.startswith(prefix):
                yield row

    async def drop(self) -> None:
        await self._streams.drop("table", self.name)

    async def _write(self, key: str, value: bytes, headers: dict[str, str], revision: int | None) -> int:
        headers[_ID] = self._streams.link.new_id()
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
                return stored.seq  # an earlier sending of this very write
            row = await self._row(stored)
            actual = 0 if row is None else row.revision
            expected = str(0 if stored is None else stored.seq)
            if actual == revision and expected == headers[_LAST] and stale < _STALE:
                # The leader knows of a newer write than the copy that was read: that copy has still to hear of it.
                stale += 1
                await asyncio.sleep(_PAUSE)
                continue
            if actual != revision or expected == headers[_LAST]:
                raise ConflictError(self._what(key), revision, actual)
            # Absent to a reader, and yet a message lies there: a deletion, or a value past its time.
            headers[_LAST] = expected

    def _what(self, key: str) -> str:
        return f"key {key!r} of table {self.name!r}"
