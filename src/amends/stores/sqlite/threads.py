"""
The threads that run what the event loop must not wait for.

One thread writes. It takes all waiting writes, runs them in one transaction, and returns their results after the commit:
with one caller that is one commit per write, with thirty-two callers one commit for thirty-two. No write returns before
its commit. Another thread reads concurrently, as WAL allows.

From time to time the writer checkpoints the write-ahead log: after it has returned the results, so that no caller waits for
it, and before this store's next write, so that the log can restart from its beginning.
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
from amends.stores.sqlite.file import File, store_error

__all__ = ["Pending", "Reader", "Writer"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]

# The most writes in one transaction. More would make other processes wait for the lock longer than it saves.
_BATCH = 512
# Transactions between two checkpoints: a few megabytes of log if they are small. If they are large, or the thread is never
# idle, SQLite checkpoints by itself (see `file`).
_CHECKPOINT_EVERY = 256


class Pending(BaseException):
    """The thread has not finished the work; `future` has the result. Not an error, and not to be caught as one."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        super().__init__()
        self.future = future


class _Request:
    """A function to run and where its result goes: to `future`, or while there is none to the caller blocked on `lock`."""

    __slots__ = ("alone", "error", "finished", "future", "isolated", "lock", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any] | None, isolated: bool, alone: bool) -> None:
        self.work = work
        self.future = future
        self.isolated = isolated
        self.alone = alone
        self.lock: threading.Lock | None = None
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def needed(self) -> bool:
        return self.future is None or not self.future.cancelled()


