"""
Delete what has ended: after some time, or when there is too much of it.

What belongs to one subject is deleted in an order that a crash may interrupt: the key and the log first, and last the row,
by which another process finds what is left to delete.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from amends.durable.keys import Owners
from amends.stores.contract import Store

__all__ = ["Retention", "delete_subject"]

T = TypeVar("T")

_AT_ONCE = 64


async def delete_subject(
    store: Store, id: str, *, log: str, row: tuple[str, str], keys: Owners, key: str | None
) -> None:
    """
    Delete an ended job or task.

    Args:
        store: where it is.
        id: the owner of the key.
        log: the name of its log.
        row: the table and the key of its row.
        keys: the idempotency keys.
        key: its idempotency key, if it has one.
    """
    if key is not None:
        await keys.release(key, id)
    await store.log(log).drop()
    table, name = row
    await store.table(table).discard(name)


class Retention(Generic[T]):
    """What has ended and is to be deleted, in the order of its end."""

    def __init__(
        self,
        delete: Callable[[T], Awaitable[None]],
        *,
        ended: Callable[[T], float],
        most: int,
        age: float,
        together: bool = True,
    ) -> None:
        """
        Args:
            delete: deletes one of them; may be called again after a failure.
            ended: the wall-clock time at which one of them ended.
            most: how many are kept.
            age: for how many seconds one is kept.
            together: whether deletions run at the same time, so that they share commits.
        """
        self._delete, self._ended, self._most, self._age = delete, ended, most, age
        self._together = together
        self.kept: deque[T] = deque()
        self._running = False

    def add(self, one: T) -> None:
        """Add one that has ended."""
        self.kept.append(one)

    @property
    def excess(self) -> int:
        """How many are to be deleted because there are too many; 0 while `expire` is deleting them."""
        return 0 if self._running else max(0, len(self.kept) - self._most)

    async def expire(self) -> None:
        """Delete those that are too old or too many. One whose deletion fails is kept, and the failure raised."""
        if self._running:
            return
        self._running = True
        try:
            while due := self._due():
                await self._delete_first(due)
        finally:
            self._running = False

    def _due(self) -> int:
        """How many of the oldest ones are deleted next."""
        count, now = max(0, len(self.kept) - self._most), time.time()
        while count < min(len(self.kept), _AT_ONCE) and self._ended(self.kept[count]) + self._age < now:
            count += 1
        return min(count, _AT_ONCE)

    async def _delete_first(self, count: int) -> None:
        if not self._together:
            for _ in range(count):
                await self._delete(self.kept[0])
                self.kept.popleft()
            return
        deleting = (self._delete(self.kept[index]) for index in range(count))
        failures = await asyncio.gather(*deleting, return_exceptions=True)
        first = [self.kept.popleft() for _ in range(count)]
        self.kept.extendleft(
            one for one, failure in reversed(list(zip(first, failures, strict=True))) if failure is not None
        )
        for failure in failures:
            if failure is not None:
                raise failure
