"""
An index of the events: which traces, codes, outcomes, bindings and services occur in which entries of their log.

It is a log beside that of the events. Each of its entries describes a block of theirs, and a reader skips the blocks that
cannot have what it looks for. The newest entries are not in a block yet and are read whole, so that an index that is behind
or missing costs time and loses no event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from amends.stores.errors import ConflictError, TrimmedError

if TYPE_CHECKING:
    from amends.stores.contract import Entry, Log, Store

__all__ = ["INDEX", "Block", "IndexWriter", "read_blocks", "term"]

INDEX = "amends-events-index"
"""The name of the index's log in the store."""

_ENTRIES = 256
_BYTES = 500_000
"""A block ends with so many entries, or with this size: what is read in vain if another event of it was wanted."""
_PAGE = 64
_BUDGET = 0.25
"""Seconds of one pass. Failures of this time wait in the recorder's queue."""
_LENGTHS = {"trace": 16}
_LENGTH = 64
"""Characters of a text that the index keeps; of trace ids, 16 tell a million apart."""


class Block(msgspec.Struct, array_like=True, frozen=True):
    """Some entries of the log of events, and what occurs in them."""

    first: int
    last: int
    began: float
    """The time of the oldest event, and …"""
    ended: float
    """… of the newest."""
    mark: int
    """A checksum of the last entry: tells whether the index belongs to this log."""
    terms: str

    def may_have(self, terms: Sequence[str], since: float | None, until: float | None) -> bool:
        """Return whether an event with all these terms, of this time, may be in the block."""
        return (
            (since is None or self.ended >= since)
            and (until is None or self.began <= until)
            and all(each in self.terms for each in terms)
        )


def term(kind: str, text: str) -> str:
    """
    Return how a text occurs in the terms of a block. The beginning of a text occurs wherever the text does.

    >>> term("code", "TIMEOUT") in term("code", "TIMEOUT_LONG"), term("code", "TIME") in term("trace", "TIME")
    (True, False)
    """
    return f"\n{kind[0]}{text.replace(chr(10), ' ')[: _LENGTHS.get(kind, _LENGTH)]}"


class _IndexedFault(msgspec.Struct):
    code: str = ""
    trace_id: str | None = None


class _IndexedEvent(msgspec.Struct):
    """What the index reads of an event."""

    at: float
    where: str
    outcome: str
    fault: _IndexedFault
    trace_id: str = ""
    upstream: str = ""
    sent: str = ""

    def terms(self) -> set[str]:
        found = {
            term("outcome", self.outcome),
            term("where", self.where),
            term("code", self.fault.code),
            *(term("where", part) for part in self.where.split()),
        }
        further = {
            "trace": (self.trace_id, self.fault.trace_id),
            "upstream": (self.upstream,),
            "code": (self.sent,),
        }
        return found | {term(kind, text) for kind, texts in further.items() for text in texts if text}


_events = msgspec.json.Decoder(list[_IndexedEvent])
_blocks = msgspec.json.Decoder(Block)


def _block_of(entries: Sequence[Entry]) -> Block:
    terms: set[str] = set()
    times: list[float] = []
    for entry in entries:
        try:
            events = _events.decode(entry.value)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
            continue
        for event in events:
            terms |= event.terms()
            times.append(event.at)
    began, ended = (min(times), max(times)) if times else (0.0, 0.0)
    last = entries[-1]
    return Block(entries[0].seq, last.seq, began, ended, crc32(last.value), "".join(sorted(terms)))


def _decoded(entry: Entry | None) -> Block | None:
    try:
        return None if entry is None else _blocks.decode(entry.value)
    except (msgspec.MsgspecError, ValueError):
        return None


class IndexWriter:
    """Adds the blocks of new entries to the index. Several processes may do so at once: each block is added once."""

    def __init__(self, store: Store, events: Log) -> None:
        """
        Args:
            store: where the index is kept.
            events: the log of the events.

        """
        self._events = events
        self._index = store.log(INDEX)

    async def apply(self, budget: float = _BUDGET) -> None:
        """Add the blocks that are whole, for at most so many seconds, and remove those whose entries were removed."""
        until = monotonic() + budget
        newest = await self._index.tail()
        block = _decoded(newest)
        if newest is not None and (block is None or not await belongs(block, self._events)):
            # Of another log, or damaged.
            await self._index.drop()
            newest = block = None
        number = (await self._index.bounds()).last if newest is None else newest.seq
        start = 1 if block is None else block.last + 1
        while monotonic() < until:
            entries = await self._next_block(start)
            if not entries:
                break
            try:
                await self._index.append(msgspec.json.encode(_block_of(entries)), last=number)
            except ConflictError:
                return  # another process has added it
            number, start = number + 1, entries[-1].seq + 1
        await self._trim()

    async def _next_block(self, start: int) -> list[Entry]:
        """Return the entries of the next block; none if it is not whole yet."""
        found: list[Entry] = []
        size = 0
        while True:
            try:
                page = await self._events.read(start, limit=_PAGE)
            except TrimmedError as error:
                found, size, start = [], 0, error.first
                continue
            for entry in page:
                found.append(entry)
                size += len(entry.value)
                if len(found) == _ENTRIES or size >= _BYTES:
                    return found
            if len(page) < _PAGE:
                return []
            start = page[-1].seq + 1

    async def _trim(self) -> None:
        """Remove the blocks of which no entry is kept."""
        first = (await self._events.bounds()).first
        while True:
            oldest = await self._index.read(limit=_PAGE)
            kept = next(
                (each.seq for each in oldest if (block := _decoded(each)) and block.last >= first), None
            )
            if not oldest or kept == oldest[0].seq:
                return
            await self._index.trim(oldest[-1].seq + 1 if kept is None else kept)


async def belongs(block: Block, events: Log) -> bool:
    """Return whether a block was made of this log, and its last entry is still there."""
    try:
        entries = await events.read(block.last, limit=1)
    except TrimmedError:
        # All of its entries are gone: nothing can be skipped, and nothing is lost by beginning again.
        return False
    return bool(entries) and entries[0].seq == block.last and crc32(entries[0].value) == block.mark


async def read_blocks(index: Log, events: Log) -> AsyncIterator[Block]:
    """Iterate over the blocks of the index, the newest first; over none, if it is not of this log."""
    newest = _decoded(await index.tail())
    if newest is None or not await belongs(newest, events):
        return
    end = (await index.bounds()).last
    while end > 0:
        start = max(1, end - _PAGE + 1)
        try:
            entries = await index.read(start, limit=end - start + 1)
        except TrimmedError as error:
            if error.first > end:
                return
            entries, start = await index.read(error.first, limit=end - error.first + 1), 1
        for entry in reversed(entries):
            block = _decoded(entry)
            if block is None:
                return
            yield block
        end = start - 1
