"""
The threads that touch the file, so that the event loop never does.

One thread writes. It takes all the writes that wait, runs them in one transaction, and answers them all after its
commit: with one caller that is one commit per write, with thirty-two it is one commit for thirty-two. Nothing is
answered before its commit. Another thread reads, beside the writer, as WAL allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from amends.stores.errors import StoreClosedError, StoreError
from amends.stores.sqlite.file import File, translated

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]

# One transaction's worth. More would keep other processes waiting for the lock longer than it saves.
_BATCH = 512


class _Job:
    __slots__ = ("alone", "error", "future", "isolated", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any], isolated: bool, alone: bool) -> None:
        self.work = work
        self.future = future
        self.isolated = isolated
        self.alone = alone
        self.result: Any = None
        self.error: BaseException | None = None


class _Thread:
    """A connection, the thread that owns it, and the box its work is dropped into."""

    def __init__(self, file: File, name: str) -> None:
        self._file = file
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection = file.connect()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, isolated: bool = False, alone: bool = False
    ) -> asyncio.Future[T]:
        """
        Have `work` done; `isolated` work may fail half way without spoiling what shares its transaction, and `alone`
        work needs none when nobody shares it.

        A caller that is cancelled while its work is under way does not undo it.
        """
        if self._closed:
            raise StoreClosedError(self._file.path)
        future: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(_Job(work, future, isolated, alone))
        return future

    async def close(self) -> None:
        """Do what was submitted, then end."""
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            first = self._inbox.get()
            batch = [] if first is None else [first]
            going = first is not None
            # Only this thread takes from the box: what is there when it looks can be had without waiting.
            while going and len(batch) < _BATCH and not self._inbox.empty():
                job = self._inbox.get()
                if job is None:
                    going = False
                else:
                    batch.append(job)
            batch = [job for job in batch if not job.future.cancelled()]
            if batch:
                self._do(batch)
                # The loop may have been closed under us, by an asyncio.run that was left without close().
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._answer, batch)
        self._connection.close()

    def _do(self, batch: list[_Job]) -> None:
        raise NotImplementedError

    def _answer(self, batch: list[_Job]) -> None:
        for job in batch:
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)

    def _meaning(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        meaning = translated(error, self._file)
        if meaning is not error:
            meaning.__cause__ = error
        return meaning


class Reader(_Thread):
    """Runs statements one after the other, each seeing the last commit."""

    def _do(self, batch: list[_Job]) -> None:
        for job in batch:
            try:
                job.result = job.work(self._connection)
            except BaseException as error:  # noqa: BLE001  (it is handed to the caller)
                job.error = self._meaning(error)


class Writer(Reader):
    """Runs writes, all that wait in one transaction, and rings after every commit."""

    def __init__(self, file: File, name: str, committed: Callable[[], None]) -> None:
        self._committed = committed
        super().__init__(file, name)

    def _do(self, batch: list[_Job]) -> None:
        connection = self._connection
        if len(batch) == 1 and batch[0].alone:
            # One caller, one statement: SQLite begins and commits by itself, which saves two calls.
            super()._do(batch)
            return
        running = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            running = True
            for job in batch:
                self._one(connection, job)
            running = False
            connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001  (it is handed to the callers)
            # Nothing of this batch was committed, whatever each job thought.
            self._roll_back(connection)
            if running and len(batch) > 1:
                # One of them broke the transaction for all; each alone gets its own answer.
                for job in batch:
                    job.result = job.error = None
                    self._do([job])
                return
            meaning = self._meaning(error)
            for job in batch:
                job.error = job.error or meaning

    def _one(self, connection: sqlite3.Connection, job: _Job) -> None:
        """Run one job; what it raises is its own, unless the transaction did not survive it."""
        if job.isolated:
            connection.execute("SAVEPOINT amends_job")
        try:
            job.result = job.work(connection)
            if not connection.in_transaction:
                raise sqlite3.ProgrammingError(  # noqa: TRY301
                    "the work ended the store's transaction: leave BEGIN and COMMIT to the store"
                )
        except StoreError as error:
            # Raised by our own statements, which look before they write.
            job.error = error
        except BaseException as error:
            job.error = self._meaning(error)
            if not connection.in_transaction or not job.isolated:
                raise
        if job.isolated:
            if job.error is not None:
                connection.execute("ROLLBACK TO amends_job")
            connection.execute("RELEASE amends_job")

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def _answer(self, batch: list[_Job]) -> None:
        super()._answer(batch)
        self._committed()
