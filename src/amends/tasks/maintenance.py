"""
Once in a while, one worker of all: forget tasks that ended long ago, and put back on the queue what fell off it.

A store without transactions can lose a submitter between the log and the queue. Nobody was promised anything then, but a task
that is listed should be done or say why not.
"""

from __future__ import annotations

import logging

from amends.stores.contract import Store
from amends.stores.errors import DamagedStoreError
from amends.tasks.documents import ENDED, Status
from amends.tasks.registry import House
from amends.tasks.task_index import Listing, listed, mend
from amends.tasks.task_reader import log_name, read

__all__ = ["SWEEP", "forget", "sweep"]

_log = logging.getLogger("amends.tasks")

SWEEP = b"~sweep"
"""The message that asks for it."""
_STALE = 600.0
"""Seconds without a change after which a task that is not over is looked at."""


async def sweep(store: Store, house: House, keep: float | None) -> int:
    """Do it; how many tasks were forgotten."""
    now, forgotten = house.clock(), 0
    async for row in listed(store, house.space):
        try:
            if row.status in ENDED:
                if keep is not None and now - row.updated > keep:
                    await forget(store, house.space, row.id)
                    forgotten += 1
            elif now - max(row.updated, row.due or 0.0) > _STALE:
                await _look_at(store, house.space, row)
        except DamagedStoreError:
            _log.exception("a task cannot be read, and is left as it is")
    return forgotten


async def _look_at(store: Store, space: str, row: Listing) -> None:
    found = await read(store, space, row.id)
    if found is None:
        await store.table(space).delete(row.id)
        return
    state, last = found
    if last != row.seq:
        await mend(store, space, state, last)
    if not state.over and state.status is not Status.INPUT_REQUIRED:
        # The key is taken where its message is still there: then this does nothing.
        await store.queue(space).put(row.id.encode(), key=row.id)


async def forget(store: Store, space: str, id: str) -> None:
    """Remove everything about a task that is over."""
    found = await read(store, space, id)
    if found is not None and found[0].head.key is not None:
        await store.table(f"{space}.keys").delete(found[0].head.key)
    await store.log(log_name(space, id)).drop()
    await store.table(space).delete(id)
