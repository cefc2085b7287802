"""Remove events that are too old, and the oldest ones if there are too many."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from amends.stores.contract import Log
from amends.stores.errors import TrimmedError

__all__ = ["Retention"]

_PAGE = 64


class _Times(msgspec.Struct):
    at: float


_decoder = msgspec.json.Decoder(list[_Times])


class Retention:
    """Keeps a log of events within an age and a size. It reads each entry once, so that a further pass is cheap."""

    def __init__(self, log: Log, seconds: float, max_bytes: int) -> None:
        """
        Args:
            log: the log.
            seconds: events are kept so long.
            max_bytes: the most bytes of events.

        """
        self._log = log
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._pages: deque[tuple[int, float, int]] = (
            deque()
        )  # (first number, newest time, bytes) of each page
        self._size = 0
        self._next = 1

    async def apply(self, now: float) -> None:
        """Read the entries that are new since the last pass, then remove what exceeds the limits."""
        await self._read_new()
        while self._pages and (self._pages[0][1] < now - self._seconds or self._size > self._max_bytes):
            self._size -= self._pages.popleft()[2]
            await self._log.trim(self._pages[0][0] if self._pages else self._next)

    async def _read_new(self) -> None:
        while True:
            try:
                entries = await self._log.read(self._next, limit=_PAGE)
            except TrimmedError as error:
                # Another process has removed them.
                self._forget(error.first)
                continue
            if not entries:
                return
            newest = max(_time_of(entry.value) for entry in entries)
            size = sum(len(entry.value) for entry in entries)
            self._pages.append((entries[0].seq, newest, size))
            self._size += size
            self._next = entries[-1].seq + 1
            await asyncio.sleep(0)

    def _forget(self, first: int) -> None:
        """Forget the pages before entry `first`."""
        while len(self._pages) > 1 and self._pages[1][0] <= first:
            self._size -= self._pages.popleft()[2]
        if self._next < first:
            self._pages.clear()
            self._size, self._next = 0, first


def _time_of(entry: bytes) -> float:
    try:
        return max((each.at for each in _decoder.decode(entry)), default=0.0)
    except msgspec.MsgspecError:
        return 0.0
