"""Store a new task. A request that is submitted twice is one task, and only a complete submission is acknowledged."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.errors.task import InvalidFieldValueError
from amends.stores.contract import Store, Transaction
from amends.stores.errors import ConflictError
from amends.tasks.entries import Submitted, encode
from amends.tasks.state import TaskState
from amends.tasks.task_index import encode_row, update_row
from amends.tasks.task_reader import log_name, read_task

__all__ = ["submit"]


async def submit(store: Store, space: str, record: Submitted) -> str:
    """
    Store the task and put its message on the queue. Return its id, which is that of the first request with the same key.

    Raises:
        FaultError: INVALID_FIELD_VALUE if the id or the key belongs to another request.
    """
    if record.key is not None:
        record = await _claim_key(store, space, record)
    state = TaskState()
    state.apply([record])
    entry, row = encode([record]), encode_row(state, 1)
    message = record.id.encode()
    try:
        if store.supports_transactions:

            def work(tx: Transaction) -> None:
                tx.log(log_name(space, record.id)).append(entry, last=0)
                tx.table(space).put(record.id, row)
                tx.queue(space).put(message, key=record.id)

            await store.transaction(work, short=True)
        else:
            # The row comes first: after a crash, the maintenance repairs tasks that are listed.
            await _create_row(store, space, record.id, row)
            await store.log(log_name(space, record.id)).append(entry, last=0)
            await store.queue(space).put(message, key=record.id)
    except ConflictError:
        await _resubmit(store, space, record)
    return record.id


async def _claim_key(store: Store, space: str, record: Submitted) -> Submitted:
    """Reserve the idempotency key. Return the request with the id of the first request that used the key."""
    assert record.key is not None
    keys = store.table(f"{space}.keys")
    try:
        await keys.create(record.key, record.id.encode())
    except ConflictError:
        row = await keys.get(record.key)
        if row is not None:
            return msgspec.structs.replace(record, id=row.value.decode())
    return record


async def _create_row(store: Store, space: str, id: str, row: bytes) -> None:
    try:
        await store.table(space).create(id, row)
    except ConflictError:
        pass  # the row exists, perhaps without its log: the append decides


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
        if not store.supports_transactions and not found[0].over:
            await update_row(store, space, *found)
            await store.queue(space).put(record.id.encode(), key=record.id)


def _comparable(record: Submitted) -> Any:
    """The request without its times, to compare it with another."""
    return encode([msgspec.structs.replace(record, at=0.0, until=None)])
