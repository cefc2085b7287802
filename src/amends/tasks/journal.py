"""One task's log as its worker writes it: the last record of a run also releases the task's message."""

from __future__ import annotations

from collections.abc import Sequence

from amends.durable import journal
from amends.durable.batch import Batch
from amends.durable.journal import Fenced, Snapshot
from amends.stores.contract import Lease, Store
from amends.tasks.entries import Ended, Record, Released
from amends.tasks.lease_guard import LeaseGuard
from amends.tasks.state import TaskState
from amends.tasks.task_reader import log_name, task_logs

__all__ = ["Fenced", "Journal"]


class Journal(journal.Journal[TaskState, Record]):
    """A task's state. All changes of a running task go through it."""

    def __init__(self, store: Store, space: str, snapshot: Snapshot[TaskState], lease: Lease) -> None:
        """
        Args:
            store: where the log is.
            space: the name of the set of tasks.
            snapshot: the state of the task when its log was read.
            lease: the lease on the task's message.
        """
        super().__init__(store, log_name(space, snapshot.state.head.id), task_logs(space), snapshot, lease)
        self.lease, self.store, self.space = lease, store, space
        self.guard = LeaseGuard(lease)
        """Makes sure that this worker has the task before it calls anything."""
        self._announced: Record | None = None

    def announce(self, record: Record) -> None:
        """Write this record, which says who runs the task, with the first entry that is written, or with `write_announced`."""
        self._announced = record

    async def write_announced(self) -> None:
        """Write the announced record now, if it is not written yet. Raises as `write` does."""
        announced, self._announced = self._announced, None
        if announced is not None:
            await super().write([announced])

    async def write(
        self, records: Sequence[Record], *, if_open: bool = False, if_unchanged: bool = False
    ) -> bool:
        """See `amends.durable.journal.Journal.write`."""
        announced, self._announced = self._announced, None
        if announced is None or not records:
            self._announced = announced
            return await super().write(records, if_open=if_open, if_unchanged=if_unchanged)
        written = await super().write([announced, *records], if_open=if_open, if_unchanged=if_unchanged)
        if not written:
            self._announced = announced
        return written

    def closes(self, record: Record) -> bool:
        """Whether the record ends or releases the task."""
        return isinstance(record, Ended | Released)

    def add_changes(self, batch: Batch, records: Sequence[Record]) -> None:
        """Remove the message if the task ends or is released for good; give it back if it is released until a time."""
        last = records[-1]
        if isinstance(last, Ended) or (isinstance(last, Released) and last.until is None):
            batch.done(self.lease)
        elif isinstance(last, Released):
            batch.give_back(self.lease, delay=max(0.0, (last.until or 0.0) - last.at))
