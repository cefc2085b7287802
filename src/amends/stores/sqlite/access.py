"""
Who does a piece of work: the event loop itself, or a thread.

A point read or a small commit without fsync takes a few microseconds; a trip to a thread and back, told through the event loop,
a hundred. So the loop does what cannot keep it, on a connection of its own that never waits for a lock:

- A read of one row or of a short page is done by the loop. Scans, counts, values above `ROOM`, and reads that meet a
  lock are the reader's.
- A write is done by the loop when it is small and its commit takes no time: because `synchronous=normal` makes it a copy into
  the system's cache, or because the disk has shown that it is quick (see `patience`). Transactions of the user's, large
  values, and writes that meet another process's lock are the writer thread's, and so is every commit that waits for a disk
  of which nothing is known. When nothing else is under way, the loop waits `_MOMENT` for the thread, which on a fast disk is
  all it takes; what takes longer is awaited like everything else.
- Writers that come together are the thread's, all that wait in one transaction.
- The loop lends its time: after `_LENT` seconds of reads others get a turn, and after as many of writes the next
  goes to the thread and is awaited. Now and then one does so anyway, and the thread moves the write-ahead log into the file
  when it has answered: no such checkpoint falls on the loop, or on a caller.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

from amends.stores.errors import StoreClosedError
from amends.stores.sqlite.commit import in_transaction
from amends.stores.sqlite.file import File, meaning
from amends.stores.sqlite.patience import Patience
from amends.stores.sqlite.threads import Later, Reader, Writer

__all__ = ["NO_BOUND", "ROOM", "Access", "Elsewhere", "Rows"]

R = TypeVar("R")
T = TypeVar("T")

# A value of this size is copied in some ten microseconds; a much larger one would keep the loop for milliseconds.
ROOM = 65_536
NO_BOUND = 2**62
_LENT = 0.004
# How long the loop waits for the thread: several fsyncs of a fast disk, and nothing anybody notices.
_MOMENT = 0.001


class Elsewhere(BaseException):
    """
    This is nothing for the event loop; the thread does it instead.

    No `Exception`, because it passes through functions of the user's, who may handle those.
    """


class Rows(Generic[R]):
    """One log's, table's or queue's statements: ready on the loop's connection, and how to have them on another."""

    __slots__ = ("make", "near")

    def __init__(self, access: Access, make: Callable[[sqlite3.Connection, int], R]) -> None:
        self.near = make(access.connection, ROOM)
        self.make = make

    def on(self, ask: Callable[[R], T]) -> Callable[[sqlite3.Connection], T]:
        """The same question on a thread's connection, where size is no matter."""
        return lambda connection: ask(self.make(connection, NO_BOUND))


class Access:
    """The connections of one open store, and the rule who uses which."""

    def __init__(
        self, url: str, file: File, loops: sqlite3.Connection, writer: Writer, reader: Reader
    ) -> None:
        self._url = url
        self.place = os.path.realpath(file.path)
        self.connection = loops
        self._file = file
        self._writer = writer
        self._reader = reader
        self._patience = Patience(asyncio.get_running_loop(), commits_wait=file.synchronous != "normal")
        self.closed = False
        self._read_for = 0.0

    async def read(self, rows: Rows[R], ask: Callable[[R], T]) -> T:
        """Ask for a little, wherever it is answered sooner."""
        self._check_open()
        begin = perf_counter()
        try:
            answer = ask(rows.near)
        except Elsewhere:
            pass
        except sqlite3.Error as error:
            if not _busy(error):
                raise meaning(error, self._file)  # noqa: B904  (it carries its cause)
        else:
            self._read_for += perf_counter() - begin
            if self._read_for > _LENT:
                self._read_for = 0.0
                await asyncio.sleep(0)
            return answer
        # Out here and not in the handler: an exception at hand would keep its cursor, and that a stale snapshot, alive.
        return await self._reader.submit(rows.on(ask))

    def read_much(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Have the reader do it, because it may take long."""
        self._check_open()
        return self._reader.submit(work)

    async def write(
        self, rows: Rows[R], ask: Callable[[R], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        Change something, and return after its commit.

        `ask` must look before it writes, because it may share its transaction, unless it is `isolated`; `alone` says that
        it needs none: each of its statements stands for itself.
        """
        try:
            return self.write_now(rows, ask, alone=alone, isolated=isolated)
        except Later as later:
            future: asyncio.Future[T] = later.future
        return await future

    def write_now(
        self, rows: Rows[R], ask: Callable[[R], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        The same for who must know when it is not done at once.

        Raises:
            Later: the thread is at it.
        """
        begin = perf_counter()
        if self._patience.trusts and self._may_lend(begin):
            try:
                return self._write_here(rows.near, ask, begin, alone)
            except Elsewhere:
                pass
        return self.hand_over(rows.on(ask), alone=alone, isolated=isolated)

    async def write_elsewhere(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """Have the writer's thread do it, because nobody knows how long it takes."""
        try:
            return self.hand_over(work, alone=alone, isolated=isolated)
        except Later as later:
            future: asyncio.Future[T] = later.future
        return await future

    def hand_over(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        Have the writer's thread do it, waiting a moment for it when that harms nobody; see `Writer.submit`.

        Raises:
            Later: it takes more than a moment.
        """
        begin = perf_counter()
        if self.closed or not self._may_lend(begin):
            raise Later(self.submit(work, alone=alone, isolated=isolated))
        settle = self._patience.waited
        try:
            return self._writer.do_soon(work, _MOMENT, alone=alone, isolated=isolated)
        except Later:
            settle = self._patience.waited_in_vain
            raise
        finally:
            settle(begin, perf_counter())

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> asyncio.Future[T]:
        """Have the writer's thread do it, in its own time."""
        self._check_open()
        if self._patience.worn:
            self._writer.tidy_up = True
        future = self._writer.submit(work, isolated=isolated, alone=alone)
        self._patience.gave()
        return future

    def shut(self) -> None:
        """Take no more work."""
        if not self.closed:
            self.closed = True
            # Not the last connection to go, whose close empties the write-ahead log: that one belongs to a thread.
            self.connection.close()

    async def close(self) -> None:
        """Do what was submitted, and let go of the file."""
        self.shut()
        await self._writer.close()
        await self._reader.close()

    def _check_open(self) -> None:
        if self.closed:
            raise StoreClosedError(self._url)

    def _may_lend(self, now: float) -> bool:
        return self._patience.left(now) and self._writer.idle and not self.closed

    def _write_here(self, near: R, ask: Callable[[R], T], begin: float, alone: bool) -> T:
        try:
            answer = ask(near) if alone else in_transaction(self.connection, ask, near)
        except sqlite3.Error as error:
            if _busy(error):
                raise Elsewhere from None
            raise meaning(error, self._file)  # noqa: B904  (it carries its cause)
        finally:
            self._patience.did(begin, perf_counter())
        self._writer.committed()
        return answer


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
