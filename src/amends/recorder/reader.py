"""
`Reader`: list, filter, follow and summarise the events of a store, those of all processes that share it.

    async with open_reader("sqlite:///failures.db") as reader:
        for event in await reader.events(Filter(code="RATE_LIMITED"), limit=20):
            print(event.at, event.where, event.name, event.outcome)
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from amends.core.named_options import NamedOptions
from amends.core.wrong_calls import explains_wrong_calls
from amends.recorder.event import Event, decode_events
from amends.recorder.index import INDEX, read_blocks, term
from amends.recorder.summary import Summary, summarise
from amends.recorder.thread import LOG, open_store
from amends.recorder.traces import Trace, group_traces
from amends.stores.contract import Store
from amends.stores.errors import TrimmedError

__all__ = ["Filter", "Reader", "open_reader"]

_PAGE = 128
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
"""Texts that an entry holds as they are, without escapes."""


class Filter(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    Which events are wanted. A member that is empty or None excludes none.

    >>> from amends import Fault
    >>> event = Event(at=5.0, where="call", outcome="retry", fault=Fault(code="TIMEOUT"), upstream="shop")
    >>> Filter(code="TIMEOUT", upstream="shop").matches(event), Filter(outcome="sent").matches(event)
    (True, False)
    """

    trace: str = ""
    """A trace id, or its beginning."""
    where: str = ""
    """A key of WHERE, or one of its words: "http" matches "http server" and "http client"."""
    outcome: str = ""
    code: str = ""
    upstream: str = ""
    since: float | None = None
    """Seconds since 1970."""
    until: float | None = None

    def matches(self, event: Event) -> bool:
        """Return whether the event is wanted."""
        return (
            (not self.trace or event.has_trace(self.trace))
            and (not self.where or self.where == event.where or self.where in event.where.split())
            and (not self.outcome or self.outcome == event.outcome)
            and (not self.code or self.code in {event.fault.code, event.sent})
            and (not self.upstream or self.upstream == event.upstream)
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at <= self.until)
        )

    def may_match(self, entry: bytes) -> bool:
        """Return whether an entry can hold a wanted event: a quick look before it is decoded."""
        return all(
            not text or not _PLAIN.fullmatch(text) or text.encode() in entry
            for text in (self.trace, self.code, self.upstream, self.outcome, self.where)
        )

    def terms(self) -> list[str]:
        """Return what an index has of a block with a wanted event."""
        wanted = {
            "trace": self.trace,
            "code": self.code,
            "upstream": self.upstream,
            "outcome": self.outcome,
            "where": self.where,
        }
        return [term(kind, text) for kind, text in wanted.items() if text]


_ALL = Filter()


class Reader:
    """
    Reads the events of an open store. It belongs to the event loop of the store.

        async with open_reader("sqlite:///failures.db") as reader:
            for event in await reader.events(Filter(code="RATE_LIMITED"), limit=20):
                print(event.where, event.name)
    """

    def __init__(self, store: Store) -> None:
        self._log = store.log(LOG)
        self._index = store.log(INDEX)

    async def events(self, wanted: Filter = _ALL, *, limit: int = 100) -> list[Event]:
        """Return the newest events that match, the newest first, at most `limit`."""
        found: list[Event] = []
        async for first, last in self._ranges(wanted):
            end = last
            while end >= first and len(found) < limit:
                start = max(first, end - _PAGE + 1)
                try:
                    entries = await self._log.read(start, limit=end - start + 1)
                except TrimmedError as error:
                    if error.first > end:
                        return found
                    entries = await self._log.read(error.first, limit=end - error.first + 1)
                    start = first
                page = [
                    event
                    for entry in entries
                    if wanted.may_match(entry.value)
                    for event in decode_events(entry.value, entry.seq)
                    if wanted.matches(event)
                ]
                found += reversed(page)
                end = start - 1
            if len(found) >= limit:
                break
        return found[:limit]

    async def _ranges(self, wanted: Filter) -> AsyncIterator[tuple[int, int]]:
        """Iterate over the first and last numbers of entries that may hold wanted events, the newest first."""
        end, terms = (await self._log.bounds()).last, wanted.terms()
        if terms or wanted.since is not None or wanted.until is not None:
            async for block in read_blocks(self._index, self._log):
                if block.first > end:
                    continue
                if block.last < end:
                    yield block.last + 1, end
                if block.may_have(terms, wanted.since, wanted.until):
                    yield block.first, min(block.last, end)
                end = block.first - 1
        yield 1, end

    async def trace(self, id: str, *, limit: int = 1000) -> list[Trace]:
        """
        Return the traces with this id, each with its timeline over all processes; several only if the id is cut.

        An upstream may have named an id of its own: a trace is found by either.
        """
        events = await self.events(Filter(trace=id), limit=limit)
        return group_traces(events)

    async def follow(self, wanted: Filter = _ALL, *, last: int = 0) -> AsyncIterator[Event]:
        """Iterate over the newest `last` events that match, in order, then over every new one; it does not end."""
        start = (await self._log.bounds()).last + 1
        for event in reversed(await self.events(wanted, limit=last) if last > 0 else []):
            if int(event.id.partition(".")[0]) < start:
                yield event
        while True:
            try:
                async for entry in self._log.follow(start):
                    start = entry.seq + 1
                    if wanted.may_match(entry.value):
                        for event in decode_events(entry.value, entry.seq):
                            if wanted.matches(event):
                                yield event
            except TrimmedError as error:
                start = error.first

    async def summary(self, wanted: Filter = _ALL, *, limit: int = 10_000) -> Summary:
        """Return the figures of the newest `limit` events that match."""
        return summarise(await self.events(wanted, limit=limit))


@asynccontextmanager
@explains_wrong_calls
async def open_reader(url: str) -> AsyncGenerator[Reader]:
    """
    Open the store at `url` and return its reader; the store is closed at the end of the context.

    >>> async def last_events(url: str) -> list[Event]:
    ...     async with open_reader(url) as reader:
    ...         return await reader.events(limit=10)
    >>> import asyncio
    >>> asyncio.run(last_events("memory:"))
    []

    Raises:
        ValueError: `url` is not a store URL.
        StoreError: the store cannot be opened.

    """
    async with await open_store(url) as store:
        yield Reader(store)
