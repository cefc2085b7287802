# ruff: noqa: D102  (contract.py documents the methods)
"""
Grouped logs: many small logs in one stream, grouped by their names up to the first slash.

A stream per log suits a few large logs. With replicas, each stream is a group of servers that elect a leader, and a server
supports some thousands of those, not millions. Logs that come and go (one per job, session or task) are therefore named
`group/member`: the group is a stream, the member a subject in it.

The stream numbers all its messages; an entry's own number is in a header. An append is conditional on the stream's number of
the previous entry, so numbers have no gaps, and of two concurrent writers one is rejected. If all entries were trimmed, a
marker message holds the last number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, TrimmedError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.log_positions import LogPosition
from amends.stores.nats.replies import headers_of
from amends.stores.nats.stored_messages import StoredMessage, first_from, foreign_message, latest, page
from amends.stores.nats.stream_settings import GROUPED
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header, from_token, token
from amends.stores.nats.watched_log import PAGE, WatchedLog

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["GroupedLog", "grouped_log_names"]

_ID, _LAST = "Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"
_NUMBER, _DEDUPE, _MARKER, _NAME = "Amends-Number", "Amends-Dedupe", "Amends-Trimmed", "Amends-Name"


class GroupedLog(WatchedLog):
    """See `contract.Log`."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._group, _, member = name.partition("/")
        super().__init__(streams, name, GROUPED, self._group, f".{token(member)}")
        self._name_hashed = self._suffix.startswith(".==")

    @property
    def _position(self) -> LogPosition:
        return self._streams.positions.get(self.subject)

    @property
    def subject(self) -> str:
        """The subject of its entries."""
        return self._streams.subject(GROUPED, self._group) + self._suffix

    # -- appending

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        headers = {_ID: self._streams.connection.new_id()}
        if dedupe is not None:
            headers[_DEDUPE] = as_header(check_key(dedupe, "dedupe id"))
            headers[_ID] = f"={self._suffix}.{headers[_DEDUPE]}"
        position = self._position
        async with position.lock:
            return await self._append(position, value, headers, last)

    async def _append(
        self, position: LogPosition, value: bytes, headers: dict[str, str], last: int | None
    ) -> int:
        if not position.known or (last is not None and position.number != last):
            # The first append to a new log needs no lookup: the server checks the condition.
            if last == 0 and not position.known:
                position.set(0, 0)
            else:
                await self._refresh(position)
        tries: list[int] = []
        while True:
            expected = position.number
            if last is not None and expected != last:
                if _DEDUPE in headers and await self._has_id(last + 1, headers):
                    return last + 1
                raise ConflictError(self.name, last, expected)
            try:
                stored = await self._store(position, value, headers, tries)
            except ApiError as error:
                if not error.conflict:
                    raise
                await self._refresh(position)
                may_be_ours = len(tries) > 1 or _DEDUPE in headers
                if may_be_ours and await self._has_id(expected + 1, headers):
                    return expected + 1
                continue
            if stored:
                return position.number
            number = await self._number_of(headers)
            if number is not None:
                return number
            # The server remembers the id, but the entry was removed: append it under a new id.
            headers = {**headers, _ID: self._streams.connection.new_id()}

    async def _store(
        self, position: LogPosition, value: bytes, headers: dict[str, str], tries: list[int]
    ) -> bool:
        """Publish after the newest known entry; returns False if the server has seen this id before."""
        headers = {**headers, _NUMBER: str(position.number + 1), _LAST: str(position.seq)}
        if self._name_hashed:
            headers[_NAME] = as_header(self.name)
        answer = await self._streams.store(GROUPED, self._group, self._suffix, value, headers, tries)
        if answer.get("duplicate") and (len(tries) < 2 or _DEDUPE in headers):
            return False
        position.set(position.number + 1, int(answer["seq"]))
        return True

    async def _has_id(self, number: int, headers: dict[str, str]) -> bool:
        same = _DEDUPE if _DEDUPE in headers else _ID
        found = await self._from(number, 1)
        return bool(found) and _number(found[0]) == number and found[0].headers.get(same) == headers[same]

    async def _number_of(self, headers: dict[str, str]) -> int | None:
        """The number of the entry with this dedupe id, or None if it is no longer kept."""
        bounds = await self.bounds()
        start = bounds.first
        while found := await self._from(start, PAGE):
            for stored in found:
                if stored.headers.get(_DEDUPE) == headers[_DEDUPE]:
                    return _number(stored)
            start = _number(found[-1]) + 1
        return None

    async def _refresh(self, position: LogPosition) -> StoredMessage | None:
        """Read the newest message from the leader and update `position`."""
        stored = await latest(self._streams, GROUPED, self._group, self._suffix)
        position.set(*((0, 0) if stored is None else (_number(stored), stored.seq)))
        return stored

    # -- reading

    async def tail(self) -> Entry | None:
        stored = await self._refresh(self._position)
        return None if stored is None or _MARKER in stored.headers else _entry(stored)

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
        newest = await latest(self._streams, GROUPED, self._group, self._suffix)
        if newest is None or (start is not None and start > _number(newest)):
            return []
        last = _number(newest)
        if _MARKER in newest.headers:
            if start is None:
                return []
            raise TrimmedError(self.name, start, last + 1)
        if start == last:
            return [_entry(newest)]
        if start is None:
            start = (await self.bounds()).first
        return await self.read_on(start, last, limit)

    async def entries_from(self, number: int, limit: int) -> list[Entry]:
        return [_entry(stored) for stored in await self._from(number, limit)]

    async def _from(self, number: int, limit: int) -> list[StoredMessage]:
        """The entries from `number` on, in order, as far as one replica has them; the first may be a later one."""
        position = self._position
        seq = position.search_from(number)
        while True:
            found = await page(self._streams, GROUPED, self._group, seq, max(limit, 16), self._suffix)
            kept = [one for one in found if _MARKER not in one.headers and _number(one) >= number]
            if kept or not found:
                if kept:
                    position.record_read(_number(kept[-1]), kept[-1].seq)
                return kept[:limit]
            seq = found[-1].seq + 1

    async def newest(self) -> int:
        """The stream's number of the log's newest message; 0 if there is none."""
        stored = await self._refresh(self._position)
        return 0 if stored is None else stored.seq

    async def bounds(self) -> Bounds:
        newest = await self._refresh(self._position)
        if newest is None:
            return Bounds(1, 0)
        last = _number(newest)
        if _MARKER in newest.headers:
            return Bounds(last + 1, last)
        first = await first_from(self._streams, GROUPED, self._group, 1, self._suffix)
        if first is None:
            return Bounds(last, last)
        return Bounds(_number(first) + (_MARKER in first.headers), last)

    # -- removing

    async def trim(self, before: int) -> int:
        bounds = await self.bounds()
        first = min(before, bounds.last + 1)
        if first <= bounds.first:
            return bounds.first
        if first > bounds.last:
            seq = await self._write_marker(bounds.last)
            if seq is None:
                return await self.trim(before)
        else:
            found = await self._from(first, 1)
            if not found:
                return bounds.first
            seq = found[0].seq
        await self._streams.purge(GROUPED, self._group, self.subject, seq)
        return first

    async def _write_marker(self, number: int) -> int | None:
        """Append a marker with the last number used; returns its sequence number, or None if another entry was appended."""
        position = self._position
        async with position.lock:
            headers = {_ID: self._streams.connection.new_id(), _NUMBER: str(number), _MARKER: "1"}
            headers[_LAST] = str(position.seq)
            if self._name_hashed:
                headers[_NAME] = as_header(self.name)
            if position.number != number:
                return None
            try:
                answer = await self._streams.store(GROUPED, self._group, self._suffix, b"", headers)
            except ApiError as error:
                if not error.conflict:
                    raise
                return None
            position.set(number, int(answer["seq"]))
            return position.seq

    async def drop(self) -> None:
        await self._streams.purge(GROUPED, self._group, self.subject)
        self._streams.positions.remove(self.subject)

    async def start_at(self, first: int) -> None:
        position = self._position
        await self._refresh(position)
        if not position.seq:
            position.set(first - 1, 0)
            await self._write_marker(first - 1)

    @staticmethod
    def parse_notification(message: Msg) -> Entry | None:
        headers = headers_of(message)
        if _NUMBER not in headers or _MARKER in headers:
            return None
        dedupe = headers.get(_DEDUPE)
        return Entry(int(headers[_NUMBER]), message.data, None if dedupe is None else from_header(dedupe))


async def grouped_log_names(streams: Streams, group: str) -> list[str]:
    """The names of the logs in one group's stream."""
    names = []
    for subject in await streams.subjects(GROUPED, group):
        last = subject.rpartition(".")[2]
        member = from_token(last)
        if member is not None:
            names.append(f"{group}/{member}")
        elif (stored := await latest(streams, GROUPED, group, f".{last}")) is not None:
            names.append(from_header(stored.headers[_NAME]))
    return names


def _number(stored: StoredMessage) -> int:
    number = stored.headers.get(_NUMBER, "")
    if not number.isdecimal():
        raise foreign_message("log", stored.subject, stored)
    return int(number)


def _entry(stored: StoredMessage) -> Entry:
    dedupe = stored.headers.get(_DEDUPE)
    return Entry(_number(stored), stored.data, None if dedupe is None else from_header(dedupe))
