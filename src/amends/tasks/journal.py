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
from functools import partial
from typing import TypeVar

from amends.stores.contract import Lease, Store, Transaction
from amends.stores.errors import ConflictError
from amends.tasks import entries
from amends.tasks.entries import COMMANDS, Ended, Record, Released
from amends.tasks.state import TaskState
from amends.tasks.task_index import mend, row_of
from amends.tasks.task_reader import PAGE, log_name

__all__ = ["Fenced", "Journal"]

T = TypeVar("T")


class Fenced(Exception):
    """Another worker has the task: stop, and keep what came of it to yourself."""


class Journal:
    """A task's state, and the only way to change it."""

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
            space: which set of tasks it belongs to.
            state: what the log says up to its entry `last`.
            last: the number of that entry.
            lease: the hold on the message that brought the task.
        """
        self._store, self._space = store, space
        self._log = log_name(space, state.head.id)
        self._row = 0
        self._lock = asyncio.Lock()
        self.state, self.last, self.lease = state, last, lease
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
        if self._store.supports_transactions:
            await self._append_together(records)
        else:
            await self._append_first(records)

    async def _append_together(self, records: Sequence[Record]) -> None:
        """The entry, the row and the message in one transaction."""
        entry, after, last, lease = entries.encode(records), self.last, records[-1], self.lease
        # The fold comes first: the row is what the log will say. Nobody reads it before the commit.
        self.state.apply(records)
        id, row = self.state.head.id, row_of(self.state, after + 1)

        def work(tx: Transaction) -> None:
            tx.log(self._log).append(entry, last=after)
            tx.table(self._space).put(id, row)
            _let_go(last, partial(tx.done, lease), partial(tx.give_back, lease))

        try:
            await self._store.transaction(work, short=True)
        except ConflictError:
            await self._reread()
            raise
        self.last, self.let_go = after + 1, isinstance(last, Ended | Released)

    async def _append_first(self, records: Sequence[Record]) -> None:
        """The entry, then what follows from it: a crash in between brings the message back, and somebody looks."""
        last = records[-1]
        self.last = await self._store.log(self._log).append(entries.encode(records), last=self.last)
        self.state.apply(records)
        self.let_go = isinstance(last, Ended | Released)
        self._row = await mend(self._store, self._space, self.state, self.last, self._row)
        letting_go = _let_go(last, self.lease.done, self.lease.give_back)
        if letting_go is not None:
            await letting_go

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
        while page := await self._store.log(self._log).read(self.last + 1, limit=PAGE):
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
            page = await log.read(start, limit=min(PAGE, self.last - start + 1))
            if not page:
                raise Fenced  # dropped by somebody who had a right to
            for entry in page:
                state.apply(entries.decode(entry.value))
            start = page[-1].seq + 1
        for name in TaskState.__slots__:
            setattr(self.state, name, getattr(state, name))


def _let_go(record: Record, done: Callable[[], T], give_back: Callable[..., T]) -> T | None:
    """Let go of the message, where the record says that nobody holds the task any more: for good, or until then."""
    if isinstance(record, Ended) or (isinstance(record, Released) and record.until is None):
        return done()
    if isinstance(record, Released):
        return give_back(delay=max(0.0, (record.until or 0.0) - record.at))
    return None