class _Thread:
    """A connection, the thread that owns it, and the queue of its requests."""

    def __init__(self, file: File, connection: sqlite3.Connection, name: str) -> None:
        self._file = file
        self._inbox: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, isolated: bool = False, alone: bool = False
    ) -> asyncio.Future[T]:
        """
        Run `work` in the thread and return its future.

        `isolated` work may fail half way without affecting the work that shares its transaction; `alone` work needs no
        transaction if it shares none. Cancelling the caller does not undo work that has begun.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(_Request(work, future, isolated, alone))
        return future

    async def close(self) -> None:
        """Finish the submitted work, then end the thread."""
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
            # Only this thread takes from the queue: if it is not empty, get() does not block.
            while going and len(batch) < _BATCH and not self._inbox.empty():
                request = self._inbox.get()
                if request is None:
                    going = False
                else:
                    batch.append(request)
            if needed := [request for request in batch if request.needed]:
                self._run_batch(needed)
            self._deliver(batch)
        self._connection.close()

    def _deliver(self, batch: list[_Request]) -> None:
        # The loop may already be closed, if asyncio.run ended without close().
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, batch)

    def _run_batch(self, batch: list[_Request]) -> None:
        raise NotImplementedError

    def _resolve(self, batch: list[_Request]) -> None:
        for request in batch:
            if request.future is None or request.future.done():
                continue
            if request.error is None:
                request.future.set_result(request.result)
            else:
                request.future.set_exception(request.error)

    def _translate(self, error: BaseException) -> BaseException:
        return store_error(error, self._file) if isinstance(error, sqlite3.Error) else error


class Reader(_Thread):
    """Runs reads one after the other; each sees the last commit."""

    def _run_batch(self, batch: list[_Request]) -> None:
        for request in batch:
            try:
                request.result = request.work(self._connection)
            except BaseException as error:  # noqa: BLE001  (the caller receives it)
                request.error = self._translate(error)


class Writer(Reader):
    """Runs the waiting writes in one transaction, and calls `committed` after every commit."""

    def __init__(
        self, file: File, connection: sqlite3.Connection, name: str, committed: Callable[[], None]
    ) -> None:
        self.committed = committed
        self.checkpoint_due = False
        """Whether other connections have written enough that a checkpoint is due."""
        self._since_checkpoint = 0
        self._checkpointing = False
        self._pending = 0
        self._shared_last = False
        self._handover = threading.Lock()
        super().__init__(file, connection, name)

    @property
    def idle(self) -> bool:
        """Whether no write is pending, and the last one did not share its transaction."""
        return not (self._pending or self._shared_last or self._checkpointing)

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, isolated: bool = False, alone: bool = False
    ) -> asyncio.Future[T]:
        """Run `work` in the next transaction."""
        future = super().submit(work, isolated=isolated, alone=alone)
        self._pending += 1
        return future

    def run_within(
        self,
        work: Callable[[sqlite3.Connection], T],
        timeout: float,
        *,
        isolated: bool = False,
        alone: bool = False,
    ) -> T:
        """
        Run `work` in the thread while the calling event loop blocks, for at most `timeout` seconds. Only when idle.

        A result that comes through the event loop costs as much as an fsync of a fast disk; a lock costs a third of that.

        Raises:
            Pending: `work` did not finish within `timeout`.
        """
        request = _Request(work, None, isolated, alone)
        request.lock = lock = threading.Lock()
        lock.acquire()
        self._pending += 1
        self._inbox.put(request)
        released = False
        try:
            released = lock.acquire(timeout=timeout)
        finally:
            if not released:
                with self._handover:
                    if not request.finished:
                        request.future = self._loop.create_future()
        if request.future is not None:
            raise Pending(request.future)
        self._resolve([request])
        if request.error is not None:
            raise request.error
        result: T = request.result
        return result

    def _deliver(self, batch: list[_Request]) -> None:
        self._since_checkpoint += 1
        due = self.checkpoint_due or self._since_checkpoint >= _CHECKPOINT_EVERY
        # Set before the results are delivered: a caller that has its result must see that the thread is not idle.
        self._checkpointing = due and self._inbox.empty()
        self._deliver_results(batch)
        if self._checkpointing:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self.checkpoint_due, self._since_checkpoint = False, 0
        # Pages that cannot be moved now, because of a reader or a full disk, are moved by a later checkpoint.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._checkpointing = False

    def _deliver_results(self, batch: list[_Request]) -> None:
        first = batch[0] if batch else None
        if first is not None and first.lock is not None:
            with self._handover:
                first.finished = True
                blocked = first.future is None
            if blocked:
                first.lock.release()
                return
        super()._deliver(batch)

    def _run_batch(self, batch: list[_Request]) -> None:
        if len(batch) == 1:
            self._run_alone(batch[0])
            return
        connection = self._connection
        running = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            running = True
            for request in batch:
                self._run_shared(connection, request)
            running = False
            connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001  (the callers receive it)
            # Nothing of this batch was committed, whatever result each request has.
            roll_back(connection)
            if running:
                # One of them broke the shared transaction; run each in its own.
                for request in batch:
                    request.result = request.error = None
                    self._run_alone(request)
                return
            translated = self._translate(error)
            for request in batch:
                request.error = request.error or translated

    def _run_alone(self, request: _Request) -> None:
        """Run a request in its own transaction, which is rolled back if the request raises."""
        connection = self._connection
        try:
            # A single statement: SQLite begins and commits by itself, which saves two calls.
            request.result = (
                request.work(connection)
                if request.alone
                else in_transaction(connection, request.work, connection)
            )
        except BaseException as error:  # noqa: BLE001  (the caller receives it)
            request.error = self._translate(error)

    def _run_shared(self, connection: sqlite3.Connection, request: _Request) -> None:
        """Run one request of a batch; raises only if its error ended the shared transaction."""
        if request.isolated:
            connection.execute("SAVEPOINT amends_job")
        try:
            request.result = request.work(connection)
            if not connection.in_transaction:
                raise ended_by_work()  # noqa: TRY301
        except StoreError as error:
            # Raised by our own statements, which check before they write.
            request.error = error
        except BaseException as error:
            request.error = self._translate(error)
            if not connection.in_transaction or not request.isolated:
                raise
        if request.isolated:
            if request.error is not None:
                connection.execute("ROLLBACK TO amends_job")
            connection.execute("RELEASE amends_job")

    def _resolve(self, batch: list[_Request]) -> None:
        self._pending -= len(batch)
        self._shared_last = bool(self._pending) or len(batch) > 1
        super()._resolve(batch)
        self.committed()
