"""
The events of tasks, the hooks that get them, and the hooks that log failures (T11).

Events have names, codes and numbers, and never payloads, results or texts of failures. Without hooks of the user, failures are
logged with the standard library. A log record has the members of the agent error contract (level, timestamp, agent, taskId,
error {code, message}) and the event. An exception of a hook is logged and does not affect the task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Literal

import msgspec
from msgspec.structs import replace

from amends.core import recording
from amends.core.enums import Action, Recovery
from amends.core.fault import Fault
from amends.core.text import strip, truncate
from amends.core.vocabulary import row_for
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.outgoing import outgoing_code
from amends.logs import logger
from amends.serving.tracing import id_of, incoming, left
from amends.tasks.documents import stamp
from amends.tasks.entries import Asked, Ended, Failed, Finished, Record, Submitted
from amends.tasks.state import TaskState

__all__ = [
    "Kind",
    "TaskEvent",
    "TaskHook",
    "add_hook",
    "attempt_scope",
    "log_event",
    "publish",
    "publish_failure",
    "publish_record",
    "publish_refusal",
    "record_of",
    "remove_hook",
    "set_hooks",
    "structlog_event",
    "submit_scope",
]

_log = logger("amends.tasks")

_LONGEST_NAME = 256
"""Bytes of a name in a refused request."""

Kind = Literal[
    "submitted",
    "attempt",
    "retry",
    "failed",
    "fallback",
    "finished",
    "asked",
    "doubt",
    "undone",
    "undo-failed",
    "taken-over",
    "refused",
    "ended",
]
"""The kind of an event. A refused request never became a task: it was invalid, or no agent has the capability."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True):
    """
    One event of one task, as the hooks get it.

        def count(event: TaskEvent) -> None:
            if event.kind == "failed":
                failures.labels(event.agent, event.capability, event.code).inc()

        amends.tasks.add_hook(count)
    """

    kind: Kind
    at: float
    task: str
    agent: str | None = None
    capability: str | None = None
    step: str | None = None
    attempt: int | None = None
    code: str | None = None
    recovery: Recovery | None = None
    delay: float | None = None
    reason: str | None = None
    status: str | None = None
    began: float | None = None
    trace: str | None = None
    """The W3C `traceparent` of the task's submission."""

    @property
    def recoverable(self) -> bool:
        """`recoverable` of the agent error contract: False only for a terminal failure."""
        return self.recovery is not Recovery.TERMINAL

    @property
    def message(self) -> str:
        """The standard message of the code; never the text of the failure."""
        return row_for("task", self.code).message if self.code else ""


# Logging --------------------------------------------------------------------------------------------------------

# Retries are information, events that may need attention are warnings, and failures are errors.
_LEVELS: dict[Kind, str] = {
    "retry": "info",
    "fallback": "warning",
    "failed": "error",
    "undo-failed": "error",
    "doubt": "warning",
    "taken-over": "warning",
    "refused": "error",
}


def record_of(event: TaskEvent) -> dict[str, object] | None:
    """The log record of an event, or None if the event is not a failure."""
    level = _LEVELS.get(event.kind)
    if level is None:
        return None
    error = {"code": event.code, "message": event.message}
    record: dict[str, object] = {
        "level": level,
        "timestamp": stamp(event.at),
        "agent": event.agent,
        "taskId": event.task,
        "event": event.kind,
    }
    if event.code is not None:
        record["error"] = error
    trace = id_of(event.trace)
    if trace is not None:
        record["trace_id"] = trace
    for name in ("capability", "step", "attempt", "delay", "reason"):
        value = getattr(event, name)
        if value is not None:
            record[name] = value
    return record


def log_event(event: TaskEvent) -> None:
    """The default hook: logs to "amends.tasks", with the record as `record.amends`."""
    record = record_of(event)
    if record is None:
        return
    level = logging.getLevelNamesMapping()[_LEVELS[event.kind].upper()]
    if not _log.isEnabledFor(level):
        return
    _log.log(
        level,
        "task %s: %s %s%s%s",
        event.task or "without an id",
        event.kind,
        event.code or "",
        f" at {event.agent}" if event.agent else "",
        f" [trace_id={record['trace_id']}]" if "trace_id" in record else "",
        extra={"amends": record},
    )


