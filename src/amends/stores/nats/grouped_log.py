# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""
Many small logs in one stream: those whose names begin alike, up to the first slash.

A stream of its own for every log is right for a few large ones; with replicas each is a group of servers that elect a
leader, and a server carries some thousands of those, not millions. Logs that come and go (one per job, per session, per
task) are therefore named `group/member`: the group is a stream, the member a subject in it.

The stream numbers all its messages; an entry's own number stands in a header. An append is conditional on the stream
number of the entry before, so numbers have no gaps, and of two writers one is refused. Where everything was trimmed a marker
keeps the count. Whoever waits for an entry is brought it by the server when it has stored it (see `bells`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

from amends.stores.arguments import check_key, check_limit, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, StoreError, StoreUnavailableError, TrimmedError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.log_positions import Place
from amends.stores.nats.stored_messages import Stored, at, latest, page
from amends.stores.nats.streams import SHARED, Streams
from amends.stores.nats.subjects import as_header, from_header, from_token, token
from amends.stores.nats.wire import RawMessage
from amends.stores.signal import Signal

__all__ = ["SharedLog", "shared_names"]

_ID, _LAST = "Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"
_NUMBER, _DEDUPE, _MARKER, _NAME = "Amends-Number", "Amends-Dedupe", "Amends-Trimmed", "Amends-Name"
_PAGE = 256
_LAG = 0.02
_LOOK = 1.0


class SharedLog:
    """See `contract.Log`."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams = streams
        self.name = name
        self._group, _, member = name.partition("/")
        self._below = f".{token(member)}"
        self._hashed = self._below.startswith(".==")

    @property
    def _place(self) -> Place:
        return self._streams.places.of(self.subject)

    @property
    def subject(self) -> str:
        """Where its entries lie."""
        return self._streams.subject(SHARED, self._group) + self._below

    @property
    def _bell(self) -> str:
        return self._streams.subject("bell", self._group) + self._below

    # -- appending

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        headers = {_ID: self._streams.link.new_id()}
        if dedupe is not None:
            headers[_DEDUPE] = as_header(check_key(dedupe, "dedupe id"))
            headers[_ID] = f"={self._below}.{headers[_DEDUPE]}"
        place = self._place
        async with place.lock:
            return await self._append(place, value, headers, last)

    async def _append(self, place: Place, value: bytes, headers: dict[str, str], last: int | None) -> int:
        if not place.known or (last is not None and place.number != last):
            # Of a log that is to be begun nothing has to be known: that it is there is found out by the server.
            if last == 0 and not place.known:
                place.set(0, 0)
            else:
                await self._look(place)
        tries: list[int] = []
        while True:
            expected = place.number
            if last is not None and expected != last:
                if _DEDUPE in headers and await self._is(last + 1, headers):
                    return last + 1
                raise ConflictError(f"log {self.name!r}", last, expected)
            try:
                stored = await self._store(place, value, headers, tries)
            except ApiError as error:
                if not error.conflict:
                    raise
                await self._look(place)
                mine = len(tries) > 1 or _DEDUPE in headers
                if mine and await self._is(expected + 1, headers):
                    return expected + 1
                continue
            if stored:
                return place.number
            found = await self._number_of(headers)
            if found is not None:
                return found
            # Known to the server, and no longer kept: it is as if it had never been.
            headers = {**headers, _ID: self._streams.link.new_id()}

    async def _store(self, place: Place, value: bytes, headers: dict[str, str], tries: list[int]) -> bool:
        """Publish behind what is known to be the newest; False when the server has had this id before."""
        headers = {**headers, _NUMBER: str(place.number + 1), _LAST: str(place.seq)}
        if self._hashed:
            headers[_NAME] = as_header(self.name)
        answer = await self._streams.store(SHARED, self._group, self._below, value, headers, tries)
        if answer.get("duplicate") and (len(tries) < 2 or _DEDUPE in headers):
            return False
        place.set(place.number + 1, int(answer["seq"]))
        return True

    async def _is(self, number: int, headers: dict[str, str]) -> bool:
        same = _DEDUPE if _DEDUPE in headers else _ID
        found = await self._from(number, 1)
        return bool(found) and _number(found[0]) == number and found[0].headers.get(same) == headers[same]

    async def _number_of(self, headers: dict[str, str]) -> int | None:
        """The entry with a dedupe id, searched for from the end: it is at most as old as the window."""
        bounds = await self.bounds()
        start = bounds.first
        while found := await self._from(start, _PAGE):
            for stored in found:
                if stored.headers.get(_DEDUPE) == headers[_DEDUPE]:
                    return _number(stored)
            start = _number(found[-1]) + 1
        return None

    async def _look(self, place: Place) -> Stored | None:
        """The newest message, by the leader; and remember its place."""
        stored = await latest(self._streams, SHARED, self._group, self._below)
        place.set(*((0, 0) if stored is None else (_number(stored), stored.seq)))
        return stored

    # -- reading

    async def tail(self) -> Entry | None:
        stored = await self._look(self._place)
        return None if stored is None or _MARKER in stored.headers else _entry(stored)

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
        newest = await latest(self._streams, SHARED, self._group, self._below)
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
        entries: list[Entry] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self._streams.link.timeout
        while len(entries) < limit and start + len(entries) <= last:
            wanted = start + len(entries)
            found = await self._from(wanted, min(limit - len(entries), _PAGE))
            if found and _number(found[0]) != wanted:
                if entries:
                    break
                raise TrimmedError(self.name, wanted, _number(found[0]))
            entries += [_entry(stored) for stored in found]
            if not found:
                # Pages may come from a replica that lags.
                if loop.time() > end:
                    raise StoreUnavailableError(
                        f"no replica of log {self.name!r} has entry {wanted} yet: try again"
                    )
                await asyncio.sleep(_LAG)
        return entries

    async def _from(self, number: int, limit: int) -> list[Stored]:
        """Entries from a number on, in order, as far as one replica has them; the first may be a later one."""
        place = self._place
        seq = place.before(number)
        while True:
            found = await page(self._streams, SHARED, self._group, seq, max(limit, 16), self._below)
            kept = [one for one in found if _MARKER not in one.headers and _number(one) >= number]
            if kept or not found:
                if kept:
                    place.read(_number(kept[-1]), kept[-1].seq)
                return kept[:limit]
            seq = found[-1].seq + 1

    async def follow(self, start: int | None = None) -> AsyncIterator[Entry]:
        async with self.watched() as signal:
            if start is None:
                start = (await self.bounds()).first
            while True:
                seen = signal.count
                brought = signal.brought(start)
                entries = brought or await self.read(start, limit=_PAGE)
                for entry in entries:
                    yield entry
                    start = entry.seq + 1
                if brought or not entries:
                    # A word may be lost with its connection; what it spoke of is not.
                    await signal.wait(seen, _LOOK)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[Signal]:
        with suppress(StoreError):
            # One that was made before servers were asked to call is told to; whoever writes next does that otherwise.
            await self._streams.make(SHARED, self._group)
        async with self._streams.bells.listening(self._bell, _brought) as signal:
            yield signal

    async def newest(self) -> int:
        """The stream's number of its newest message; 0 where there is none."""
        stored = await self._look(self._place)
        return 0 if stored is None else stored.seq

    async def bounds(self) -> Bounds:
        newest = await self._look(self._place)
        if newest is None:
            return Bounds(1, 0)
        last = _number(newest)
        if _MARKER in newest.headers:
            return Bounds(last + 1, last)
        first = await at(self._streams, SHARED, self._group, 1, self._below)
        if first is None:
            return Bounds(last, last)
        return Bounds(_number(first) + (_MARKER in first.headers), last)

    # -- forgetting

    async def trim(self, before: int) -> int:
        bounds = await self.bounds()
        first = min(before, bounds.last + 1)
        if first <= bounds.first:
            return bounds.first
        if first > bounds.last:
            seq = await self._mark(bounds.last)
            if seq is None:
                return await self.trim(before)
        else:
            found = await self._from(first, 1)
            if not found:
                return bounds.first
            seq = found[0].seq
        await self._streams.purge(SHARED, self._group, self.subject, seq)
        return first

    async def _mark(self, number: int) -> int | None:
        """Say how far numbers were used, behind the entry that has the last of them; None when there is another."""
        place = self._place
        async with place.lock:
            headers = {_ID: self._streams.link.new_id(), _NUMBER: str(number), _MARKER: "1"}
            headers[_LAST] = str(place.seq)
            if self._hashed:
                headers[_NAME] = as_header(self.name)
            if place.number != number:
                return None
            try:
                answer = await self._streams.store(SHARED, self._group, self._below, b"", headers)
            except ApiError as error:
                if not error.conflict:
                    raise
                return None
            place.set(number, int(answer["seq"]))
            return place.seq

    async def drop(self) -> None:
        await self._streams.purge(SHARED, self._group, self.subject)
        self._streams.places.forget(self.subject)

    async def start_at(self, first: int) -> None:
        place = self._place
        await self._look(place)
        if not place.seq:
            await self._mark_from(place, first - 1)

    async def _mark_from(self, place: Place, number: int) -> None:
        place.set(number, 0)
        await self._mark(number)


async def shared_names(streams: Streams, group: str) -> list[str]:
    """The names of the logs in one stream."""
    names = []
    for subject in await streams.subjects(SHARED, group):
        last = subject.rpartition(".")[2]
        member = from_token(last)
        if member is not None:
            names.append(f"{group}/{member}")
        elif (stored := await latest(streams, SHARED, group, f".{last}")) is not None:
            names.append(from_header(stored.headers[_NAME]))
    return names


def _number(stored: Stored) -> int:
    return int(stored.headers[_NUMBER])


def _brought(message: RawMessage) -> Entry | None:
    """What the server has just stored; None where a word says nothing more than that there is something."""
    headers = message.headers
    if _NUMBER not in headers or _MARKER in headers:
        return None
    dedupe = headers.get(_DEDUPE)
    return Entry(int(headers[_NUMBER]), message.data, None if dedupe is None else from_header(dedupe))


def _entry(stored: Stored) -> Entry:
    dedupe = stored.headers.get(_DEDUPE)
    return Entry(_number(stored), stored.data, None if dedupe is None else from_header(dedupe))
