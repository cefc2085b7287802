"""
The interface of every backend: logs, tables and queues, and the meaning of their methods.

Values are bytes. Names and keys are any text that UTF-8 can encode (no lone surrogates), of any length and with any
characters. Times are seconds as floats. When an awaited write returns, it is acknowledged; a table in `docs/stores.md`
lists what an acknowledgement guarantees on each backend.

The types of returned values are in `values` and those used inside a transaction in `writers`; this module re-exports
both. The tests in `tests/stores` run against all backends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self, TypeVar

from amends.stores.clock import Clock
from amends.stores.signal import Signal
from amends.stores.traits import Traits
from amends.stores.values import Bounds, DeadMessage, Entry, Message, QueueSize, Row
from amends.stores.writers import LogWriter, QueueWriter, TableWriter, Transaction

__all__ = [
    "Bounds",
    "DeadMessage",
    "Entry",
    "Lease",
    "Log",
    "LogWriter",
    "Message",
    "Queue",
    "QueueSize",
    "QueueWriter",
    "Row",
    "Store",
    "Table",
    "TableWriter",
    "Traits",
    "Transaction",
]

T = TypeVar("T")


class Log(Protocol):
    """
    An append-only sequence of entries, numbered from 1 without gaps, readable from any number.

    For many short-lived logs (one per job, for example), use names of the form `group/member`: where it is cheaper, the
    logs with the same text before the first slash share resources. On NATS they share one stream.

    >>> import asyncio
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:") as store:
    ...         log = store.log("jobs/17")
    ...         await log.append(b"started")
    ...         return await log.append(b"finished", last=1), [entry.value for entry in await log.read()]
    >>> asyncio.run(example())
    (2, [b'started', b'finished'])
    """

    @property
    def name(self) -> str:
        """The name passed to `Store.log`."""

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        """
        Add an entry and return its sequence number.

        Args:
            value: the entry.
            dedupe: an id of this append. While an entry with the same id is kept (on NATS: and younger than the dedupe
                window, two minutes by default), appending it again adds nothing and returns that entry's
                number.
            last: append only if this is the newest sequence number (0: only to an empty log).

        Raises:
            ConflictError: `last` is not the newest number.
        """

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        """
        Return up to `limit` entries from number `start` on (None: from the oldest kept); none beyond the end.

        Raises:
            TrimmedError: `start` was trimmed away.
        """

    def follow(self, start: int | None = None) -> AsyncGenerator[Entry, None]:
        """
        Iterate over every entry from `start` on, in order, and wait for new ones; the iteration never ends by itself.

        The iterator fetches entries as the reader asks for them: a slow reader loses no entries and delays no writer.

        Raises:
            TrimmedError: the next entry was trimmed before it was read.
        """

    def watch(self) -> AbstractAsyncContextManager[Signal]:
        """
        Return a signal that is notified, while the context is open, when an entry may have been appended.

        Read its `count`, read the log, then `wait(count, timeout)`. A notification may be lost with a connection, so pass
        a timeout. Some backends send the entry with the notification; `Signal.entries` returns it without a read.
        """

    async def tail(self) -> Entry | None:
        """The newest entry, or None where none is kept."""

    async def bounds(self) -> Bounds:
        """The oldest and the newest sequence number; `Bounds(1, 0)` for a log that never had an entry."""

    async def trim(self, before: int) -> int:
        """Remove the entries below `before` and return the number of the oldest kept. Numbers are never reused."""

    async def drop(self) -> None:
        """Remove the log and its numbering: a later append starts at 1. Do not drop a log that has followers."""


class Table(Protocol):
    """
    Keys with a value and a revision each; a write can be conditional on the revision that was read.

    >>> import asyncio
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:") as store:
    ...         table = store.table("orders")
    ...         revision = await table.create("17", b"new")
    ...         await table.put("17", b"paid", revision=revision)
    ...         return (await table.get("17")).value
    >>> asyncio.run(example())
    b'paid'
    """

    @property
    def name(self) -> str:
        """The name passed to `Store.table`."""

    async def get(self, key: str) -> Row | None:
        """Return the key's row, or None if it is absent or expired."""

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        """
        Write the key and return its new revision; with `revision`, only if the key has that revision (0: is absent).

        The expiry counts from this write; a put without one makes the key permanent. A key past its expiry can still be
        renewed by its revision if no other writer has changed it since and the backend has not removed it yet.

        Raises:
            ConflictError: the key is at another revision.
        """

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        """
        Write a key that does not exist (or has expired), and return its revision.

        Raises:
            ConflictError: it exists; `.actual` is its revision.
        """

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        """
        Remove the key and return whether it existed; with `revision`, only if the key has that revision.

        Raises:
            ConflictError: the key is at another revision, or absent.
        """

    async def discard(self, key: str) -> None:
        """Remove the key if it exists. Cheaper than `delete`, because the backend does not look whether it exists."""

    def scan(self, prefix: str = "", *, after: str | None = None) -> AsyncIterator[Row]:
        """
        Iterate over the rows whose key begins with `prefix`, and with `after` comes behind that key.

        Keys are compared by their code points. Rows come in this order if `traits.ordered`, else in no guaranteed one.
        Not a snapshot: a row written while scanning may or may not appear, each at most once.
        """

    async def drop(self) -> None:
        """Remove the table with everything in it."""


