"""
Decide whether the event loop or a thread runs a statement.

A point read or a small commit without fsync takes a few microseconds; handing it to a thread and getting the result back
through the event loop takes about a hundred. The loop therefore runs short work itself, on its own connection, which never
waits for a lock:

- The loop reads single rows and short pages. The reader thread runs scans, counts, reads of values above `INLINE_BYTES`,
  and reads that meet a lock.
- The loop writes if the write is small and its commit is fast: with `synchronous=normal`, where a commit is a copy into the
  system's cache, or if recent commits have shown that the disk is fast (see `loop_budget`). The writer thread runs user
  transactions, large values, writes that meet another process's lock, and commits to a disk whose speed is not known. If no
  other write is pending, the loop waits up to `_BLOCK_FOR` for the thread, which is enough on a fast disk; after that the
  caller awaits the result.
- The writer thread runs all writes that are waiting at the same time in one transaction.
- After `_LOOP_BUDGET` seconds of reads the loop yields to other tasks; after as many of writes the next write goes to the
  thread and is awaited. One write in a fixed number goes to the thread in any case, which then checkpoints the write-ahead
  log after it has returned the results. Neither the loop nor a caller waits for a checkpoint.
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
from amends.stores.sqlite.file import File, store_error
from amends.stores.sqlite.loop_budget import LoopBudget
from amends.stores.sqlite.threads import Pending, Reader, Writer

__all__ = ["INLINE_BYTES", "UNLIMITED", "Access", "NeedsThread", "Rows"]

R = TypeVar("R")
T = TypeVar("T")

# Copying a value of this size takes about ten microseconds; a much larger one would block the loop for milliseconds.
INLINE_BYTES = 65_536
UNLIMITED = 2**62
_LOOP_BUDGET = 0.004
# How long the loop waits for the thread: several fsyncs of a fast disk, and too short to be noticed.
_BLOCK_FOR = 0.001


class NeedsThread(BaseException):
    """
    The work is not suitable for the event loop; the thread must run it.

    Not an `Exception`, because it passes through functions of the user, which may catch `Exception`.
    """


class Rows(Generic[R]):
    """The statements of one log, table or queue, on the loop's connection and on request on a thread's."""

    __slots__ = ("inline", "make")

    def __init__(self, access: Access, make: Callable[[sqlite3.Connection, int], R]) -> None:
        self.inline = make(access.connection, INLINE_BYTES)
        self.make = make

    def on(self, work: Callable[[R], T]) -> Callable[[sqlite3.Connection], T]:
        """The same work as a function of a thread's connection, without a size limit."""
        return lambda connection: work(self.make(connection, UNLIMITED))


class Access:
    """The connections of one open store, and the choice between them."""

    def __init__(
        self, url: str, file: File, loop_connection: sqlite3.Connection, writer: Writer, reader: Reader
    ) -> None:
        self._url = url
        self.real_path = os.path.realpath(file.path)
        self.connection = loop_connection
        self._file = file
        self._writer = writer
        self._reader = reader
        self._budget = LoopBudget(asyncio.get_running_loop(), commits_wait=file.synchronous != "normal")
        self.closed = False
        self._read_for = 0.0

    async def read(self, rows: Rows[R], work: Callable[[R], T]) -> T:
        """Run a short read on the loop, or in the reader thread if it turns out to be large or locked."""
        self._check_open()
        begin = perf_counter()
        try:
            result = work(rows.inline)
        except NeedsThread:
            pass
        except sqlite3.Error as error:
            if not _busy(error):
                raise store_error(error, self._file)  # noqa: B904  (it sets its cause)
        else:
            self._read_for += perf_counter() - begin
            if self._read_for > _LOOP_BUDGET:
                self._read_for = 0.0
                await asyncio.sleep(0)
            return result
        # Outside the handler: a live exception would keep its cursor open, and with it a stale snapshot.
        return await self._reader.submit(rows.on(work))

    def read_in_thread(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Run a read that may take long in the reader thread."""
        self._check_open()
        return self._reader.submit(work)

    async def write(
        self, rows: Rows[R], work: Callable[[R], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        Run a write and return its result after the commit.

        `work` may share a transaction with other writes, so it must check before it writes, unless it is `isolated`.
        `alone` means that it needs no transaction: each of its statements is complete by itself.
        """
        try:
            return self.write_now(rows, work, alone=alone, isolated=isolated)
        except Pending as pending:
            future: asyncio.Future[T] = pending.future
        return await future

    def write_now(
        self, rows: Rows[R], work: Callable[[R], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        Run a write as `write` does, for a caller that must know if it is not finished at once.

        Raises:
            Pending: the thread is running it.
        """
        begin = perf_counter()
        if self._budget.trusts_disk and self._may_block(begin):
            try:
                return self._write_inline(rows.inline, work, begin, alone)
            except NeedsThread:
                pass
        return self.run_in_writer(rows.on(work), alone=alone, isolated=isolated)

    async def write_in_thread(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """Run a write of unknown duration in the writer thread."""
        try:
            return self.run_in_writer(work, alone=alone, isolated=isolated)
        except Pending as pending:
            future: asyncio.Future[T] = pending.future
        return await future

    def run_in_writer(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> T:
        """
        Run a write in the writer thread and wait briefly for it if no other write is pending; see `Writer.submit`.

        Raises:
            Pending: it did not finish in that time.
        """
        begin = perf_counter()
        if self.closed or not self._may_block(begin):
            raise Pending(self.submit(work, alone=alone, isolated=isolated))
        record = self._budget.record_wait
        try:
            return self._writer.run_within(work, _BLOCK_FOR, alone=alone, isolated=isolated)
        except Pending:
            record = self._budget.record_timeout
            raise
        finally:
            record(begin, perf_counter())

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False, isolated: bool = False
    ) -> asyncio.Future[T]:
        """Run a write in the writer thread without waiting for it."""
        self._check_open()
        if self._budget.checkpoint_due:
            self._writer.checkpoint_due = True
        future = self._writer.submit(work, isolated=isolated, alone=alone)
        self._budget.record_handover()
        return future

    def reject_work(self) -> None:
        """Reject further work."""
        if not self.closed:
            self.closed = True
            # A thread closes the last connection, because that close checkpoints the write-ahead log.
            self.connection.close()

    async def close(self) -> None:
        """Finish the submitted work and close the file."""
        self.reject_work()
        await self._writer.close()
        await self._reader.close()

    def _check_open(self) -> None:
        if self.closed:
            raise StoreClosedError(self._url)

    def _may_block(self, now: float) -> bool:
        return self._budget.allows_write(now) and self._writer.idle and not self.closed

    def _write_inline(self, inline: R, work: Callable[[R], T], begin: float, alone: bool) -> T:
        try:
            result = work(inline) if alone else in_transaction(self.connection, work, inline)
        except sqlite3.Error as error:
            if _busy(error):
                raise NeedsThread from None
            raise store_error(error, self._file)  # noqa: B904  (it sets its cause)
        finally:
            self._budget.record_write(begin, perf_counter())
        self._writer.committed()
        return result


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
