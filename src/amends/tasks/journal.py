"""
One task's log as its worker writes it. Each append names the last entry that the worker has read, so that two workers can never
both continue a task.

If another entry was appended in between, the worker reads it. Commands (cancel, answer, verify, retry) are applied to the state,
and the append is tried again. Any other entry means that another worker has the task, and this one is fenced. Fencing needs no
clock, no lease and no transactions.

On a store with transactions, the task's row is written and its message is released in the same transaction, and so is an effect
of the user. On other stores, the row and the message are updated after the append; if they are found to be behind the log, they
are updated from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from amends.durable.index import write_row
from amends.stores.contract import Lease, Store, Transaction
from amends.stores.errors import ConflictError
from amends.tasks import entries
from amends.tasks.entries import COMMANDS, Ended, Record, Released
from amends.tasks.state import TaskState
from amends.tasks.task_index import row_of
from amends.tasks.task_reader import log_name, read_entries

__all__ = ["Fenced", "Journal"]

T = TypeVar("T")


class Fenced(Exception):
    """Another worker has the task: this one has to stop and to discard the outcome of its work."""


class Journal:
    """A task's state. All changes of a running task go through it."""

    def __init__(
        self,
        store: Store,
        space: str,
        state: TaskState,
        last: int,
        lease: Lease,
    ) -> None:
        """
        Args:
            store: where the log is.
            space: the name of the set of tasks.
            state: the state of the task after its entry `last`.
            last: the number of that entry.
            lease: the lease on the task's message.
        """
        self._store, self._space = store, space
        self._log = log_name(space, state.head.id)
        self._row = 0
        self._lock = asyncio.Lock()
        self.state, self.last, self.lease = state, last, lease
        self.released = False
        """Whether the last record released the task. Nothing more is written then."""
        self.on_command: Callable[[], None] | None = None
        """Called after commands were applied to the state."""

    async def write(
        self, records: Sequence[Record], *, if_held: bool = False, if_unchanged: bool = False
    ) -> bool:
        """
        Append records and apply them to the state. They are durable when this returns. Return whether they were written.

        Args:
            records: the records of one entry.
            if_held: write nothing if the task is released. For records that do not come from the run itself, which may
                release the task at any time.
            if_unchanged: write nothing if a command was appended since this was called.

        Raises:
            Fenced: another worker has the task.
            StoreError: the records may or may not be written; the next worker reads the log again.
        """
        if not records:
            return False
        seen = self.last
        async with self._lock:
            while not ((if_held and self.released) or (if_unchanged and self.last != seen)):
                try:
                    await self._append(records)
                except ConflictError:
                    await self._catch_up()
                else:
                    return True
        return False

    async def _append(self, records: Sequence[Record]) -> None:
        if self._store.supports_transactions:
            await self._append_together(records)
        else:
            await self._append_first(records)

    async def _append_together(self, records: Sequence[Record]) -> None:
        """Write the entry, the row and the message in one transaction."""
        entry, after, last, lease = entries.encode(records), self.last, records[-1], self.lease
        # The row describes the state after this entry, so the records are applied before the commit.
        self.state.apply(records)
        row = row_of(self._space, self.state, after + 1)

        def work(tx: Transaction) -> None:
            tx.log(self._log).append(entry, last=after)
            tx.table(row.table).put(row.key, row.value)
            _release_message(last, partial(tx.done, lease), partial(tx.give_back, lease))

        try:
            await self._store.transaction(work, short=True)
        except ConflictError:
            await self._reread()
            raise
        self.last, self.released = after + 1, isinstance(last, Ended | Released)

    async def _append_first(self, records: Sequence[Record]) -> None:
        """Write the entry, then the row and the message. After a crash in between, the message is delivered again."""
        last = records[-1]
        self.last = await self._store.log(self._log).append(entries.encode(records), last=self.last)
        self.state.apply(records)
        self.released = isinstance(last, Ended | Released)
        row = row_of(self._space, self.state, self.last)
        row.revision = self._row
        await write_row(self._store, row)
        self._row = row.revision
        released = _release_message(last, self.lease.done, self.lease.give_back)
        if released is not None:
            await released

    async def commit(self, work: Callable[[Transaction], T], record: Callable[[T], Record]) -> T:
        """
        Run `work` and write the record of its result in one transaction: both are committed, or neither.

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
                    if conflict.key is not None or conflict.name != self._log:
                        raise
                    await self._catch_up()
                else:
                    self.last = after + 1
                    self.state.apply([made])
                    return value

    async def catch_up(self) -> None:
        """
        Read the commands that were appended since the last write or read.

        Raises:
            Fenced: another worker has the task.
        """
        async with self._lock:
            if not self.released:
                await self._catch_up()

    async def _catch_up(self) -> None:
        before, id = self.last, self.state.head.id
        async for entry in read_entries(self._store, self._space, id, start=self.last + 1):
            records = entries.decode(entry.value)
            if not all(isinstance(record, COMMANDS) for record in records):
                raise Fenced
            self.state.apply(records)
            self.last = entry.seq
        if self.last != before and self.on_command is not None:
            self.on_command()

    async def _reread(self) -> None:
        """After a refused write, whose records were applied already: set the state to that of the log up to `last`."""
        state, seq = TaskState(), 0
        async for entry in read_entries(self._store, self._space, self.state.head.id):
            if entry.seq > self.last:
                break
            state.apply(entries.decode(entry.value))
            seq = entry.seq
        if seq < self.last:
            raise Fenced  # the task was forgotten
        for name in TaskState.__slots__:
            setattr(self.state, name, getattr(state, name))


def _release_message(record: Record, done: Callable[[], T], give_back: Callable[..., T]) -> T | None:
    """Remove the message if the record ends or releases the task for good; give it back if it is released until a time."""
    if isinstance(record, Ended) or (isinstance(record, Released) and record.until is None):
        return done()
    if isinstance(record, Released):
        return give_back(delay=max(0.0, (record.until or 0.0) - record.at))
    return None
