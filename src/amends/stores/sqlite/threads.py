"""
The two threads of a SQLite store; the event loop runs no statement and waits for no disk.

One thread writes. It takes all waiting writes, runs them in one transaction, and returns their results after the commit:
with one caller that is one commit per write, with thirty-two callers one commit for thirty-two. No write returns before
its commit. The other thread reads concurrently, as WAL allows. Callers await a future for either.

The writer also looks for commits of other processes while a coroutine waits for changes, because SQLite has no
notifications: `PRAGMA data_version` changes with every commit of another connection and takes a few microseconds. And from
time to time it checkpoints the write-ahead log, after it has returned the results, so that no caller waits for it.

Before a result is returned, the thread compares the file's inode with the one it opened: a file that was deleted or
replaced has lost what was written to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from amends.stores.errors import StoreError
from amends.stores.signal import Signal
from amends.stores.sqlite.commit import ended_by_work, in_transaction, roll_back
from amends.stores.sqlite.file import File, store_error

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]

# The most requests at once. More writes in a transaction would make other processes wait for the lock longer than it saves.
_BATCH = 512
# Transactions between two checkpoints: a few megabytes of log if they are small. If they are large, or the thread is never
# idle, SQLite checkpoints by itself (see `file`).
_CHECKPOINT_EVERY = 256
# Seconds between two looks for commits of other processes: well under the 20 ms a follower may wait.
_POLL_EVERY = 0.004


class _Request:
    """A function to run, and where its result goes."""

    __slots__ = ("error", "filled", "future", "isolated", "result", "synced", "work")

    def __init__(
        self, work: Work, future: asyncio.Future[Any], isolated: bool, filled: Collection[str], synced: bool
    ) -> None:
        self.work = work
        self.future = future
        self.isolated = isolated
        self.filled = filled
        self.synced = synced
        self.result: Any = None
        self.error: BaseException | None = None


class _Stop:
    """Ends a thread."""


class _Wake:
    """Makes the writer look whether a coroutine waits."""


class _Thread:
    """A connection, the thread that owns it, and the queue of its requests."""

    def __init__(self, file: File, connection: sqlite3.Connection, name: str) -> None:
        self._file = file
        self._inbox: queue.SimpleQueue[_Request | _Stop | _Wake] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        isolated: bool = False,
        filled: Collection[str] = (),
        synced: bool = True,
    ) -> asyncio.Future[T]:
        """
        Run `work` in the thread and return its future. Cancelling the caller does not undo work that has begun.

        Args:
            work: the function.
            isolated: it may fail half way without affecting the work that shares its transaction.
            filled: has the names of the queues in which `work` put messages, when it has run.
            synced: the commit waits for the disk, if the store does so at all.

        """
        future: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(_Request(work, future, isolated, filled, synced))
        return future

    async def close(self) -> None:
        """Finish the submitted work, then end the thread."""
        if not self._closed:
            self._closed = True
            self._inbox.put(_Stop())
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            received = [self._first()]
            # Only this thread takes from the queue: if it is not empty, get() does not block.
            while len(received) < _BATCH and not self._inbox.empty():
                received.append(self._inbox.get())
            going = not any(isinstance(one, _Stop) for one in received)
            batch = [one for one in received if isinstance(one, _Request) and not one.future.cancelled()]
            if batch:
                self._run_batch(batch)
                self._check_file(batch)
                self._deliver(batch)
        self._connection.close()

    def _first(self) -> _Request | _Stop | _Wake:
        return self._inbox.get()

    def _run_batch(self, batch: list[_Request]) -> None:
        raise NotImplementedError

    def _check_file(self, batch: list[_Request]) -> None:
        problem = self._file.replaced()
        if problem is not None:
            for request in batch:
                request.error = problem

    def _deliver(self, batch: list[_Request]) -> None:
        # The loop may already be closed, if asyncio.run ended without close().
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, batch)

    def _resolve(self, batch: list[_Request]) -> None:
        for request in batch:
            if request.future.done():
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


class Writer(_Thread):
    """Runs the waiting writes in one transaction, and notifies `signal` after every commit, also of other processes."""

    def __init__(self, file: File, connection: sqlite3.Connection, name: str, signal: Signal) -> None:
        self._signal = signal
        self._commits = 0
        self._synchronous = file.synchronous
        self._polling = False
        self._version: int | None = None
        super().__init__(file, connection, name)
        signal.on_wait = self._on_wait

    # -- commits of other processes

    def _on_wait(self) -> None:
        """Called by the event loop when a coroutine begins to wait for changes."""
        if not self._polling:
            self._inbox.put(_Wake())

    def _first(self) -> _Request | _Stop | _Wake:
        while True:
            if not self._signal.has_waiters:
                # Set before the second look: a coroutine that begins to wait after it sends a _Wake.
                self._polling = False
                if not self._signal.has_waiters:
                    return self._inbox.get()
            self._polling = True
            try:
                return self._inbox.get(timeout=_POLL_EVERY)
            except queue.Empty:
                self._poll()

    def _poll(self) -> None:
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            # Locked for a moment, for example by a recovery: wake the waiters, so that they read themselves.
            version = None
        if version != self._version or self._file.replaced() is not None:
            self._version = version
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._signal.notify)

    # -- writing

    def _run_batch(self, batch: list[_Request]) -> None:
        connection = self._connection
        running = False
        try:
            self._set_synchronous(any(request.synced for request in batch))
            if len(batch) == 1:
                self._run_alone(batch[0])
                return
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

    def _set_synchronous(self, synced: bool) -> None:
        """
        Have the next commits wait for the disk, or not.

        Before every batch, so that none is committed with the setting of another one if this fails.
        """
        wanted = self._file.synchronous if synced else "normal"
        if wanted != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted

    def _run_alone(self, request: _Request) -> None:
        """Run a request in its own transaction, which is rolled back if the request raises."""
        connection = self._connection
        try:
            request.result = in_transaction(connection, request.work, connection)
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

    def _deliver(self, batch: list[_Request]) -> None:
        super()._deliver(batch)
        self._commits += 1
        if self._commits >= _CHECKPOINT_EVERY and self._inbox.empty():
            self._commits = 0
            self._checkpoint()

    def _checkpoint(self) -> None:
        # Pages that cannot be moved now, because of a reader or a full disk, are moved by a later checkpoint.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _resolve(self, batch: list[_Request]) -> None:
        super()._resolve(batch)
        self._signal.notify([name for request in batch for name in request.filled])
