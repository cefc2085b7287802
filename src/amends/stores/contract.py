"""
The contract every backend keeps: a log, a table and a queue, and what their words mean.

Values are bytes. Names and keys are any text that UTF-8 can write (no lone surrogates), of any length and with any
characters. Times are seconds as floats. When an awaited write returns, it is acknowledged; what an acknowledgement is
worth on each backend stands in one table in `docs/stores.md`.

What is read is in `values`, what there is inside a transaction in `writers`; all of it can be imported from here. One test suite
(`tests/stores`) holds all backends to this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self, TypeVar

from amends.stores.signal import Signal
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
    "Transaction",
]

T = TypeVar("T")


class Log(Protocol):
    """
    An append-only sequence of entries, numbered from 1 without gaps, readable from any number.

    Where there are many small ones that come and go (one per job, say), call them `group/member`: what stands before the
    first slash they share where that is cheaper, which on NATS is a stream.
    """

    @property
    def name(self) -> str:
        """The name it was asked for by."""
        ...

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        """
        Add an entry and return its sequence number.

        Args:
            value: the entry.
            dedupe: an id of this append. While an entry with the same id is kept (on NATS: and younger than the dedupe
                window, two minutes unless said otherwise), appending it again adds nothing and returns that entry's
                number.
            last: append only if this is the newest sequence number (0: only to an empty log).

        Raises:
            ConflictError: `last` is not the newest number.
        """
        ...

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        """
        Up to `limit` entries from number `start` on (None: from the oldest kept); empty beyond the end.

        Raises:
            TrimmedError: `start` was trimmed away.
        """
        ...

    def follow(self, start: int | None = None) -> AsyncIterator[Entry]:
        """
        Every entry from `start` on, in order, and then those still to come; it never ends by itself.

        A slow reader is not dropped and holds up nobody: entries are fetched as it asks for them.

        Raises:
            TrimmedError: the next entry was trimmed before it was read.
        """
        ...

    def watched(self) -> AbstractAsyncContextManager[Signal]:
        """
        A bell that rings when something may have been appended, while the context lasts.

        Read its `count`, read the log, then `wait(count, timeout)`. A ring may be lost with a connection: give a time-out.
        Where a ring brings the entry along (`brought`), the log need not be read for it.
        """
        ...

    async def tail(self) -> Entry | None:
        """The newest entry, or None where none is kept."""
        ...

    async def bounds(self) -> Bounds:
        """The oldest and the newest sequence number; `Bounds(1, 0)` for a log nothing was ever appended to."""
        ...

    async def trim(self, before: int) -> int:
        """Forget the entries below `before`, and return the number of the oldest kept. Numbers are never used again."""
        ...

    async def drop(self) -> None:
        """Remove the log and its numbering: a later append starts at 1. Only for a log nobody follows."""
        ...


class Table(Protocol):
    """Keys and values with a revision each, so that changes can be made conditional on what was read."""

    @property
    def name(self) -> str:
        """The name it was asked for by."""
        ...

    async def get(self, key: str) -> Row | None:
        """What the key holds now, or None."""
        ...

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        """
        Write the key and return its new revision; with `revision`, only if that is the one it has (0: it is absent).

        The expiry counts from this write; a put without one makes the key permanent. A key past its expiry may still be
        renewed by its revision, as long as nobody has written it since and the backend has not removed it yet.

        Raises:
            ConflictError: the key is at another revision.
        """
        ...

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        """
        Write a key that does not exist (or has expired), and return its revision.

        Raises:
            ConflictError: it exists; `.actual` is its revision.
        """
        ...

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        """
        Remove the key and say whether it was there; with `revision`, only if that is the one it has.

        Raises:
            ConflictError: the key is at another revision, or absent.
        """
        ...

    async def discard(self, key: str) -> None:
        """Remove the key, whether or not it is there; for those who need not know, which saves looking."""
        ...

    def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        """
        The rows whose key begins with `prefix`, in no promised order.

        Not a snapshot: a row written while scanning may or may not appear, each at most once.
        """
        ...

    async def drop(self) -> None:
        """Remove the table with everything in it."""
        ...


class Lease(Protocol):
    """
    One worker's hold on one task, until it is done, given back, buried or its time is over.

    `epoch` grows with every take of a task. Write it beside whatever the work changes, and refuse smaller ones: that
    fences out a worker that was paused past its lease. The store itself does so for every method here.
    """

    @property
    def id(self) -> str:
        """The task's id in its queue."""
        ...

    @property
    def key(self) -> str | None:
        """The key it was put with."""
        ...

    @property
    def value(self) -> bytes:
        """What was put."""
        ...

    @property
    def attempt(self) -> int:
        """Which take of this task this is, from 1."""
        ...

    @property
    def epoch(self) -> int:
        """The fencing number of this take."""
        ...

    @property
    def expires_in(self) -> float:
        """Seconds left by this process's steady clock, counted from before the lease was asked for; 0 when over."""
        ...

    async def extend(self) -> None:
        """Hold it for one more full lease from now. Raises LeaseLostError if somebody else has taken it."""
        ...

    async def done(self) -> None:
        """Remove the task for good. Raises LeaseLostError if somebody else has taken it."""
        ...

    async def give_back(self, *, delay: float = 0.0) -> None:
        """Let somebody take it again after `delay`; the attempt counts. Raises LeaseLostError like the others."""
        ...

    async def bury(self, reason: str) -> None:
        """Move it to the dead letters at once. Raises LeaseLostError like the others."""
        ...


