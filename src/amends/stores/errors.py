"""
The exceptions of stores, divided by what the caller can do about them.

    StoreError
    ├── ConflictError            another writer was first: read again, decide again
    ├── LeaseLostError           another worker has the message: stop, and discard the result
    ├── TrimmedError             the requested entries were trimmed: start at `.first`
    ├── StoreUnavailableError    locked, unreachable or timed out: try again (`.executed`: whether the write may have happened)
    │   └── StoreFullError       no space left: free some, then try again
    ├── ValueTooLargeError       the backend cannot hold a value of that size
    ├── UnsupportedError         the backend does not support the operation
    ├── DamagedStoreError        the file or stream is not what it should be
    ├── StoreMismatchError       the store has other settings than its URL asks for
    └── StoreClosedError         used after `close()`

Mistakes in the call itself (a negative delay, a key that is not text) are ValueError and TypeError.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "ConflictError",
    "DamagedStoreError",
    "LeaseLostError",
    "StoreClosedError",
    "StoreError",
    "StoreFullError",
    "StoreMismatchError",
    "StoreUnavailableError",
    "TrimmedError",
    "UnsupportedError",
    "ValueTooLargeError",
]

Executed = Literal["no", "maybe"]


class StoreError(Exception):
    """
    Base class of all exceptions that a store raises deliberately. Catch it to handle all of them alike.

        try:
            await store.log("audit").append(entry)
        except StoreError:
            logging.exception("the audit log was not written")
    """


class ConflictError(StoreError):
    """
    A conditional write found another revision than expected; nothing was written. Read again and decide again.

    `name` is that of the log or table, and `key` the table's key (None for a log). `actual` is the revision (table) or
    last sequence number (log) that was found, 0 for an absent key, and None where the backend does not report it.

    >>> import asyncio
    >>> from amends import stores
    >>> table = asyncio.run(stores.open("memory:")).table("orders")
    >>> try:
    ...     asyncio.run(table.put("17", b"paid", revision=3))
    ... except ConflictError as conflict:
    ...     conflict.key, conflict.expected, conflict.actual
    ('17', 3, 0)
    """

    def __init__(self, name: str, expected: int, actual: int | None = None, key: str | None = None) -> None:
        super().__init__(name, expected, actual, key)
        self.name = name
        self.expected = expected
        self.actual = actual
        self.key = key

    def __str__(self) -> str:
        found = "another revision" if self.actual is None else str(self.actual)
        what = f"log {self.name!r}" if self.key is None else f"key {self.key!r} of table {self.name!r}"
        return f"{what} is at {found}, not at {self.expected}: read it again and decide again"


class LeaseLostError(StoreError):
    """
    The lease is over and another worker may have the message; nothing was changed. Stop, and discard the result.

        try:
            await lease.done()
        except LeaseLostError as lost:
            logging.warning("message %s of %s is with another worker", lost.message_id, lost.queue)
    """

    def __init__(self, queue: str, message_id: str, epoch: int) -> None:
        super().__init__(queue, message_id, epoch)
        self.queue = queue
        self.message_id = message_id
        self.epoch = epoch

    def __str__(self) -> str:
        return (
            f"the lease on message {self.message_id} of queue {self.queue!r} (epoch {self.epoch}) is over: stop working on it, "
            "and extend() earlier or open the queue with a longer lease"
        )


class TrimmedError(StoreError):
    """
    The requested position is before the oldest entry kept. Reading on from there would silently skip entries.

    >>> import asyncio
    >>> from amends import stores
    >>> log = asyncio.run(stores.open("memory:")).log("jobs")
    >>> for value in (b"a", b"b", b"c"):
    ...     last = asyncio.run(log.append(value))
    >>> try:
    ...     _ = asyncio.run(log.trim(3)), asyncio.run(log.read(1))
    ... except TrimmedError as trimmed:
    ...     trimmed.start, trimmed.first
    (1, 3)
    """

    def __init__(self, log: str, start: int, first: int) -> None:
        super().__init__(log, start, first)
        self.log = log
        self.start = start
        self.first = first

    def __str__(self) -> str:
        return f"log {self.log!r} was trimmed: entry {self.start} is gone, the oldest kept is {self.first}"


class StoreUnavailableError(StoreError):
    """
    The backend did not answer in time. `executed` is "maybe" if the write may have happened nevertheless.

    Try again; after "maybe", only with a write that may be repeated, such as an append with `dedupe`.

        try:
            await log.append(entry, dedupe="order-17")
        except StoreUnavailableError as error:
            await log.append(entry, dedupe="order-17")  # also right if error.executed is "maybe"
    """

    def __init__(self, message: str, executed: Executed = "no") -> None:
        super().__init__(message, executed)
        self.message = message
        self.executed: Executed = executed

    def __str__(self) -> str:
        return self.message


class StoreFullError(StoreUnavailableError):
    """
    The backend has no space left. Nothing was written, unless `executed` is "maybe". Free some space, then try again.

        try:
            await log.append(entry)
        except StoreFullError as error:  # before StoreUnavailableError, its base class
            logging.critical("the store is full: %s", error)
    """


class ValueTooLargeError(StoreError):
    """
    The value is larger than the backend allows. Store large data elsewhere, and its address here.

        try:
            await table.put("report", content)
        except ValueTooLargeError as error:
            print(f"{error.size} bytes, {error.limit} are allowed")
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"the value has {self.size} bytes and this store allows {self.limit}: "
            "keep large data in a file or an object store, and store its address here"
        )


class UnsupportedError(StoreError):
    """
    The backend does not support this operation. `Store.traits` says what a store supports before it is used.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> try:
    ...     asyncio.run(store.transaction(lambda tx: tx.sql("SELECT 1")))
    ... except UnsupportedError:
    ...     store.traits.sql
    False
    """


class DamagedStoreError(StoreError):
    """
    The stored data is damaged, was not written by this library, or was written by another version of it.

        try:
            store = await stores.open("sqlite:///work.db")
        except DamagedStoreError as error:
            sys.exit(f"work.db cannot be used: {error}")
    """


class StoreMismatchError(StoreError):
    """
    The store exists with other settings than its URL asks for; the message says what to change.

        try:
            store = await stores.open("nats://localhost:4222/work?replicas=3")
        except StoreMismatchError as error:
            sys.exit(str(error))
    """


class StoreClosedError(StoreError):
    """
    The store was closed. Use a store only inside its `async with` block.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> asyncio.run(store.close())
    >>> try:
    ...     asyncio.run(store.log("jobs").append(b"late"))
    ... except StoreClosedError as closed:
    ...     closed.url
    'memory:'
    """

    def __init__(self, url: str = "") -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"the store {self.url} is closed: open it again with amends.stores.open()"
