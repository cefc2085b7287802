"""Store a new task. A request that is submitted twice is one task, and only a complete submission is acknowledged."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.durable.batch import Batch
from amends.durable.index import write_row
from amends.durable.keys import Owner, Owners
from amends.errors.task import InvalidFieldValueError
from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.entries import Submitted, encode
from amends.tasks.state import TaskState
from amends.tasks.task_reader import log_name, read_task, row_of

__all__ = ["keys_of", "submit"]


def keys_of(store: Store, space: str) -> Owners:
    """The idempotency keys of the tasks."""
    return Owners(store, f"{space}.keys")


async def submit(store: Store, space: str, record: Submitted) -> str:
    """
    Store the task and put its message on the queue. Return its id, which is that of the first request with the same key.

    Raises:
        FaultError: INVALID_FIELD_VALUE if the id or the key belongs to another request.
    """
    keys, key = keys_of(store, space), record.key
    owner = None if key is None else await keys.get(key)
    while True:
        if owner is not None:
            record = msgspec.structs.replace(record, id=owner.id)
        try:
            await _store_task(store, space, record, new_key=key if owner is None else None)
        except ConflictError as conflict:
            if conflict.key is None:
                await _resubmit(store, space, record)
            else:
                assert key is not None
                owner = await keys.get(key)
                continue
        return record.id


async def _store_task(store: Store, space: str, record: Submitted, new_key: str | None) -> None:
    """Raises ConflictError, for the key or for the log."""
    state = TaskState().after([record])
    batch = Batch()
    if new_key is not None:
        keys_of(store, space).create(batch, new_key, Owner(record.id))
    # The row comes before the log: after a crash, the maintenance repairs tasks that are listed.
    batch.index(row_of(space, state, 1))
    batch.append(log_name(space, record.id), encode([record]), last=0)
    batch.enqueue(space, record.id.encode(), record.id)
    await batch.commit(store)


async def _resubmit(store: Store, space: str, record: Submitted) -> None:
    """Make sure that the same request is on the queue. Raises INVALID_FIELD_VALUE if the stored request is another one."""
    found = await read_task(store, space, record.id)
    if found is not None:
        head = found[0].head
        if _comparable(head) != _comparable(record):
            name = "idempotencyKey" if record.key is not None else "id"
            raise InvalidFieldValueError(
                "Another request was submitted with the same id or key",
                field=f"/{name}",
                details={"name": name, "pointer": f"/{name}"},
            )
        if not store.traits.transactions and not found[0].over:
            await write_row(store, row_of(space, found.state, found.last))
            await store.queue(space).put(record.id.encode(), key=record.id)


def _comparable(record: Submitted) -> Any:
    """The request without its times, to compare it with another."""
    return encode([msgspec.structs.replace(record, at=0.0, until=None)])