def structlog_event(event: TaskEvent) -> None:
    """
    A hook for structlog: `amends.tasks.add_hook(amends.tasks.events.structlog_event)`.

    Raises:
        ImportError: structlog is not installed; the message has the install command.
    """
    record = record_of(event)
    if record is None:
        return
    try:
        import structlog
    except ImportError as missing:
        raise ImportError(
            "amends.tasks.events.structlog_event needs structlog: pip install structlog"
        ) from missing
    what = record.pop("event")
    getattr(structlog.get_logger("amends.tasks"), _LEVELS[event.kind])(what, **record)


# Hooks ----------------------------------------------------------------------------------------------------------

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


@explains_wrong_calls
def set_hooks(*hooks: TaskHook) -> None:
    """
    Replace all hooks, including the default one. Without arguments, events are not reported.

    >>> set_hooks()  # no logging
    >>> set_hooks(log_event)  # the default
    """
    global _hooks  # noqa: PLW0603 - one list per process
    with _lock:
        _hooks = hooks


@explains_wrong_calls
def add_hook(hook: TaskHook) -> None:
    """
    Add a hook. Adding it twice has no further effect.

    >>> import asyncio
    >>> from amends.tasks import Agent, Orchestrator
    >>> trains = Agent("trains")
    >>> @trains.capability(read_only=True)
    ... async def search(station: str) -> list[str]:
    ...     return ["09:12"]
    >>> async def example():
    ...     async with Orchestrator([trains]) as orchestrator:
    ...         await orchestrator.run("search", "Ulm")
    >>> def show(event):
    ...     print(event.kind, event.agent)
    >>> add_hook(show)
    >>> asyncio.run(example())
    attempt trains
    finished trains
    ended trains
    >>> remove_hook(show)
    """
    global _hooks  # noqa: PLW0603
    with _lock:
        if hook not in _hooks:
            _hooks = (*_hooks, hook)


@explains_wrong_calls
def remove_hook(hook: TaskHook) -> None:
    """
    Remove a hook. Removing one that is not there has no effect.

    >>> add_hook(print)
    >>> remove_hook(print)
    """
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


def publish_refusal(
    fault: Fault, *, at: float, task: str = "", agent: str | None = None, capability: str | None = None
) -> None:
    """Publish that a request was refused; it may have no id. The names are the sender's, so they are cut and stripped."""
    event = TaskEvent(
        kind="refused",
        at=at,
        task=_short(task),
        agent=_short(agent) if agent else None,
        capability=_short(capability) if capability else None,
        began=at,
        trace=incoming(),
    )
    _publish_fault(event, fault)


def _short(name: str) -> str:
    return truncate(strip(name), _LONGEST_NAME)


def publish_failure(attempt: TaskEvent, fault: Fault, *, at: float) -> None:
    """Publish that an attempt failed that belongs to no step of a plan: a delegation, or a request to one agent."""
    _publish_fault(replace(attempt, kind="failed", at=at, began=attempt.at), fault)


def _publish_fault(event: TaskEvent, fault: Fault) -> None:
    event = replace(event, code=outgoing_code(fault, "telemetry"), recovery=fault.recovery)
    facts = {name: fact for name in ("reason", "status") if (fact := getattr(event, name)) is not None}
    recording.emit(
        "tasks",
        _OUTCOMES.get(event.kind, "failed"),
        fault,
        # A task's id is its trace.
        trace_id=event.task or None,
        name=" ".join(filter(None, (event.capability, event.step, event.agent))),
        attempt=event.attempt,
        wait=event.delay,
        elapsed=None if event.began is None else max(0.0, event.at - event.began),
        facts=facts or None,
    )
    _run_event(event)


def _run_event(event: TaskEvent) -> None:
    for _ in _run_hooks(event, _hooks):
        pass


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
        _publish_fault(event, fault)
    else:
        _run_event(event)


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
        record = replace(record, tries=left().tries)
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
        except Exception:  # noqa: BLE001 - a hook must not fail the task
            _log.exception("a task hook failed: %r", hook)
        else:
            if context is not None:
                yield context
