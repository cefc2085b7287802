"""
One task's log in one worker's hands: appended to only behind what this worker has seen, so two can never both go on.

Every append says which entry it believes to be the last. Where that is wrong, what came in between is read: commands from
outside (cancel, answer, verify) are taken in and the append is tried again; anything else means that another
worker has the task, and this one is fenced. No clock and no lease is needed for that, and no transactions.

Where the store has transactions, the row that lists the task is written in the same one, the message that brought it is let
go of in the same one, and so is an effect of the user's own. Elsewhere these follow the log, and whoever finds them behind
mends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from amends.stores.contract import Lease, Store, Transaction
from amends.stores.errors import ConflictError
from amends.tasks import entries
from amends.tasks.documents import ENDED
from amends.tasks.entries import COMMANDS, Record
from amends.tasks.state import TaskState

__all__ = ["Fenced", "Journal", "Listing", "log_name", "read"]

T = TypeVar("T")
_PAGE = 256
_listing = msgspec.json.Encoder()


class Fenced(Exception):
    """Another worker has the task: stop, and keep what came of it to yourself."""


class Listing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task's row in the table that lists them: derived from its log, as of its entry `seq`."""

    id: str
    status: str
    type: str
    seq: int
    created: float
    updated: float
    agent: str | None = None
    code: str | None = None
    due: float | None = None


def log_name(space: str, id: str) -> str:
    """The name of a task's log."""
    return f"{space}/{id}"


async def read(store: Store, space: str, id: str) -> tuple[TaskState, int] | None:
    """A task's state and the number of its last entry, or None when there is no such task."""
    log = store.log(log_name(space, id))
    state, last = TaskState(), 0
    while page := await log.read(last + 1, limit=_PAGE):
        for entry in page:
            state.apply(entries.decode(entry.value))
        last = page[-1].seq
    return (state, last) if last else None


