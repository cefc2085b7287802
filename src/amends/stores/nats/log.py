# ruff: noqa: D102  (contract.py documents the methods)
"""The log on NATS: one stream per log, with the stream's sequence numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, TrimmedError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.replies import headers_of
from amends.stores.nats.stored_messages import StoredMessage, latest, page
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header
from amends.stores.nats.watched_log import WatchedLog

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["NatsLog"]

_ID = "Nats-Msg-Id"


class NatsLog(WatchedLog):
    """See `contract.Log`."""

    def __init__(self, streams: Streams, name: str) -> None:
        super().__init__(streams, name, "log", name, "")

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        # Generated ids begin with "~" and the caller's with "=", so that they cannot be equal.
        id = (
            self._streams.connection.new_id()
            if dedupe is None
            else f"={as_header(check_key(dedupe, 'dedupe id'))}"
        )
        headers = {_ID: id}
        if last is None:
            return await self._streams.publish("log", self.name, "", value, headers)
        headers["Nats-Expected-Last-Sequence"] = str(last)
        tries: list[int] = []
        try:
            return await self._streams.publish("log", self.name, "", value, headers, tries)
        except ApiError as error:
            if not error.conflict:
                raise
            # The server checks the condition before the id. If this id was stored, it is the entry after `last`.
            if dedupe is not None or len(tries) > 1:
                after = await page(self._streams, "log", self.name, last + 1, 1)
                if after and after[0].seq == last + 1 and after[0].headers.get(_ID) == id:
                    return last + 1
            raise ConflictError(self.name, last, error.actual_sequence) from None

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
        bounds = None
        if start is None or await self._streams.replicas("log", self.name) > 1:
            # With replicas, one that lags may answer: the leader's last number is the limit.
            bounds = await self.bounds()
            if start is None:
                start = bounds.first
            if start < bounds.first:
                raise TrimmedError(self.name, start, bounds.first)
        entries = await self.read_on(start, None if bounds is None else bounds.last, limit)
        if not entries and bounds is None and start < (first := (await self.bounds()).first):
            raise TrimmedError(self.name, start, first)
        return entries

    async def entries_from(self, number: int, limit: int) -> list[Entry]:
        return [_entry(stored) for stored in await page(self._streams, "log", self.name, number, limit)]

    async def tail(self) -> Entry | None:
        newest = await latest(self._streams, "log", self.name, "")
        return None if newest is None else _entry(newest)

    async def bounds(self) -> Bounds:
        info = await self._streams.info("log", self.name)
        if info is None:
            return Bounds(1, 0)
        state = info["state"]
        return Bounds(max(state["first_seq"], 1), state["last_seq"])

    async def trim(self, before: int) -> int:
        bounds = await self.bounds()
        first = min(before, bounds.last + 1)
        if first <= bounds.first:
            return bounds.first
        await self._streams.connection.api(
            f"STREAM.PURGE.{self._streams.stream('log', self.name)}", {"seq": first}
        )
        return first

    async def drop(self) -> None:
        await self._streams.drop("log", self.name)

    async def start_at(self, first: int) -> None:
        await self._streams.ensure("log", self.name, first=first)

    @staticmethod
    def parse_notification(message: Msg) -> Entry | None:
        headers = headers_of(message)
        return Entry(int(headers["Nats-Sequence"]), message.data, _dedupe(headers))


def _entry(stored: StoredMessage) -> Entry:
    return Entry(stored.seq, stored.data, _dedupe(stored.headers))


def _dedupe(headers: Mapping[str, str]) -> str | None:
    id = headers.get(_ID, "~")
    return from_header(id[1:]) if id.startswith("=") else None
