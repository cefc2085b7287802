"""
A log of typed records, and the state that is folded from it. The log is the truth; the state never runs ahead of it.

Each append names the last entry that its writer has read, so two writers can never both continue a log. A writer that finds
another entry reads it: records that any process may append (commands) are folded into the state and the append is tried
again; any other record means that another writer has taken over, and this one is fenced. That needs no clock, no lease and
no transactions. The numbers of a log that was deleted and begun again start at 1 again, so a writer that works under a lease
also writes only while it has the lease: its epoch is compared in the transaction of the entry. Without transactions, a lease
that has run out by the writer's clock is extended first.

Records are folded into a copy of the state before the commit, because a derived row is written in the same transaction, and
the copy becomes the state after the commit. A write that was begun is completed even if its caller is cancelled: until it is
known whether the records are in the log, nothing else is written. If the store does not answer, the write is repeated for as
long as the writer may write; an entry whose acknowledgement was lost is recognised when it is read.

An entry that does not fit the state ends what can be read of a log. The reader reports it and uses the entries before it. A
writer that continues such a log first appends a record that says up to which entry the log was read, and every later reader
skips the entries in between.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from amends.durable.batch import Batch
from amends.durable.index import IndexRow
from amends.logs import logger
from amends.stores.contract import Lease, Store, Transaction
from amends.stores.errors import ConflictError, DamagedStoreError, LeaseLostError, StoreUnavailableError
from amends.stores.values import Entry

__all__ = [
    "Fenced",
    "ImpossibleRecord",
    "Journal",
    "Kind",
    "Snapshot",
    "read",
    "read_entries",
    "read_records",
]

_log = logger("amends.durable")
_PAGE = 256
"""Entries that are read with one call."""
_PAUSE = 0.05
"""Seconds before a write is repeated that the store did not answer."""

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


class Fenced(BaseException):
    """
    Another writer has the log: this one has to stop and to discard the outcome of its work.

    A BaseException, so that an `except Exception` in the code that this writer runs does not catch it.
    """


class ImpossibleRecord(Exception):
    """A record does not fit the state that it should be folded into."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[S, R]):
    """What a kind of log holds: how its records are stored, what they mean, and which of them any process may append."""

    new: Callable[[], S]
    """Returns the state before the first record."""
    encode: Callable[[Sequence[R]], bytes]
    """Encodes the records of one entry."""
    decoder: Callable[[bytes], Sequence[R]]
    """Decodes the records of one entry. Raises MsgspecError if this version does not know them."""
    fold: Callable[[S, Sequence[R]], S]
    """Returns the state after records; the given state does not change. Raises ImpossibleRecord."""
    table: str
    """The table of the derived rows."""
    row: Callable[[S, str, int], IndexRow]
    """Returns the derived row, for that table, of a log that ends with the entry of that number."""
    is_command: Callable[[R], bool]
    """Whether any process may append the record, not only the writer that has the log."""
    valid_until: Callable[[R], int | None]
    """Returns the number of the last entry before those that are skipped, if the record says from where a log is continued."""

    def decode(self, entry: bytes) -> Sequence[R]:
        """
        Decode the records of one entry.

        Raises:
            DamagedStoreError: the entry does not hold records that this version knows.
        """
        try:
            return self.decoder(entry)
        except msgspec.MsgspecError as error:
            raise DamagedStoreError(
                "this version of amends cannot read an entry of a log: upgrade amends, or run `amends store check`"
            ) from error


class Snapshot(NamedTuple, Generic[S]):
    """The state of a log when it was read."""

    state: S
    last: int
    """The number of the log's last entry."""
    valid: int
    """The number of the last entry that is folded into the state: smaller than `last` if the rest cannot be read."""


