"""
The engine of a Postgres store: threads that run the statements, and one that listens for changes of others.

Two threads write. Each takes the writes that wait, runs them in one transaction, and returns their results after the commit:
with one caller that is one commit per write, with thirty-two callers a few for all of them. A statement that fails breaks
the transaction, so that each of its writes is run in its own. Another thread reads. Psycopg's synchronous connections are
used, because a function that is given to `Store.transaction` is a plain function.

The listener is started when a coroutine waits for changes for the first time. It has a connection of its own, which a
pooler in transaction mode does not allow: then, and while the connection is lost, it makes the waiting coroutines look themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from amends.stores.clock import Clock
from amends.stores.errors import StoreClosedError, StoreError
from amends.stores.postgres.connect import Database, is_passing, psycopg
from amends.stores.postgres.rows import PostgresTransaction, RunAgain
from amends.stores.signal import Signal

__all__ = ["PostgresEngine"]

T = TypeVar("T")

_WRITERS = 2
_BATCH = 128
_RUNS = 20
"""How often a transaction is run that meets others, with a growing pause."""
_POLL, _POLL_POOLED = 5.0, 0.5
"""Seconds between two looks for changes, beside the notifications and without them."""
_PAUSE = 0.1
"""Seconds between two attempts to connect."""
_CHANNEL = "amends"


class _Request:
    """A function to run on the rows, and where its result goes."""

    __slots__ = ("changed", "error", "filled", "future", "isolated", "result", "work")

    def __init__(
        self, work: Callable[[PostgresTransaction], Any], future: asyncio.Future[Any], isolated: bool
    ) -> None:
        self.work, self.future, self.isolated = work, future, isolated
        self.result: Any = None
        self.error: BaseException | None = None
        self.filled: set[str] = set()
        self.changed = False


class _Worker:
    """A thread with a connection, which is opened again when it was lost."""

    def __init__(self, engine: PostgresEngine, inbox: queue.SimpleQueue[_Request | None], name: str) -> None:
        self._engine, self._inbox = engine, inbox
        self._database = engine.database
        self._connection: Any = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def connection(self) -> Any:
        """
        Return the open connection. A server that does not answer is asked again for `lock_timeout` seconds.

        Raises:
            StoreUnavailableError: it does not answer.

        """
        end = time.monotonic() + self._database.lock_timeout
        while self._connection is None or self._connection.closed:
            try:
                self._connection = self._database.connect()
            except StoreError:
                if time.monotonic() > end or self._engine.closed:
                    raise
                time.sleep(_PAUSE)
            else:
                self._engine.pids.add(self._connection.info.backend_pid)
        return self._connection

    def _run(self) -> None:
        going = True
        while going:
            received = [self._inbox.get()]
            with contextlib.suppress(queue.Empty):
                while len(received) < _BATCH and received[-1] is not None:
                    received.append(self._inbox.get_nowait())
            going = received[-1] is not None
            batch = [one for one in received if one is not None and not one.future.cancelled()]
            if batch:
                self.run_batch(batch)
                self._engine.deliver(batch)
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._engine.pids.discard(connection.info.backend_pid)
            with contextlib.suppress(Exception):
                connection.close()

    def run_batch(self, batch: list[_Request]) -> None:
        """Run requests, and set their results or errors."""
        raise NotImplementedError


class _Reader(_Worker):
    """Runs reads one after the other; each sees the last commit."""

    def run_batch(self, batch: list[_Request]) -> None:
        for request in batch:
            for fresh in (False, True):
                try:
                    request.error = None
                    request.result = request.work(self._engine.rows(self.connection(), locking=False))
                    break
                except BaseException as error:  # noqa: BLE001 - the caller receives it
                    request.error = self._engine.translated(error, committing=False)
                    if fresh or self._connection is None or not self._connection.broken:
                        break
                    self.disconnect()


class _Writer(_Worker):
    """Runs the waiting writes in one transaction."""

    def run_batch(self, batch: list[_Request]) -> None:
        shared = [request for request in batch if not request.isolated]
        if len(shared) > 1 and not self._commit(shared):
            # One of them broke the transaction; run each in its own.
            batch = [*shared, *(request for request in batch if request.isolated)]
        elif len(shared) > 1:
            batch = [request for request in batch if request.isolated]
        for request in batch:
            self._run_alone(request)

    def _run_alone(self, request: _Request) -> None:
        for run in range(_RUNS):
            request.error = None
            if self._commit([request], last=run == _RUNS - 1):
                return
            time.sleep(min(0.001 * 2**run, 0.1))

    def _commit(self, requests: list[_Request], *, last: bool = False) -> bool:
        """
        Run requests in one transaction. Returns whether they have their results or errors; if not, nothing was committed.

        `last`: they must have them.
        """
        alone, committing = len(requests) == 1, False
        try:
            connection = self.connection()
            connection.execute(self._database.begin())
            for request in requests:
                self._run_one(connection, request, alone)
            committing = True
            connection.execute(_commit_statements(requests))
        except BaseException as error:  # noqa: BLE001 - the callers receive it
            passing = not committing and (isinstance(error, RunAgain) or is_passing(error))  # type: ignore[arg-type]
            lost = self._roll_back()
            if not last and (passing or not alone or (lost and not committing)):
                for request in requests:
                    request.result = request.error = None
                # A commit whose answer is lost is not run again.
                if not committing:
                    return False
            translated = self._engine.translated(error, committing=committing)
            if isinstance(translated, RunAgain):
                translated = self._engine.busy()
            for request in requests:
                request.error = request.error or translated
        return True

    def _run_one(self, connection: Any, request: _Request, alone: bool) -> None:
        rows = self._engine.rows(connection, locking=request.isolated)
        try:
            request.result = request.work(rows)
            if connection.info.transaction_status != psycopg().pq.TransactionStatus.INTRANS:
                raise psycopg().ProgrammingError(
                    "the work ended the store's transaction: leave BEGIN and COMMIT to the store"
                )
        except StoreError as error:
            # Raised by our own statements, which check before they write.
            if request.isolated or alone:
                raise
            request.error = error
        request.filled, request.changed = rows.filled, rows.changed

    def _roll_back(self) -> bool:
        """Roll back, and return whether the connection is lost."""
        connection = self._connection
        if connection is None:
            return False
        try:
            if not connection.broken:
                connection.execute(b"ROLLBACK")
                return False
        except Exception:  # noqa: BLE001, S110 - it is closed below
            pass
        self.disconnect()
        return True


class PostgresEngine:
    """See `rows.Engine`."""

    def __init__(self, database: Database, clock: Clock, place: str) -> None:
        self.database, self.clock, self.place = database, clock, place
        self.signal = Signal()
        self.signal.on_wait = self._on_wait
        self.closed = False
        self.pids: set[int] = set()
        """The server processes of the connections that write here: their notifications are known already."""
        self._sweeps = [0]
        self._loop = asyncio.get_running_loop()
        self._reads: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._listener: threading.Thread | None = None
        self._stop = threading.Event()

    def rows(self, connection: Any, *, locking: bool) -> PostgresTransaction:
        """Return the rows of a connection's current transaction."""
        return PostgresTransaction(connection, self.place, locking=locking, sweeps=self._sweeps)

    def read(self, work: Callable[[PostgresTransaction], T]) -> asyncio.Future[T]:
        """Run a function that changes nothing in the reading thread."""
        return self._submit(self._reads, work, isolated=False)

    def write(
        self, work: Callable[[PostgresTransaction], T], *, isolated: bool = False, synced: bool = True
    ) -> asyncio.Future[T]:
        """
        Run a write in a writing thread; the future has its result after the commit.

        Args:
            work: the write. It may share a transaction with others, so it must check before it writes, unless it is isolated.
            isolated: it may raise after a change, and what it reads does not change until its commit.
            synced: the server decides about its disk.

        """
        return self._submit(self._writes, work, isolated=isolated)

    def _submit(
        self,
        inbox: queue.SimpleQueue[_Request | None],
        work: Callable[[PostgresTransaction], T],
        *,
        isolated: bool,
    ) -> asyncio.Future[T]:
        if self.closed:
            raise StoreClosedError(self.database.display_url)
        if asyncio.get_running_loop() is not self._loop:
            # The write would be made, and its result could not be returned.
            raise RuntimeError(
                f"the store {self.database.display_url} was opened in another event loop: open it in each loop"
            )
        if not self._workers:
            self._workers = [
                _Reader(self, self._reads, "amends-postgres-read"),
                *(_Writer(self, self._writes, "amends-postgres-write") for _ in range(_WRITERS)),
            ]
        future: asyncio.Future[T] = self._loop.create_future()
        inbox.put(_Request(work, future, isolated))
        return future

    def translated(self, error: BaseException, *, committing: bool) -> BaseException:
        """Return the store's exception for an error."""
        return (
            self.database.translate(error, committing=committing) if isinstance(error, Exception) else error
        )

    def busy(self) -> StoreError:
        """Return the error of a transaction that met others each time it ran."""
        from amends.stores.errors import StoreUnavailableError

        return StoreUnavailableError(
            f"{self.database.display_url}: other transactions changed the same rows {_RUNS} times: try again",
            "no",
        )

    def deliver(self, batch: list[_Request]) -> None:
        """Give the requests their results, on the event loop."""
        # The loop may already be closed, if asyncio.run ended without close().
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, batch)

    def _resolve(self, batch: list[_Request]) -> None:
        filled: set[str] = set()
        changed = False
        for request in batch:
            if request.error is None:
                filled |= request.filled
                changed = changed or request.changed
            if request.future.done():
                continue
            if request.error is None:
                request.future.set_result(request.result)
            else:
                request.future.set_exception(request.error)
        if filled or changed:
            self.signal.notify(filled)

    # -- changes of others

    def _on_wait(self) -> None:
        """Called by the event loop when a coroutine begins to wait for changes."""
        if self._listener is None and not self.closed:
            self._listener = threading.Thread(target=self._listen, name="amends-postgres-listen", daemon=True)
            self._listener.start()

    def _listen(self) -> None:
        while not self._stop.is_set():
            if self.database.pooled:
                self._stop.wait(_POLL_POOLED)
                self._wake(None)
                continue
            try:
                with self.database.connect() as connection:
                    connection.execute(f"LISTEN {_CHANNEL}".encode())
                    self._wake(None)
                    self._receive(connection)
            except Exception:  # noqa: BLE001 - the server may be gone; the waiting coroutines look themselves
                self._wake(None)
                self._stop.wait(_POLL_POOLED)

    def _receive(self, connection: Any) -> None:
        """Pass notifications on until the store is closed; after a while without one, everybody looks."""
        looked = time.monotonic()
        while not self._stop.is_set():
            for notification in connection.notifies(timeout=0.25, stop_after=1):
                if notification.pid not in self.pids:
                    self._wake(
                        {bytes.fromhex(notification.payload).decode()} if notification.payload else set()
                    )
            if time.monotonic() - looked > _POLL:
                looked = time.monotonic()
                self._wake(None)

    def _wake(self, queues: set[str] | None) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.signal.notify, queues)

    async def close(self) -> None:
        """Finish the submitted work and close the connections."""
        first, self.closed = not self.closed, True
        self._stop.set()
        self.signal.notify()
        if first:
            self._reads.put(None)
            for _ in range(_WRITERS):
                self._writes.put(None)
        threads = [worker.thread for worker in self._workers]
        if self._listener is not None:
            threads.append(self._listener)
        for thread in threads:
            await asyncio.to_thread(thread.join)


_LONGEST_PAYLOAD = 3900
"""Half of what a notification can carry, because it is written as hexadecimal digits."""


def _commit_statements(requests: list[_Request]) -> bytes:
    """Return the statements that notify others and commit."""
    done = [request for request in requests if request.error is None]
    payloads = {
        name.encode().hex() if len(name.encode()) <= _LONGEST_PAYLOAD else ""
        for request in done
        for name in request.filled
    }
    if any(request.changed for request in done):
        payloads.add("")
    notify = "".join(f"NOTIFY {_CHANNEL}, '{payload}'; " for payload in sorted(payloads))
    return f"{notify}COMMIT".encode()
