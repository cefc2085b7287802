"""
Submit a task: build the first record of its log from a capability and its input, a request document or a plan, and store it.

A request that is submitted twice is one task, and only a complete submission is acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from msgspec.structs import replace

from amends.durable.batch import Batch, complete
from amends.durable.index import write_row
from amends.durable.keys import Owner, Owners
from amends.errors.task import InvalidFieldValueError, InvalidInputError
from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.documents import Request, parse_time, seconds_of
from amends.tasks.entries import Submitted, encode
from amends.tasks.fold import fold
from amends.tasks.journal import SEPARATOR, log_name, read_task
from amends.tasks.plan import Step, graph
from amends.tasks.retry_policy import check_retry_policy
from amends.tasks.state import TaskState
from amends.tasks.values import MAX_BYTES, storable

__all__ = ["build_submission", "keys_of", "submit"]


def build_submission(
    task: object,
    payload: object,
    *,
    now: float,
    id: str | None,
    agent: str | None,
    retry_policy: dict[str, object] | None,
    deadline: float | timedelta | str | None,
    key: str | None,
) -> Submitted:
    """
    Build the record of a submission at the time `now`; the other arguments are those of `Orchestrator.submit`.

    Raises:
        FaultError: the request is invalid.
    """
    record = _plan(task, now) if isinstance(task, tuple | list) else _single(task, payload, agent, now)
    record = replace(
        record,
        id=id or record.id or str(uuid4()),
        agent=record.steps[0].agent if record.single else None,
        retry_policy=record.retry_policy if retry_policy is None else retry_policy,
        until=record.until if deadline is None else _until(deadline, now),
        key=record.key if key is None else key,
    )
    _check(record)
    steps = [replace(step, payload=storable(step.payload, "payload")) for step in record.steps]
    record = replace(record, steps=tuple(steps))
    try:
        size = len(encode([record]))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("The request cannot be written as JSON") from None
    if size > MAX_BYTES:
        raise InvalidInputError(f"The request has {size} bytes, and at most {MAX_BYTES} are stored")
    return record


def _single(task: object, payload: object, agent: str | None, now: float) -> Submitted:
    if isinstance(task, str) and not task.lstrip().startswith("{"):
        request = Request(id="", type=task, payload=payload)
    else:
        request = Request.read(task)
    step = Step(
        name=request.type.replace(">", "") or "step",
        type=request.type,
        payload=request.payload,
        agent=agent or request.agent,
    )
    return Submitted(
        at=now,
        id=request.id,
        type=request.type,
        steps=(step,),
        retry_policy=request.retry_policy,
        until=None if request.deadline is None else parse_time(request.deadline),
        key=request.idempotency_key,
    )


def _plan(steps: Sequence[object], now: float) -> Submitted:
    plan = [step for step in steps if isinstance(step, Step)]
    if len(plan) < len(steps):
        raise TypeError("a plan must consist of Steps: use sequence(), fan_out() or graph()")
    return Submitted(at=now, id="", type="plan", steps=graph(plan), single=False)


def _until(deadline: float | timedelta | str, now: float) -> float:
    if isinstance(deadline, str):
        at = parse_time(deadline)
        if at is None:
            raise InvalidFieldValueError("A deadline must be an RFC 3339 time", field="/deadline")
        return at
    return now + seconds_of(deadline)


# Checking -------------------------------------------------------------------------------------------------------


def _check(record: Submitted) -> None:
    """Refuse what cannot be stored, before anything is."""
    for name, value in {"id": record.id, "idempotencyKey": record.key, "agent": record.agent}.items():
        if value is not None and not _is_text(value):
            raise _invalid(f"The {name} must be a text that is not empty and that UTF-8 can encode", name)
    if SEPARATOR in record.id:
        raise _invalid("The id must not contain a NUL character", "id")
    for policy in (record.retry_policy, *(step.retry_policy for step in record.steps)):
        if policy is not None:
            check_retry_policy(policy)


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:
        return False


def _invalid(problem: str, name: str) -> InvalidFieldValueError:
    pointer = f"/{name}"
    return InvalidFieldValueError(problem, field=pointer, details={"name": name, "pointer": pointer})


# Storing --------------------------------------------------------------------------------------------------------


def keys_of(store: Store, space: str) -> Owners:
    """The idempotency keys of the tasks."""
    return Owners(store, f"{space}.keys")


async def submit(store: Store, space: str, record: Submitted) -> tuple[str, bool]:
    """
    Store the task and put its message on the queue. Return its id, and whether it is a new task.

    The id is that of the first request with the same key.

    Raises:
        FaultError: INVALID_FIELD_VALUE if the id or the key belongs to another request.
    """
    key, new = record.key, True
    owner = None if key is None else await keys_of(store, space).get(key)
    while True:
        if owner is not None:
            record = replace(record, id=owner.id)
        try:
            await _store_task(store, space, record, new_key=key if owner is None else None)
        except ConflictError as conflict:
            if conflict.key is not None:
                assert key is not None
                owner = await keys_of(store, space).get(key)
                continue
            if not await _resubmit(store, space, record):
                continue
            new = False
        return record.id, new


async def _store_task(store: Store, space: str, record: Submitted, new_key: str | None) -> None:
    """Raises ConflictError, for the key or for the log."""
    batch, log = Batch(), log_name(space, record.id)
    row = fold(TaskState(), [record]).row(space, 1)
    if new_key is not None:
        keys_of(store, space).create(batch, new_key, Owner(record.id))
    # The row comes before the log: after a crash, the maintenance repairs tasks that are listed.
    batch.index(row)
    batch.append(log, encode([record]), last=0)
    batch.enqueue(space, record.id.encode(), record.id)
    await complete(batch.commit(store))


async def _resubmit(store: Store, space: str, record: Submitted) -> bool:
    """
    Make sure that the same request is on the queue. Return False if the task was deleted meanwhile.

    Raises:
        FaultError: INVALID_FIELD_VALUE if the stored request is another one.
    """
    found = await read_task(store, space, record.id)
    if found is None:
        return False
    if _comparable(found.state.head) != _comparable(record):
        name = "idempotencyKey" if record.key is not None else "id"
        raise _invalid("Another request was submitted with the same id or key", name)
    if not store.traits.transactions and not found.state.over:
        await write_row(store, found.state.row(space, found.last))
        await store.queue(space).put(record.id.encode(), key=record.id)
    return True


def _comparable(record: Submitted) -> bytes:
    """The request without its times, to compare it with another."""
    return encode([replace(record, at=0.0, until=None)])
