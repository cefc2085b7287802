"""Putting a task on the store: once, whoever asks twice; all of it, or nothing anybody was promised."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.errors.task import InvalidFieldValueError
from amends.stores.contract import Store, Transaction
from amends.stores.errors import ConflictError
from amends.tasks.entries import Submitted, encode
from amends.tasks.state import TaskState
from amends.tasks.task_index import mend, row_of
from amends.tasks.task_reader import log_name, read

__all__ = ["submit"]


async def submit(store: Store, space: str, record: Submitted) -> tuple[str, TaskState | None]:
    """
    Make the task durable and due. Its id, and its state if it is new: the same request again is the same task.

    Raises:
        FaultError: INVALID_FIELD_VALUE when the id or the key belongs to another request.
    """
    if record.key is not None:
        record = await _keyed(store, space, record)
    state = TaskState()
    state.apply([record])
    entry, row = encode([record]), row_of(state, 1)
    message = record.id.encode()
    try:
        if store.supports_transactions:

            def work(tx: Transaction) -> None:
                tx.log(log_name(space, record.id)).append(entry, last=0)
                tx.table(space).put(record.id, row)
                tx.queue(space).put(message, key=record.id)

            await store.transaction(work, short=True)
        else:
            # The row first: whatever is listed is looked after, should we be gone before the next line.
            await _listed(store, space, record.id, row)
            await store.log(log_name(space, record.id)).append(entry, last=0)
            await store.queue(space).put(message, key=record.id)
    except ConflictError:
        return await _there_already(store, space, record), None
    return record.id, state


async def _keyed(store: Store, space: str, record: Submitted) -> Submitted:
    """The request with the id its idempotency key has; the first one's, if there was one."""
    assert record.key is not None
    keys = store.table(f"{space}.keys")
    try:
        await keys.create(record.key, record.id.encode())
    except ConflictError:
        row = await keys.get(record.key)
        if row is not None:
            return msgspec.structs.replace(record, id=row.value.decode())
    return record


async def _listed(store: Store, space: str, id: str, row: bytes) -> None:
    try:
        await store.table(space).create(id, row)
    except ConflictError:
        pass  # it is there already, perhaps without its log: the append decides


async def _there_already(store: Store, space: str, record: Submitted) -> str:
    """The same request again: see that it is on its way. Another one under the same id or key is refused."""
    found = await read(store, space, record.id)
    if found is not None:
        head = found[0].head
        if _asked(head) != _asked(record):
            name = "idempotencyKey" if record.key is not None else "id"
            raise InvalidFieldValueError(
                "Another request was made under the same name",
                field=f"/{name}",
                details={"name": name, "pointer": f"/{name}"},
            )
        if not store.supports_transactions and not found[0].over:
            await mend(store, space, *found)
            await store.queue(space).put(record.id.encode(), key=record.id)
    return record.id


def _asked(record: Submitted) -> Any:
    """What was asked for, whenever and however often."""
    return encode([msgspec.structs.replace(record, at=0.0, until=None)])
