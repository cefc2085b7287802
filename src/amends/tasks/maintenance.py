"""
Periodic maintenance by one of the workers: forget tasks that ended long ago, and repair tasks that have lost their message.

On a store without transactions, a process that submits a task or sends it a command can die between the write to the log and the write
to the queue. That was not acknowledged, but the task is listed, so it is put on the queue.
"""

from __future__ import annotations

from amends.durable.index import write_row
from amends.durable.retention import delete_subject
from amends.logs import logger
from amends.stores.contract import Store
from amends.stores.errors import DamagedStoreError
from amends.tasks.documents import ENDED
from amends.tasks.journal import SEPARATOR, log_name, read_task, scan_rows
from amends.tasks.registry import Registry
from amends.tasks.state import TaskRow
from amends.tasks.submit import keys_of

__all__ = ["MAINTENANCE", "forget", "maintain"]

_log = logger("amends.tasks")

MAINTENANCE = f"{SEPARATOR}maintenance"
"""The key of the message that starts a run of the maintenance. It is given back to the queue with a delay after each run."""
_STALE = 600.0
"""Seconds without a change after which a task that is not over is checked."""


async def maintain(store: Store, registry: Registry, keep: float | None) -> int:
    """Forget tasks that ended more than `keep` seconds ago, repair the others. Return the number of forgotten tasks."""
    now, forgotten = registry.clock(), 0
    async for row in scan_rows(store, registry.space):
        try:
            if row.status in ENDED:
                if keep is not None and now - row.updated > keep:
                    await forget(store, registry.space, row.id)
                    forgotten += 1
            elif now - max(row.updated, row.due or 0.0) > _STALE:
                await _repair(store, registry.space, row)
        except DamagedStoreError:
            _log.exception("a task cannot be read and is left unchanged")
    return forgotten


async def _repair(store: Store, space: str, row: TaskRow) -> None:
    found = await read_task(store, space, row.id)
    if found is None:
        await store.table(space).delete(row.id)
        return
    state, last, _ = found
    if last != row.seq:
        await write_row(store, state.row(space, last))
    if state.has_work:
        # If the message is still on the queue, its key is taken and this does nothing.
        await store.queue(space).put(row.id.encode(), key=state.message if state.held else row.id)


async def forget(store: Store, space: str, id: str) -> None:
    """Delete the log, the row and the key of a task."""
    found = await read_task(store, space, id)
    await delete_subject(
        store,
        id,
        log=log_name(space, id),
        row=(space, id),
        keys=keys_of(store, space),
        key=None if found is None else found.state.head.key,
    )
