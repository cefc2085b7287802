"""
What a store raises, split by what the caller can do about it.

    StoreError
    ├── ConflictError            somebody else changed it first: read again, decide again
    ├── LeaseLostError           the task is no longer yours: stop, and keep its result to yourself
    ├── TrimmedError             the entries you ask for were trimmed: start at `.first`
    ├── StoreUnavailableError    locked, unreachable, timed out: try again (`.executed` says whether it may have happened)
    │   └── StoreFullError       no space left: make room, then try again
    ├── ValueTooLargeError       the backend cannot hold a value of that size
    ├── UnsupportedError         this backend has no such operation
    ├── DamagedStoreError        the file or stream is not what it should be
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
    "StoreUnavailableError",
    "TrimmedError",
    "UnsupportedError",
    "ValueTooLargeError",
]

Executed = Literal["no", "maybe"]


class StoreError(Exception):
    """Root of everything a store raises on purpose."""


class ConflictError(StoreError):
    """
    A compare-and-set found something else than expected; nothing was written.

    `actual` is the revision (table) or last sequence number (log) that was found, 0 for an absent key,
    and None where the backend does not say.
    """

    def __init__(self, what: str, expected: int, actual: int | None = None) -> None:
        super().__init__(what, expected, actual)
        self.what = what
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        found = "something else" if self.actual is None else str(self.actual)
        return f"{self.what} is at {found}, not at {self.expected}: read it again and decide again"


class LeaseLostError(StoreError):
    """The lease ended and the task went on without this worker; nothing was changed."""

    def __init__(self, queue: str, task: str, epoch: int) -> None:
        super().__init__(queue, task, epoch)
        self.queue = queue
        self.task = task
        self.epoch = epoch

    def __str__(self) -> str:
        return (
            f"the lease on task {self.task} of queue {self.queue!r} (epoch {self.epoch}) is over: stop working on it, "
            "and extend() earlier or open the queue with a longer lease"
        )


class TrimmedError(StoreError):
    """The position asked for lies before the oldest entry kept. Skipping silently would be a gap."""

    def __init__(self, log: str, start: int, first: int) -> None:
        super().__init__(log, start, first)
        self.log = log
        self.start = start
        self.first = first

    def __str__(self) -> str:
        return f"log {self.log!r} was trimmed: entry {self.start} is gone, the oldest kept is {self.first}"


class StoreUnavailableError(StoreError):
    """The backend did not answer in time. `executed` is "maybe" when the write may have happened all the same."""

    def __init__(self, message: str, executed: Executed = "no") -> None:
        super().__init__(message, executed)
        self.message = message
        self.executed: Executed = executed

    def __str__(self) -> str:
        return self.message


class StoreFullError(StoreUnavailableError):
    """The backend has no room left; nothing was written."""


class ValueTooLargeError(StoreError):
    """The value is larger than the backend takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"a value of {self.size} bytes, and this store takes at most {self.limit}: "
            "keep large things in a file or an object store, and their address here"
        )


class UnsupportedError(StoreError):
    """This backend cannot do that, and does not pretend to."""


class DamagedStoreError(StoreError):
    """What is stored cannot be what this library wrote, or was written by a newer version of it."""


class StoreClosedError(StoreError):
    """The store was closed."""

    def __init__(self, url: str = "") -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"the store {self.url} is closed: open it again with amends.stores.open()"
