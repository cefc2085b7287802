"""
Commands to a task: cancel, retry, answer a question, verify an interrupted step.

A command is appended to the task's log directly after the entry it was decided on, so it never reaches a task whose state has
changed since. With it, a message is put on the queue. If a worker of this process runs the task, it reads the command at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from amends.durable.batch import Batch, complete
from amends.errors.task import InvalidFieldValueError
from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.answer_schema import check_answer
from amends.tasks.documents import Status
from amends.tasks.entries import Answered, Cancelled, Record, Repaired, Retried, Verified, encode
from amends.tasks.fold import fold
from amends.tasks.journal import SEPARATOR, log_name, read_existing
from amends.tasks.state import StepStatus, TaskState
from amends.tasks.values import storable

__all__ = ["answer", "cancel", "retry", "send_command", "verify"]


async def send_command(
    store: Store,
    space: str,
    id: str,
    command: Callable[[TaskState], Record | None],
    notify_worker: Callable[[str], Awaitable[object]] | None = None,
) -> TaskState:
    """
    Append a command to a task's log and return the task's state after it.

    Args:
        store: where the task is.
        space: the name of the set of tasks.
        id: the task.
        command: returns the record to append, given the task's state; None: nothing is appended.
        notify_worker: has a worker of this process read the command, if it runs the task.

    Raises:
        TaskNotFoundError: there is no such task.
        FaultError: the command does not fit the task's state.
    """
    while True:
        state, last, valid = await read_existing(store, space, id)
        record = command(state)
        if record is None:
            return state
        records = [record] if valid == last else [Repaired(at=record.at, valid=valid), record]
        state, seq, batch = fold(state, records), last + 1, Batch()
        batch.append(log_name(space, id), encode(records), last=last)
        batch.index(state.row(space, seq))
        batch.enqueue(space, id.encode(), f"{id}{SEPARATOR}{seq}")
        try:
            await complete(batch.commit(store))
        except ConflictError:
            continue
        if notify_worker is not None:
            await notify_worker(id)
        return state


def cancel(state: TaskState, *, now: float) -> Record | None:
    """
    The record of a cancellation; None if the task is over or was cancelled before.

    The cancellation of a task that is being undone ends the undo that is under way.
    """
    if state.over or (state.cancelled and not state.undoing) or state.stop_undo:
        return None
    return Cancelled(at=now)


def retry(state: TaskState, *, now: float) -> Record:
    """The record of a retry. Raises INVALID_FIELD_VALUE if the task neither failed nor was cancelled."""
    if state.status not in {Status.FAILED, Status.CANCELLED}:
        raise InvalidFieldValueError(
            f"Only a failed or cancelled task can be retried; this one is {state.status}", field="/status"
        )
    return Retried(at=now)


def answer(state: TaskState, *, now: float, answer: object, step: str | None) -> Record:
    """The record of an answer. Raises a FaultError if no step asked a question, or the answer does not fit its schema."""
    name, given = _waiting_step(state, "asking", step), storable(answer, "answer")
    check_answer(given, state.steps[name].schema)
    return Answered(at=now, step=name, answer=given)


def verify(state: TaskState, *, now: float, happened: bool, result: object, step: str | None) -> Record:
    """The record of a verification. Raises INVALID_FIELD_VALUE if no step has to be verified."""
    waiting = _waiting_step(state, "doubt", step)
    return Verified(at=now, step=waiting, happened=happened, result=storable(result, "result"))


def _waiting_step(state: TaskState, status: StepStatus, step: str | None) -> str:
    """The step with that status: the named one, or the first one. A task that is over has no open questions."""
    waiting = _in_state(state, status)
    if state.over:
        waiting = state.in_doubt if status == "doubt" else []
    names = (name for name in waiting if step in {None, name})
    found = next(names, None)
    if found is None:
        what = "waits for an answer" if status == "asking" else "has to be verified"
        which = "no step" if step is None else f"no step {step!r}"
        others = f"; those that do: {', '.join(map(repr, waiting))}" if waiting else ""
        raise InvalidFieldValueError(
            f"Task {state.head.id!r} is {state.status}: {which} of it {what}{others}",
            field="/step",
            details={"name": "step"},
        )
    return found


def _in_state(state: TaskState, status: StepStatus) -> list[str]:
    return [name for name, step in state.steps.items() if step.state == status]
