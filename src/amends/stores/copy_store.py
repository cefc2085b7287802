"""
Moving a store into another, of any backend, without losing anything; begun again, it goes on where it stopped.

Logs keep their sequence numbers and dedupe ids, keys their values and what is left of their expiry (revisions are the
target's own), tasks their keys, attempts and what is left of their delay, dead letters their reasons. Nobody should write
to either store meanwhile: the comparison at the end finds it when somebody did.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, cast

from amends.stores.contract import Bounds, DeadMessage, Entry, Log, Queue, Store, Table
from amends.stores.errors import ConflictError, StoreError

__all__ = ["Copied", "copy"]

# Written at once: enough to fill a group commit or a pipe. Entries are conditional on the one before, so their order holds.
_WINDOW = 128


class _RestorableLog(Log, Protocol):
    async def start_at(self, first: int) -> None:
        """Make an empty log whose first entry will have that number."""
        ...


class _RestorableQueue(Queue, Protocol):
    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None
    ) -> bool:
        """A put that brings attempts along; with a token, at most once on a backend that knows tokens."""
        ...

    async def restore_dead(self, letter: DeadMessage) -> None:
        """Add a dead letter."""
        ...


@dataclass(slots=True)
class Copied:
    """What was moved, and where source and target differ in the end (nothing, if all went well)."""

    logs: int = 0
    entries: int = 0
    tables: int = 0
    rows: int = 0
    queues: int = 0
    tasks: int = 0
    dead: int = 0
    differences: list[str] = field(default_factory=list)


async def copy(source: Store, target: Store) -> Copied:
    """
    Copy everything in `source` to `target`, then compare the two.

    Raises:
        StoreError: the target holds something else already, or a task is being worked on.
    """
    names = await source.names()
    for name in names["queues"]:
        if (await source.queue(name).size()).leased:
            raise StoreError(
                f"queue {name!r} has tasks being worked on: stop its workers, wait for their leases, copy then"
            )
    copied = Copied()
    for name in names["logs"]:
        copied.entries += await _copy_log(source.log(name), target.log(name))
        copied.logs += 1
    for name in names["tables"]:
        copied.rows += await _copy_table(source.table(name), target.table(name))
        copied.tables += 1
    for name in names["queues"]:
        tasks, dead = await _copy_queue(source.queue(name), target.queue(name))
        copied.tasks += tasks
        copied.dead += dead
        copied.queues += 1
    copied.differences = await _differences(source, target, names)
    return copied


async def _copy_log(source: Log, target: Log) -> int:
    bounds, there = await source.bounds(), await target.bounds()
    if there == Bounds(1, 0):
        if bounds.first > 1:
            await cast("_RestorableLog", target).start_at(bounds.first)
        start = bounds.first
    else:
        start = await _resumed(source, target, bounds, there)
    while entries := await source.read(start, limit=_WINDOW):
        try:
            await _all(target.append(e.value, dedupe=e.dedupe, last=e.seq - 1) for e in entries)
        except ConflictError:
            # Some of the window arrived before a connection broke: look how far, and go on from there.
            start = await _resumed(source, target, bounds, await target.bounds())
            if start <= entries[0].seq:
                raise
            continue
        start = entries[-1].seq + 1
    return bounds.kept


async def _resumed(source: Log, target: Log, bounds: Bounds, there: Bounds) -> int:
    """Where to go on with a target that has entries; they must be the source's."""
    last = there.last
    fits = last <= bounds.last and there.first <= last + 1
    if fits and (last < bounds.first or await source.read(last, limit=1) == await _tail(target, there)):
        return last + 1
    raise StoreError(
        f"log {source.name!r} of the target holds other entries ({there.first} to {last}): drop it first"
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
    goal = cast("_RestorableQueue", target)
    there = {(task.key, task.value) async for task in target.messages()}
    tasks = 0
    async for task in source.messages():
        tasks += 1
        if (task.key, task.value) in there and task.key is not None:
            continue
        put = await goal.restore(
            task.value, key=task.key, delay=task.due_in, attempts=task.attempts, token=f"copied-{task.id}"
        )
        if not put and task.key is not None:
            raise StoreError(
                f"queue {source.name!r} of the target has another task with key {task.key!r}: drop it first"
            )
    known = await target.dead(limit=1_000_000)
    letters = await source.dead(limit=1_000_000)
    for letter in letters:
        if not any(_same(letter, other) for other in known):
            await goal.restore_dead(letter)
    return tasks, len(letters)


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


# Seconds before each look.
_LOOKS = (0.0, 0.2, 1.0, 3.0)


async def _differences(source: Store, target: Store, names: dict[str, list[str]]) -> list[str]:
    """
    What is not the same, looked at again before it is said.

    A row may expire between two looks, and the copy of a stream that is asked may be a moment behind what its leader
    has just acknowledged.
    """
    left = [(kind, name) for kind in _COMPARED for name in names[kind]]
    for pause in _LOOKS:
        await asyncio.sleep(pause)
        left = [(kind, name) for kind, name in left if await _differs(source, target, kind, name)]
        if not left:
            break
    return [f"{kind.removesuffix('s')} {name!r} differs" for kind, name in left]


async def _differs(source: Store, target: Store, kind: str, name: str) -> bool:
    seen = _COMPARED[kind]
    return await seen(source, name) != await seen(target, name)


_COMPARED: dict[str, Callable[[Store, str], Awaitable[object]]] = {
    "logs": lambda store, name: _log_digest(store.log(name)),
    "tables": lambda store, name: _digest(_rows(store.table(name))),
    "queues": lambda store, name: _digest(_tasks(store.queue(name))),
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


async def _tasks(queue: Queue) -> AsyncIterator[tuple[object, bytes]]:
    async for task in queue.messages():
        yield ("task", task.key, task.attempts), task.value
    for letter in await queue.dead(limit=1_000_000):
        yield ("dead", letter.key, letter.attempts, letter.reason), letter.value


async def _digest(items: AsyncIterator[tuple[object, bytes]]) -> int:
    """A sum of hashes: the same in any order."""
    total = 0
    async for what, value in items:
        total += int.from_bytes(hashlib.sha256(repr((what, len(value))).encode() + value).digest(), "big")
    return total