class Journal:
    """A task's state, and the only way to change it."""

    def __init__(
        self,
        store: Store,
        space: str,
        id: str,
        state: TaskState,
        last: int,
        lease: Lease | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._space = space
        self._log = log_name(space, id)
        self._row: int | None = None
        self._lock = asyncio.Lock()
        self.state = state
        self.last = last
        self.let_go = False
        """Whether the last word was that nobody holds the task any more: there is nothing left to say then."""
        self.heard: Callable[[], None] | None = None
        """Called when somebody outside has said something."""

    async def write(
        self, records: Sequence[Record], *, in_passing: bool = False, as_seen: bool = False
    ) -> bool:
        """
        Append records and fold them in; durable when this returns. Whether it was done.

        Args:
            records: what happened.
            in_passing: only while the task is held: this does not come from its run, which may have let go meanwhile.
            as_seen: only if nothing has come in since this was called: what is said then follows from all that is known.

        Raises:
            Fenced: another worker has the task.
            StoreError: it may or may not be written; whoever takes the task next will see.
        """
        if not records:
            return False
        seen = self.last
        async with self._lock:
            while not ((in_passing and self.let_go) or (as_seen and self.last != seen)):
                try:
                    await self._append(records)
                except ConflictError:
                    await self._catch_up()
                else:
                    return True
        return False

    async def _append(self, records: Sequence[Record]) -> None:
        entry = entries.encode(records)
        after = self.last
        if self._store.supports_transactions:
            # The fold comes first: the row is what the log will say. Nobody reads it before the commit.
            self.state.apply(records)
            row = self.listing(after + 1)

            def work(tx: Transaction) -> None:
                tx.log(self._log).append(entry, last=after)
                tx.table(self._space).put(row.id, _listing.encode(row))
                if self._lease is not None:
                    _let_go(records[-1], self._lease, tx)

            try:
                await self._store.transaction(work, short=True)
            except ConflictError:
                await self._reread()
                raise
            self.last = after + 1
            self.let_go = isinstance(records[-1], entries.Ended | entries.Released)
            return
        self.last = await self._store.log(self._log).append(entry, last=after)
        self.state.apply(records)
        self.let_go = isinstance(records[-1], entries.Ended | entries.Released)
        await self.list()
        if self._lease is not None:
            await _let_go_after(records[-1], self._lease)

    async def commit(self, work: Callable[[Transaction], T], record: Callable[[T], Record]) -> T:
        """
        Run `work` in a transaction together with the record of what it returned: both happen, or neither.

        Raises:
            UnsupportedError: the store has no transactions.
            Fenced: another worker has the task; nothing happened.
        """
        async with self._lock:
            while True:
                after = self.last

                def both(tx: Transaction, after: int = after) -> tuple[T, Record]:
                    value = work(tx)
                    made = record(value)
                    tx.log(self._log).append(entries.encode([made]), last=after)
                    return value, made

                try:
                    value, made = await self._store.transaction(both)
                except ConflictError as conflict:
                    if not conflict.what.startswith(f"log {self._log!r}"):
                        raise
                    await self._catch_up()
                else:
                    self.last = after + 1
                    self.state.apply([made])
                    return value

    async def catch_up(self) -> None:
        """
        Take in what came from outside since.

        Raises:
            Fenced: another worker has the task.
        """
        async with self._lock:
            if not self.let_go:
                await self._catch_up()

    async def _catch_up(self) -> None:
        while page := await self._store.log(self._log).read(self.last + 1, limit=_PAGE):
            for entry in page:
                records = entries.decode(entry.value)
                if not all(isinstance(record, COMMANDS) for record in records):
                    raise Fenced
                self.state.apply(records)
                self.last = entry.seq
            if self.heard is not None:
                self.heard()

    async def _reread(self) -> None:
        """The fold ran ahead of a write that failed: fold the log as it is, up to what this worker had seen."""
        state, log = TaskState(), self._store.log(self._log)
        start = 1
        while start <= self.last:
            page = await log.read(start, limit=min(_PAGE, self.last - start + 1))
            if not page:
                raise Fenced  # dropped by somebody who had a right to
            for entry in page:
                state.apply(entries.decode(entry.value))
            start = page[-1].seq + 1
        for name in TaskState.__slots__:
            setattr(self.state, name, getattr(state, name))

    def listing(self, seq: int | None = None) -> Listing:
        """The row of the task as it stands."""
        state = self.state
        return Listing(
            id=state.head.id,
            status=state.status,
            type=state.head.type,
            seq=self.last if seq is None else seq,
            created=state.created,
            updated=state.updated,
            agent=state.agent,
            code=state.fault.code if state.fault is not None else None,
            due=None if state.held or state.status in ENDED else state.release.until,
        )

    async def list(self) -> None:
        """Write the row, unless a newer one is there. For stores without transactions, and for mending."""
        table, row = self._store.table(self._space), self.listing()
        value = _listing.encode(row)
        while True:
            try:
                self._row = await table.put(row.id, value, revision=self._row or 0)
            except ConflictError:
                found = await table.get(row.id)
                if found is not None and _seq(found.value) >= row.seq:
                    return
                self._row = 0 if found is None else found.revision
            else:
                return


def _let_go(record: Record, lease: Lease, tx: Transaction) -> None:
    """Let go of the message with the record that says so."""
    if isinstance(record, entries.Ended) or (isinstance(record, entries.Released) and record.until is None):
        tx.done(lease)
    elif isinstance(record, entries.Released):
        tx.give_back(lease, delay=max(0.0, (record.until or 0.0) - record.at))


async def _let_go_after(record: Record, lease: Lease) -> None:
    """The same on a store without transactions: a crash in between brings the message back, and somebody looks."""
    if isinstance(record, entries.Ended) or (isinstance(record, entries.Released) and record.until is None):
        await lease.done()
    elif isinstance(record, entries.Released):
        await lease.give_back(delay=max(0.0, (record.until or 0.0) - record.at))


def _seq(value: bytes) -> int:
    try:
        return msgspec.json.decode(value, type=Listing).seq
    except msgspec.MsgspecError:
        return 0
