"""
Copy a store to another store of any backend. An interrupted copy continues where it stopped when it is run again.

Logs keep their sequence numbers and dedupe ids; rows keep their values and remaining expiry (the target assigns its own
revisions); messages keep their keys, attempts and remaining delay; dead letters keep their reasons. Both stores must not
be written to during the copy; the comparison at the end detects it if they were.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, cast

from amends.stores.contract import Bounds, DeadMessage, Entry, Log, Queue, Store, Table
from amends.stores.errors import ConflictError, StoreError

__all__ = ["CopyResult", "copy"]

# Written concurrently: enough to fill a group commit. Each append is conditional on the previous one, so the order holds.
_WINDOW = 128


class _RestorableLog(Log, Protocol):
    async def start_at(self, first: int) -> None:
        """Create an empty log whose first entry will have that number."""


class _RestorableQueue(Queue, Protocol):
    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None
    ) -> bool:
        """Put a message with its attempts; on a backend that supports tokens, one token is put at most once."""

    async def restore_dead(self, letter: DeadMessage) -> None:
        """Add a dead letter."""


@dataclass(slots=True)
class CopyResult:
    """What was copied, and where source and target differ afterwards (nothing, if the copy succeeded)."""

    logs: int = 0
    entries: int = 0
    tables: int = 0
    rows: int = 0
    queues: int = 0
    messages: int = 0
    dead: int = 0
    differences: list[str] = field(default_factory=list)


async def copy(source: Store, target: Store) -> CopyResult:
    """
    Copy everything in `source` to `target`, then compare the two.

    Raises:
        StoreError: the target holds different data, or a message is being worked on.
    """
    names = await source.names()
    for name in names["queues"]:
        if (await source.queue(name).size()).leased:
            raise StoreError(
                f"queue {name!r} has messages in progress: stop its workers, wait until their leases expire, then copy"
            )
    result = CopyResult()
    for name in names["logs"]:
        result.entries += await _copy_log(source.log(name), target.log(name))
        result.logs += 1
    for name in names["tables"]:
        result.rows += await _copy_table(source.table(name), target.table(name))
        result.tables += 1
    for name in names["queues"]:
        messages, dead = await _copy_queue(source.queue(name), target.queue(name))
        result.messages += messages
        result.dead += dead
        result.queues += 1
    result.differences = await _differences(source, target, names)
    return result


async def _copy_log(source: Log, target: Log) -> int:
    bounds, existing = await source.bounds(), await target.bounds()
    if existing == Bounds(1, 0):
        if bounds.first > 1:
            await cast("_RestorableLog", target).start_at(bounds.first)
        start = bounds.first
    else:
        start = await _resume_at(source, target, bounds, existing)
    while entries := await source.read(start, limit=_WINDOW):
        try:
            await _all(target.append(e.value, dedupe=e.dedupe, last=e.seq - 1) for e in entries)
        except ConflictError:
            # Part of the window arrived before a connection broke: find out how far, and continue there.
            start = await _resume_at(source, target, bounds, await target.bounds())
            if start <= entries[0].seq:
                raise
            continue
        start = entries[-1].seq + 1
    return bounds.kept


async def _resume_at(source: Log, target: Log, bounds: Bounds, existing: Bounds) -> int:
    """The next number to copy to a target that has entries; raises StoreError if they are not the source's."""
    last = existing.last
    fits = last <= bounds.last and existing.first <= last + 1
    if fits and (last < bounds.first or await source.read(last, limit=1) == await _tail(target, existing)):
        return last + 1
    raise StoreError(
        f"log {source.name!r} of the target holds other entries ({existing.first} to {last}): drop it first"
    )


async def _tail(log: Log, bounds: Bounds) -> list[Entry]:
    return await log.read(bounds.last, limit=1) if bounds.kept else []


async def _copy_table(source: Table, target: Table) -> int:
    count = 0
    window: list[Awaitable[int]] = []
    async for row in source.scan():
        window.append(target.put(row.key, row.value, expires_in=row.expires_in))
        count += 1
        if len(window) == _WINDOW:
            await _all(window)
            window = []
    await _all(window)
    return count


async def _copy_queue(source: Queue, target: Queue) -> tuple[int, int]:
    restorable = cast("_RestorableQueue", target)
    existing = {(message.key, message.value) async for message in target.messages()}
    count = 0
    async for message in source.messages():
        count += 1
        if (message.key, message.value) in existing and message.key is not None:
            continue
        put = await restorable.restore(
            message.value,
            key=message.key,
            delay=message.due_in,
            attempts=message.attempts,
            token=f"copied-{message.id}",
        )
        if not put and message.key is not None:
            raise StoreError(
                f"queue {source.name!r} of the target has another message with key {message.key!r}: drop it first"
            )
    known = await target.dead(limit=1_000_000)
    letters = await source.dead(limit=1_000_000)
    for letter in letters:
        if not any(_same(letter, other) for other in known):
            await restorable.restore_dead(letter)
    return count, len(letters)


def _same(one: DeadMessage, other: DeadMessage) -> bool:
    return (one.key, one.value, one.attempts, one.reason) == (
        other.key,
        other.value,
        other.attempts,
        other.reason,
    )


async def _all(writes: Iterable[Awaitable[int]]) -> None:
    results = await asyncio.gather(*writes, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


# -- the comparison


# Seconds to wait before each comparison.
_PAUSES = (0.0, 0.2, 1.0, 3.0)


async def _differences(source: Store, target: Store, names: dict[str, list[str]]) -> list[str]:
    """
    Return a sentence for each name whose contents differ, after comparing differing names several times.

    A row may expire between reading the two sides, and a replica of a stream may lag behind what its leader has
    acknowledged.
    """
    left = [(kind, name) for kind in _COMPARED for name in names[kind]]
    for pause in _PAUSES:
        await asyncio.sleep(pause)
        left = [(kind, name) for kind, name in left if await _differs(source, target, kind, name)]
        if not left:
            break
    return [f"{kind.removesuffix('s')} {name!r} differs" for kind, name in left]


async def _differs(source: Store, target: Store, kind: str, name: str) -> bool:
    read = _COMPARED[kind]
    return await read(source, name) != await read(target, name)


_COMPARED: dict[str, Callable[[Store, str], Awaitable[object]]] = {
    "logs": lambda store, name: _log_digest(store.log(name)),
    "tables": lambda store, name: _digest(_rows(store.table(name))),
    "queues": lambda store, name: _digest(_messages(store.queue(name))),
}


async def _log_digest(log: Log) -> tuple[Bounds, str]:
    bounds = await log.bounds()
    digest, start = hashlib.sha256(), bounds.first
    while entries := await log.read(start, limit=1000):
        for entry in entries:
            digest.update(repr((entry.seq, entry.dedupe, len(entry.value))).encode() + entry.value)
        start = entries[-1].seq + 1
    return bounds, digest.hexdigest()


async def _rows(table: Table) -> AsyncIterator[tuple[object, bytes]]:
    async for row in table.scan():
        yield (row.key, row.expires_in is None), row.value


async def _messages(queue: Queue) -> AsyncIterator[tuple[object, bytes]]:
    async for message in queue.messages():
        yield ("message", message.key, message.attempts), message.value
    for letter in await queue.dead(limit=1_000_000):
        yield ("dead", letter.key, letter.attempts, letter.reason), letter.value


async def _digest(items: AsyncIterator[tuple[object, bytes]]) -> int:
    """A sum of hashes, which does not depend on the order."""
    total = 0
    async for what, value in items:
        total += int.from_bytes(hashlib.sha256(repr((what, len(value))).encode() + value).digest(), "big")
    return total