class Queue(Protocol):
    """
    Tasks for many workers, each held by one at a time.

    Earlier due tasks come first, roughly: redelivery and several workers make any stricter order a promise nobody keeps.
    """

    @property
    def name(self) -> str:
        """The name it was asked for by."""
        ...

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        """
        Put a task, to be taken after `delay`, and say whether it was put.

        False means that a task with this key waits or is being worked on: nothing was changed. The key is free again when
        that task is done or buried.
        """
        ...

    async def take(self, *, wait: float | None = 0.0) -> Lease | None:
        """
        Hold the next due task, or None when there was none for `wait` seconds (None: wait for ever).

        A task whose worker's lease ended is given again with its attempt counted; one that was taken `max_attempts`
        times is moved to the dead letters instead.
        """
        ...

    async def size(self) -> QueueSize:
        """How full it is."""
        ...

    def messages(self) -> AsyncIterator[Message]:
        """Everything in it except dead letters, in no promised order; not a snapshot."""
        ...

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        """Up to `limit` dead letters."""
        ...

    async def revive(self, id: str) -> bool:
        """Put a dead letter back, with its attempts at 0; False if there is none, or its key is taken by now."""
        ...

    async def discard(self, id: str) -> bool:
        """Forget a dead letter; False if there is none."""
        ...

    async def drop(self) -> None:
        """Remove the queue with everything in it."""
        ...


class Store(Protocol):
    """An open store: where named logs, tables and queues are found. They come into being with their first write."""

    @property
    def url(self) -> str:
        """Where it is, without passwords."""
        ...

    @property
    def supports_transactions(self) -> bool:
        """Whether `transaction()` works here."""
        ...

    def log(self, name: str) -> Log:
        """The log of that name."""
        ...

    def table(self, name: str) -> Table:
        """The table of that name."""
        ...

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> Queue:
        """
        The queue of that name.

        Args:
            name: its name.
            lease: how long a taken task is held without `extend()`; open a queue with the same lease everywhere.
            max_attempts: after that many takes that did not end in `done()`, a task becomes a dead letter (None: never).
        """
        ...

    async def transaction(self, work: Callable[[Transaction], T], *, short: bool = False) -> T:
        """
        Run `work` so that all it does through its argument happens together, or not at all if it raises.

        `work` is a plain function: it runs off the event loop, while nobody else writes, so it must be short. It may be
        run again after a failure that was not its own: whatever it does must go through its argument.

        Args:
            work: what is to happen together.
            short: it is a handful of calls of its argument and waits for nothing else, so that it may as well run on the
                event loop where that is sooner.

        Raises:
            UnsupportedError: `supports_transactions` is False.
        """
        ...

    async def names(self) -> dict[str, list[str]]:
        """What is stored here: the names under "logs", "tables" and "queues", sorted."""
        ...

    async def check(self) -> list[str]:
        """Look at everything stored, and say what is wrong: one sentence each, none when all is well."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go of the backend. Closing twice is fine."""
        ...

    async def __aenter__(self) -> Self:
        """The store itself."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...
