"""
The events of tasks, and the hooks that get them.

Without hooks of the user, failures are logged (see `logs`). An exception of a hook is logged and does not affect the task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock

from msgspec.structs import replace

from amends.core import recording
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing_code
from amends.serving.tracing import incoming
from amends.tasks.entries import Asked, Ended, Failed, Finished, Record, Submitted
from amends.tasks.logs import Kind, TaskEvent, log_event
from amends.tasks.state import TaskState

__all__ = [
    "Kind",
    "TaskEvent",
    "TaskHook",
    "add_hook",
    "attempt_scope",
    "publish",
    "publish_record",
    "remove_hook",
    "set_hooks",
    "submit_scope",
]

TaskHook = Callable[[TaskEvent], AbstractContextManager[object] | None]
"""Takes an event. For a submission or an attempt it may return a context manager, which is entered around it."""

_lock = Lock()
_hooks: tuple[TaskHook, ...] = (log_event,)
_OUTCOMES: dict[Kind, str] = {
    "retry": "retry",
    "fallback": "fallback",
    "doubt": "doubt",
    "failed": "gave-up",
    "ended": "failed",
}
"""The recorder's outcome for each kind of failure."""


def set_hooks(*hooks: TaskHook) -> None:
    """Replace all hooks, including the default one. Without arguments, events are not reported."""
    global _hooks  # noqa: PLW0603 - one list per process
    with _lock:
        _hooks = hooks


def add_hook(hook: TaskHook) -> None:
    """Add a hook. Adding it twice has no further effect."""
    global _hooks  # noqa: PLW0603
    with _lock:
        if hook not in _hooks:
            _hooks = (*_hooks, hook)


def remove_hook(hook: TaskHook) -> None:
    """Remove a hook. Removing one that is not there has no effect."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _hooks if each != hook)


def publish_record(state: TaskState, record: Record) -> None:
    """Publish the event of a record, after the record was written and folded into the state."""
    if isinstance(record, Finished):
        kind: Kind = "undone" if record.undo else "finished"
        publish(state, kind, at=record.at, step=record.step, began=record.began)
    elif isinstance(record, Failed):
        publish(
            state,
            _kind_of_failure(state, record),
            at=record.at,
            step=record.step,
            began=record.began,
            fault=record.fault,
            delay=record.decision.delay,
            reason=record.decision.reason,
        )
    elif isinstance(record, Asked):
        publish(state, "asked", at=record.at, step=record.step)
    elif isinstance(record, Ended):
        publish(state, "ended", at=record.at, status=record.status, fault=record.fault, began=state.began)


def _kind_of_failure(state: TaskState, record: Failed) -> Kind:
    action = record.decision.action
    if action is Action.RETRY:
        return "retry"
    if action is Action.FALLBACK and state.steps[record.step].state != "failed":
        return "fallback"
    return "undo-failed" if record.undo else "failed"


def publish(
    state: TaskState,
    kind: Kind,
    *,
    at: float,
    step: str | None = None,
    agent: str | None = None,
    fault: Fault | None = None,
    began: float | None = None,
    delay: float | None = None,
    reason: str | None = None,
    status: str | None = None,
) -> None:
    """Publish an event of a task or of one of its steps. The step's capability, attempt and agent are added."""
    found = state.steps.get(step) if step is not None else None
    event = TaskEvent(
        kind=kind,
        at=at,
        task=state.head.id,
        agent=agent or (found and found.plan.agent) or state.agent,
        capability=found.plan.type if found else None,
        step=step,
        attempt=found.stepper.state.attempt if found else None,
        delay=delay,
        reason=reason,
        status=status,
        began=began,
        trace=state.head.trace,
    )
    if fault is not None:
        event = replace(event, code=outgoing_code(fault, "telemetry"), recovery=fault.recovery)
        _record(event, fault)
    for _ in _run_hooks(event, _hooks):
        pass


def _record(event: TaskEvent, fault: Fault) -> None:
    """Give a failure to the recorder, with the facts under its names. A task's id is its trace."""
    facts = {"reason": event.reason, "status": event.status}
    recording.emit(
        "tasks",
        _OUTCOMES.get(event.kind, "failed"),
        fault,
        trace_id=event.task,
        name=" ".join(each for each in (event.capability, event.step, event.agent) if each),
        attempt=event.attempt,
        wait=event.delay,
        elapsed=None if event.began is None else max(0.0, event.at - event.began),
        facts={name: fact for name, fact in facts.items() if fact is not None} or None,
    )


@contextmanager
def submit_scope(record: Submitted) -> Iterator[Submitted]:
    """
    Publish a submission to the hooks that have the attribute `wants_submissions`.

    The context managers that they return are open while the task is stored. If one of them returns a text when it is
    entered, that is the W3C `traceparent` of the task, and is recorded with it; otherwise it is that of the request or task
    that submits this one.
    """
    event = TaskEvent(
        kind="submitted", at=record.at, task=record.id, agent=record.agent, capability=record.type
    )
    hooks = tuple(hook for hook in _hooks if getattr(hook, "wants_submissions", False))
    with ExitStack() as stack:
        for context in _run_hooks(event, hooks):
            entered = stack.enter_context(context)
            if isinstance(entered, str):
                record = replace(record, trace=entered)
        if record.trace is None:
            record = replace(record, trace=incoming())
        yield record


@contextmanager
def attempt_scope(attempt: TaskEvent) -> Iterator[None]:
    """Publish an attempt. The context managers that hooks return are open while the block runs."""
    with ExitStack() as stack:
        for context in _run_hooks(attempt, _hooks):
            stack.enter_context(context)
        yield


def _run_hooks(event: TaskEvent, hooks: tuple[TaskHook, ...]) -> Iterator[AbstractContextManager[object]]:
    for hook in hooks:
        try:
            context = hook(event)
        except Exception:
            logging.getLogger("amends.tasks").exception("a task hook failed: %r", hook)
        else:
            if context is not None:
                yield context