class Lease(Protocol):
    """
    One worker's hold on one message, until the message is done, given back or dead-lettered, or the lease expires.

    `epoch` grows each time a message is taken. Write it beside whatever the work changes, and reject smaller epochs:
    this fences out a worker that was paused beyond its lease. The store does the same for every method here.

        lease = await queue.take(wait=None)
        try:
            await send(lease.value)
        except ConnectionError:
            await lease.give_back(delay=60)
        else:
            await lease.done()
    """

    @property
    def id(self) -> str:
        """The message's id in its queue."""

    @property
    def key(self) -> str | None:
        """The key passed to `put`."""

    @property
    def value(self) -> bytes:
        """The value passed to `put`."""

    @property
    def attempt(self) -> int:
        """How many times the message has been taken, this time included."""

    @property
    def epoch(self) -> int:
        """The fencing number of this lease."""

    @property
    def expires_in(self) -> float:
        """Seconds left by this process's steady clock, counted from before the take was requested; 0 when expired."""

    async def extend(self) -> None:
        """Renew the lease for its full length from now. Raises LeaseLostError if another worker has the message."""

    async def done(self) -> None:
        """Remove the message. Raises LeaseLostError if another worker has it."""

    async def give_back(self, *, delay: float = 0.0) -> None:
        """Make the message available again after `delay`; the attempt counts. Raises LeaseLostError as `done` does."""

    async def dead_letter(self, reason: str) -> None:
        """Move the message to the dead letters. Raises LeaseLostError as `done` does."""


class Queue(Protocol):
    """
    Messages for many workers, each message held by one worker at a time.

    Messages come roughly in the order in which they are due; redelivery and several workers rule out a stricter order.

    >>> import asyncio
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:") as store:
    ...         queue = store.queue("mail", lease=60)
    ...         await queue.put(b"hello")
    ...         lease = await queue.take()
    ...         await lease.done()
    ...         return lease.value, await queue.take()
    >>> asyncio.run(example())
    (b'hello', None)
    """

    @property
    def name(self) -> str:
        """The name passed to `Store.queue`."""

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        """
        Add a message that can be taken after `delay`, and return whether it was added.

        Returns False, and changes nothing, if a message with this key is waiting or being worked on. The key is free
        again when that message is done or dead-lettered.
        """

    async def take(self, *, wait: float | None = 0.0) -> Lease | None:
        """
        Take the next due message, or return None if there is none for `wait` seconds (None: wait without limit).

        A message whose lease expired is delivered again, with its attempt counted; a message that was taken
        `max_attempts` times becomes a dead letter instead.
        """

    async def size(self) -> QueueSize:
        """Count the messages by state."""

    async def now(self) -> float:
        """Seconds since 1970 by the clock that measures the delays of this queue: on NATS, the server's."""

    def messages(self) -> AsyncIterator[Message]:
        """Iterate over all messages except dead letters, in no guaranteed order; not a snapshot."""

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        """Return up to `limit` dead letters."""

    async def revive(self, id: str) -> bool:
        """Move a dead letter back into the queue with 0 attempts; False if the id is unknown or its key is in use."""

    async def discard(self, id: str) -> bool:
        """Delete a dead letter; False if there is none with this id."""

    async def drop(self) -> None:
        """Remove the queue with everything in it."""


class Store(Protocol):
    """
    An open store with named logs, tables and queues; the first write to a name creates it.

    >>> import asyncio
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:") as store:
    ...         await store.log("jobs").append(b"started")
    ...         return await store.names()
    >>> asyncio.run(example())
    {'logs': ['jobs'], 'tables': [], 'queues': []}
    """

    @property
    def url(self) -> str:
        """The store's URL, without passwords."""

    @property
    def traits(self) -> Traits:
        """What this store can do."""

    @property
    def clock(self) -> Clock:
        """The clocks of this process; leases are measured by the one since boot."""

    def log(self, name: str) -> Log:
        """The log with that name."""

    def table(self, name: str) -> Table:
        """The table with that name."""

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> Queue:
        """
        The queue with that name.

        Args:
            name: the queue's name.
            lease: how long a taken message is held without `extend()`; open a queue with the same lease everywhere.
            max_attempts: after that many takes without a `done()`, a message becomes a dead letter (None: never).
        """

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        """
        Run `work`; commit everything it does through its argument, or nothing if it raises.

        `work` is a plain function. It runs off the event loop and blocks all other writers, so it must be short. The
        store may run it again after a failure that `work` did not cause, so it must change nothing except through its
        argument.

        Raises:
            UnsupportedError: `traits.transactions` is False.
        """

    async def names(self) -> dict[str, list[str]]:
        """The names of what is stored, sorted, under "logs", "tables" and "queues"."""

    async def check(self) -> list[str]:
        """Read everything stored and return the problems found, one sentence each."""

    async def close(self) -> None:
        """Finish pending work and release the backend. Closing twice is allowed."""

    async def __aenter__(self) -> Self:
        """Return the store."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
