"""The values that a store returns; they compare by content."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds", "DeadMessage", "Entry", "Message", "QueueSize", "Row"]


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One entry of a log, as `Log.read` and `Log.follow` return it. The first entry has `seq` 1, and there are no gaps.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> _ = asyncio.run(store.log("jobs").append(b"started"))
    >>> [(entry.seq, entry.value) for entry in asyncio.run(store.log("jobs").read())]
    [(1, b'started')]
    """

    seq: int
    value: bytes
    dedupe: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    The oldest entry kept and the newest ever appended, from `Log.bounds`. `first == last + 1` if no entry is kept.

    >>> Bounds(first=3, last=7).kept
    5
    """

    first: int
    last: int

    @property
    def kept(self) -> int:
        """How many entries can be read."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Row:
    """
    A key, its value and its revision, from `Table.get`. The revisions of a key only grow, also across deletions.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> _ = asyncio.run(store.table("orders").create("17", b"new"))
    >>> row = asyncio.run(store.table("orders").get("17"))
    >>> row.value, row.revision
    (b'new', 1)
    """

    key: str
    value: bytes
    revision: int
    expires_in: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """
    A message in a queue, as `Queue.messages` lists it.

        async for message in store.queue("mail").messages():
            print(message.key, message.attempts, message.due_in)
    """

    id: str
    key: str | None
    value: bytes
    attempts: int
    """How often it was taken."""
    due_in: float
    """Seconds until it can be taken; 0 if it can be taken now."""
    leased: bool


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """
    A message that is not delivered again unless it is revived, as `Queue.dead` lists it.

        for message in await queue.dead():
            if message.reason == "no address":
                await queue.revive(message.id)
    """

    id: str
    key: str | None
    value: bytes
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class QueueSize:
    """
    The number of messages that can be taken, are delayed, are leased, and are dead, from `Queue.size`.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> _ = asyncio.run(store.queue("mail").put(b"later", delay=3600))
    >>> size = asyncio.run(store.queue("mail").size())
    >>> size.ready, size.delayed
    (0, 1)
    """

    ready: int
    delayed: int
    leased: int
    dead: int
