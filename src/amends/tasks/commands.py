"""
What anybody may say to a task: cancel, retry, an answer, whether it happened.

It is appended behind exactly the state it was said about, so it is never said to a task that has moved on since; then the queue
is rung, unless the task is being worked on here and has heard.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from amends.errors.task import InvalidFieldValueError
from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.documents import Status
from amends.tasks.entries import Answered, Cancelled, Record, Retried, Verified, encode
from amends.tasks.state import TaskState
from amends.tasks.steps import Standing
from amends.tasks.task_index import mend
from amends.tasks.task_reader import known, log_name
from amends.tasks.task_request import kept

__all__ = ["answer", "cancel", "retry", "say", "verify"]


async def say(
    store: Store,
    space: str,
    id: str,
    command: Callable[[TaskState], Record | None],
    heard: Callable[[str], Awaitable[bool]],
) -> TaskState:
    """
    Say something to a task; its state after that.

    Args:
        store: where it is.
        space: which set of tasks it belongs to.
        id: the task.
        command: what is said to a task in such a state; None: nothing.
        heard: whether a worker of this process has the task, and has heard.

    Raises:
        TaskNotFoundError: there is no such task.
        FaultError: it cannot be said to a task in such a state.
    """
    while True:
        state, last = await known(store, space, id)
        record = command(state)
        if record is None:
            return state
        try:
            seq = await store.log(log_name(space, id)).append(encode([record]), last=last)
        except ConflictError:
            continue
        state.apply([record])
        await mend(store, space, state, seq)
        if not await heard(id):
            await store.queue(space).put(id.encode(), key=f"{id}!{seq}")
        return state


def cancel(state: TaskState, *, now: float) -> Record | None:
    """Nothing, where it is over or was cancelled already."""
    return None if state.over or state.cancelled else Cancelled(at=now)


def retry(state: TaskState, *, now: float) -> Record:
    """Raises INVALID_FIELD_VALUE where it did not fail."""
    if state.status not in {Status.FAILED, Status.CANCELLED}:
        raise InvalidFieldValueError(f"A task that is {state.status} is not tried again", field="/status")
    return Retried(at=now)


def answer(state: TaskState, *, now: float, answer: Any, step: str | None) -> Record:
    """Raises INVALID_FIELD_VALUE where nothing was asked."""
    return Answered(at=now, step=_meant(state, "asking", step), answer=kept(answer))


def verify(state: TaskState, *, now: float, happened: bool, result: Any, step: str | None) -> Record:
    """Raises INVALID_FIELD_VALUE where no step is in doubt."""
    return Verified(at=now, step=_meant(state, "doubt", step), happened=happened, result=kept(result))


def _meant(state: TaskState, standing: Standing, step: str | None) -> str:
    """The step that is meant: the one named, or the first that waits for such a thing."""
    names = (name for name, each in state.steps.items() if each.state == standing and step in {None, name})
    found = next(names, None)
    if found is None:
        what = "asked for anything" if standing == "asking" else "is in doubt"
        raise InvalidFieldValueError(f"No such step {what}", field="/step", details={"name": "step"})
    return found