async def read_entries(store: Store, log: str, start: int = 1) -> list[Entry]:
    """Return the entries of a log from number `start` on, to its present end."""
    opened = store.log(log)
    found: list[Entry] = []
    while True:
        page = await opened.read(start + len(found), limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


async def _read_valid(store: Store, log: str, kind: Kind[S, R]) -> tuple[S, int, int, list[R]]:
    state, last, valid = kind.new(), 0, 0
    found: list[R] = []
    for entry in await read_entries(store, log):
        records = kind.decode(entry.value)
        if valid == last or kind.valid_until(records[0]) == valid:
            try:
                state = kind.fold(state, records)
                valid = entry.seq
                found += records
            except ImpossibleRecord:
                pass
        last = entry.seq
    if last and not valid:
        raise DamagedStoreError(
            f"the first entry of log {log!r} does not begin one of these logs: run `amends store check`"
        )
    if valid < last:
        _log.error("log %r is read up to entry %d: the other %d entries do not fit", log, valid, last - valid)
    return state, last, valid, found


async def read(store: Store, log: str, kind: Kind[S, R]) -> Snapshot[S] | None:
    """
    Return the state of a log; None if it has no entries. Entries that do not fit are reported to the logger `amends.durable`.

    Raises:
        DamagedStoreError: an entry has records that this version does not know, or the first entry does not fit.
    """
    state, last, valid, _ = await _read_valid(store, log, kind)
    return Snapshot(state, last, valid) if last else None


async def read_records(store: Store, log: str, kind: Kind[Any, R]) -> list[R]:
    """Return the records that the state of a log is folded from. Raises as `read` does."""
    return (await _read_valid(store, log, kind))[3]


class Journal(Generic[S, R]):
    """The writing side of one log: its state, and all changes of it."""

    def __init__(
        self,
        store: Store,
        log: str,
        kind: Kind[S, R],
        snapshot: Snapshot[S],
        lease: Lease | None = None,
    ) -> None:
        """
        Args:
            store: where the log is.
            log: its name.
            kind: what it holds.
            snapshot: the state of the log when it was read.
            lease: what this writer needs to hold to write.
        """
        self._store, self._log, self._kind, self._lease = store, log, kind, lease
        self._lock = asyncio.Lock()
        self._writing: set[asyncio.Future[Any]] = set()
        self._attempted: set[bytes] = set()
        """Entries behind `last` that may be in the log without an acknowledgement."""
        self._row_revision = 0
        self.state, self.last, self.valid = snapshot
        self.closed = False
        """Whether this writer has given the log up with its last write. Nothing more is written then."""
        self.on_command: Callable[[], None] | None = None
        """Called after commands were folded into the state."""

    # What a subclass decides ------------------------------------------------------------------------------------

    def time_left(self) -> float:
        """Seconds for which a write may still be repeated that the store does not answer."""
        return 0.0 if self._lease is None else self._lease.expires_in

    def lease_end(self, record: R) -> float | None:
        """
        Whether this writer gives the log, and its lease, up with this record.

        Returns seconds after which the lease's message is delivered again, `math.inf` if it is not, and None if the writer
        goes on.
        """
        return None

    # Writing ----------------------------------------------------------------------------------------------------

    async def write(self, records: Sequence[R], *, if_open: bool = False, if_unchanged: bool = False) -> bool:
        """
        Append records and fold them into the state. They are durable when this returns. Return whether they were written.

        If the caller is cancelled, the write goes on, and `settle` waits for it.

        Args:
            records: the records of one entry.
            if_open: write nothing if the log was given up. Otherwise Fenced is raised.
            if_unchanged: write nothing if a command was appended since this was called.

        Raises:
            Fenced: another writer has the log, or this one has given it up.
            StoreError: the records may or may not be written; the log must be read again.
        """
        if not records:
            return False
        return await self._complete(self._write(records, if_open, self.last if if_unchanged else None))

    async def commit(self, work: Callable[[Transaction], T], record: Callable[[T], R]) -> T:
        """
        Run `work` and write the record of its result in one transaction: both are committed, or neither.

        Raises:
            UnsupportedError: the store has no transactions.
            Fenced: another writer has the log; nothing happened.
        """
        return await self._complete(self._commit(work, record))

    async def catch_up(self) -> None:
        """Read the commands that were appended since the last write or read. Raises Fenced as `write` does."""
        async with self._lock:
            if not self.closed:
                await self._catch_up()

    async def settle(self) -> None:
        """Wait until the writes that were begun are completed, and read what the log has by then. Raises as `write` does."""
        while self._writing:
            await asyncio.wait(self._writing)
        await self.catch_up()

    async def _complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a write to its end, also if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._writing.add(task)
        task.add_done_callback(self._completed)
        return await asyncio.shield(task)

    def _completed(self, task: asyncio.Future[Any]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it when the caller was cancelled

    async def _write(self, records: Sequence[R], if_open: bool, unchanged: int | None) -> bool:
        entry, appended = self._kind.encode(records), False
        loop, give_up = asyncio.get_running_loop(), math.inf
        async with self._lock:
            while True:
                if not appended:
                    if self.closed and not if_open:
                        raise Fenced
                    if self.closed or (unchanged is not None and self.last != unchanged):
                        return False
                try:
                    if not appended:
                        await self._append(records, entry)
                        appended = True
                    if not self._store.traits.transactions:
                        await self._write_rest(records)
                except ConflictError:
                    appended = await self._catch_up(entry, conflict=True)
                except LeaseLostError as error:
                    raise Fenced from error
                except StoreUnavailableError:
                    left, now = self.time_left(), loop.time()
                    give_up = min(give_up, now + left)
                    if left <= 0 or now >= give_up:
                        raise
                    await asyncio.sleep(_PAUSE)
                else:
                    return True

    async def _append(self, records: Sequence[R], entry: bytes) -> None:
        """Append the entry; with transactions, write everything else together with it."""
        kind, batch = self._kind, Batch()
        after, end = kind.fold(self.state, records), self.lease_end(records[-1])
        row, transactions = kind.row(after, kind.table, self.last + 1), self._store.traits.transactions
        if self._lease is not None and not transactions:
            batch.keep_or_end(self._lease)
        batch.append(self._log, entry, last=self.last)
        if transactions:
            batch.index(row)
            if self._lease is not None:
                batch.keep_or_end(self._lease, end)
        self._attempted.add(entry)
        await batch.commit(self._store)
        self._adopt(after, self.last + 1, records)

    async def _write_rest(self, records: Sequence[R]) -> None:
        """Without transactions: write the row and the other changes after the entry."""
        row = self._kind.row(self.state, self._kind.table, self.last)
        row.revision = self._row_revision
        batch, end = Batch(), self.lease_end(records[-1])
        batch.index(row)
        if self._lease is not None and end is not None:
            batch.keep_or_end(self._lease, end)
        await batch.commit(self._store)
        self._row_revision = row.revision

    async def _commit(self, work: Callable[[Transaction], T], record: Callable[[T], R]) -> T:
        async with self._lock:
            while not self.closed:

                def both(tx: Transaction) -> tuple[T, R, S]:
                    if self._lease is not None:
                        tx.check_lease(self._lease)
                    value = work(tx)
                    made = record(value)
                    after = self._kind.fold(self.state, [made])
                    entry = self._kind.encode([made])
                    self._attempted.add(entry)
                    tx.log(self._log).append(entry, last=self.last)
                    return value, made, after

                try:
                    value, made, after = await self._store.transaction(both)
                except ConflictError as conflict:
                    if conflict.key is not None or conflict.name != self._log:
                        raise
                    await self._catch_up(conflict=True)
                except LeaseLostError as error:
                    raise Fenced from error
                else:
                    self._adopt(after, self.last + 1, [made])
                    return value
            raise Fenced

    def _adopt(self, state: S, last: int, records: Sequence[R]) -> None:
        """Make the state after a committed entry the current one."""
        self.state, self.last, self.valid = state, last, last
        self._attempted.clear()
        self.closed = self.lease_end(records[-1]) is not None

    async def _catch_up(self, sought: bytes | None = None, *, conflict: bool = False) -> bool:
        """
        Fold the entries behind `last`. Return whether the sought entry is among them, written by this writer.

        After a conflict without such entries, the log was deleted: the writer is fenced.
        """
        before, found, attempted = self.last, False, set(self._attempted)
        for entry in await read_entries(self._store, self._log, self.last + 1):
            records = self._kind.decode(entry.value)
            mine = entry.value in attempted
            if not mine and not all(self._kind.is_command(record) for record in records):
                raise Fenced
            try:
                after = self._kind.fold(self.state, records)
            except ImpossibleRecord as error:
                raise Fenced from error
            found = found or (mine and entry.value == sought)
            self._adopt(after, entry.seq, records)
        if self.last == before:
            if conflict:
                raise Fenced
        elif self.on_command is not None:
            self.on_command()
        return found
