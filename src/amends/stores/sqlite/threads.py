"""
The threads that do what the event loop must not wait for.

One thread writes. It takes all the writes that wait, runs them in one transaction, and answers them all after its
commit: with one caller that is one commit per write, with thirty-two it is one commit for thirty-two. Nothing is
answered before its commit. Another thread reads, beside the writer, as WAL allows.

Now and then the writer moves the write-ahead log into the file: after it has answered, so that nobody waits for that, and
before anybody else of this store writes, so that the log can begin anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from amends.stores.errors import StoreError
from amends.stores.sqlite.commit import ended_by_work, in_transaction, roll_back
from amends.stores.sqlite.file import File, meaning

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]

# One transaction's worth. More would keep other processes waiting for the lock longer than it saves.
_BATCH = 512
# Transactions between two checkpoints: a few megabytes of log where they are small. Where they are not, or the thread never
# comes to rest, SQLite does it itself (see `file`).
_CHECKPOINT_EVERY = 256


class Later(BaseException):
    """The work was handed over and is not done yet: its future says when. No error, and not to be handled as one."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        super().__init__()
        self.future = future


class _Job:
    """A piece of work, and who is told: whoever awaits the future, or while there is none, whoever listens to the bell."""

    __slots__ = ("alone", "bell", "error", "finished", "future", "isolated", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any] | None, isolated: bool, alone: bool) -> None:
        self.work = work
        self.future = future
        self.isolated = isolated
        self.alone = alone
        self.bell: threading.Lock | None = None
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def wanted(self) -> bool:
        return self.future is None or not self.future.cancelled()


class _Thread:
    """A connection, the thread that owns it, and the box its work is dropped into."""

    def __init__(self, file: File, connection: sqlite3.Connection, name: str) -> None:
        self._file = file
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection = connection
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
            if wanted := [job for job in batch if job.wanted]:
                self._do(wanted)
            self._tell(batch)
        self._connection.close()

    def _tell(self, batch: list[_Job]) -> None:
        # The loop may have been closed under us, by an asyncio.run that was left without close().
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer, batch)

    def _do(self, batch: list[_Job]) -> None:
        raise NotImplementedError

    def _answer(self, batch: list[_Job]) -> None:
        for job in batch:
            if job.future is None or job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)

    def _meaning(self, error: BaseException) -> BaseException:
        return meaning(error, self._file) if isinstance(error, sqlite3.Error) else error


class Reader(_Thread):
    """Runs statements one after the other, each seeing the last commit."""

    def _do(self, batch: list[_Job]) -> None:
        for job in batch:
            try:
                job.result = job.work(self._connection)
            except BaseException as error:  # noqa: BLE001  (it is handed to the caller)
                job.error = self._meaning(error)


class Writer(Reader):
    """Runs writes, all that wait in one transaction, and calls `committed` after every commit."""

    def __init__(
        self, file: File, connection: sqlite3.Connection, name: str, committed: Callable[[], None]
    ) -> None:
        self.committed = committed
        self.tidy_up = False
        """Whether others have written so much that a checkpoint is due."""
        self._since_checkpoint = 0
        self._tidying = False
        self._under_way = 0
        self._crowded = False
        self._changing_hands = threading.Lock()
        super().__init__(file, connection, name)

    @property
    def idle(self) -> bool:
        """Nothing is under way, and when something last was, it had no company."""
        return not (self._under_way or self._crowded or self._tidying)

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, isolated: bool = False, alone: bool = False
    ) -> asyncio.Future[T]:
        """Have it done in the next transaction."""
        future = super().submit(work, isolated=isolated, alone=alone)
        self._under_way += 1
        return future

    def do_soon(
        self,
        work: Callable[[sqlite3.Connection], T],
        patience: float,
        *,
        isolated: bool = False,
        alone: bool = False,
    ) -> T:
        """
        Have it done while the caller waits, with the whole event loop, for `patience` seconds and no longer.

        Being told through the event loop costs as much as a fast disk's fsync; a bell costs a third. Only when idle.

        Raises:
            Later: it takes longer.
        """
        job = _Job(work, None, isolated, alone)
        job.bell = bell = threading.Lock()
        bell.acquire()
        self._under_way += 1
        self._inbox.put(job)
        rung = False
        try:
            rung = bell.acquire(timeout=patience)
        finally:
            if not rung:
                with self._changing_hands:
                    if not job.finished:
                        job.future = self._loop.create_future()
        if job.future is not None:
            raise Later(job.future)
        self._answer([job])
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _tell(self, batch: list[_Job]) -> None:
        self._since_checkpoint += 1
        due = self.tidy_up or self._since_checkpoint >= _CHECKPOINT_EVERY
        # Said before the answers are: whoever has one must find that this is not over.
        self._tidying = due and self._inbox.empty()
        self._answers(batch)
        if self._tidying:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self.tidy_up, self._since_checkpoint = False, 0
        # What cannot be moved now, because somebody reads the log or the disk is full, is moved another time.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._tidying = False

    def _answers(self, batch: list[_Job]) -> None:
        first = batch[0] if batch else None
        if first is not None and first.bell is not None:
            with self._changing_hands:
                first.finished = True
                listening = first.future is None
            if listening:
                first.bell.release()
                return
        super()._tell(batch)

    def _do(self, batch: list[_Job]) -> None:
        if len(batch) == 1:
            self._only(batch[0])
            return
        connection = self._connection
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
            roll_back(connection)
            if running:
                # One of them broke the transaction for all; each alone gets its own answer.
                for job in batch:
                    job.result = job.error = None
                    self._only(job)
                return
            meaning = self._meaning(error)
            for job in batch:
                job.error = job.error or meaning

    def _only(self, job: _Job) -> None:
        """Run a job that shares its transaction with nobody: whatever it raises undoes all there is."""
        connection = self._connection
        try:
            # One statement: SQLite begins and commits by itself, which saves two calls.
            job.result = (
                job.work(connection) if job.alone else in_transaction(connection, job.work, connection)
            )
        except BaseException as error:  # noqa: BLE001  (it is handed to the caller)
            job.error = self._meaning(error)

    def _one(self, connection: sqlite3.Connection, job: _Job) -> None:
        """Run one job; what it raises is its own, unless the transaction did not survive it."""
        if job.isolated:
            connection.execute("SAVEPOINT amends_job")
        try:
            job.result = job.work(connection)
            if not connection.in_transaction:
                raise ended_by_work()  # noqa: TRY301
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

    def _answer(self, batch: list[_Job]) -> None:
        self._under_way -= len(batch)
        self._crowded = bool(self._under_way) or len(batch) > 1
        super()._answer(batch)
        self.committed()
