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
    """Base class of all exceptions that a store raises deliberately."""


class ConflictError(StoreError):
    """
    A conditional write found another revision than expected; nothing was written.

    `name` is that of the log or table, and `key` the table's key (None for a log). `actual` is the revision (table) or last sequence number (log) that was found, 0 for an absent key,
    and None where the backend does not report it.
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
    """The lease is over and another worker may have the message; nothing was changed."""

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
    """The requested position is before the oldest entry kept. Reading on from there would silently skip entries."""

    def __init__(self, log: str, start: int, first: int) -> None:
        super().__init__(log, start, first)
        self.log = log
        self.start = start
        self.first = first

    def __str__(self) -> str:
        return f"log {self.log!r} was trimmed: entry {self.start} is gone, the oldest kept is {self.first}"


class StoreUnavailableError(StoreError):
    """The backend did not answer in time. `executed` is "maybe" if the write may have happened nevertheless."""

    def __init__(self, message: str, executed: Executed = "no") -> None:
        super().__init__(message, executed)
        self.message = message
        self.executed: Executed = executed

    def __str__(self) -> str:
        return self.message


class StoreFullError(StoreUnavailableError):
    """The backend has no space left. Nothing was written, unless `executed` is "maybe"."""


class ValueTooLargeError(StoreError):
    """The value is larger than the backend allows."""

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
    """The backend does not support this operation."""


class DamagedStoreError(StoreError):
    """The stored data is damaged, was not written by this library, or was written by another version of it."""


class StoreMismatchError(StoreError):
    """The store exists with other settings than its URL asks for; the message says what to change."""


class StoreClosedError(StoreError):
    """The store was closed."""

    def __init__(self, url: str = "") -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"the store {self.url} is closed: open it again with amends.stores.open()"
