"""
Events of tasks for hooks. Events have names, codes and numbers, and never payloads, results or texts of failures.

By default, failures are logged with the standard library (T11). `amends.tasks.otel` and `amends.tasks.logs` have further hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from msgspec.structs import replace

from amends.core import recording
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing
from amends.serving.tracing import CONTEXTS, incoming
from amends.tasks.entries import Submitted
from amends.tasks.logs import log_event
from amends.tasks.task_event import Kind, TaskEvent

__all__ = [
    "Kind",
    "TaskEvent",
    "TaskHook",
    "add_hook",
    "attempt_scope",
    "publish",
    "remove_hook",
    "set_hooks",
    "submit_scope",
]


TaskHook = Callable[[TaskEvent], AbstractContextManager[Any] | None]
"""Takes an event. For a submission or an attempt it may return a context manager, which is entered around it."""

_lock = Lock()
_hooks: tuple[TaskHook, ...] | None = None  # None: the default hook, which logs


def set_hooks(*hooks: TaskHook) -> None:
    """Replace all hooks, including the default one. Without arguments, events are not reported."""
    global _hooks  # noqa: PLW0603 - one list per process
    with _lock:
        _hooks = hooks


def add_hook(hook: TaskHook) -> None:
    """Add a hook. Adding it twice has no further effect."""
    global _hooks  # noqa: PLW0603
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


def remove_hook(hook: TaskHook) -> None:
    """Remove a hook. Removing one that is not there has no effect."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[TaskHook, ...]:
    if _hooks is not None:
        return _hooks
    return (log_event,)


def publish(kind: Kind, *, fault: Fault | None = None, **facts: Any) -> None:
    """Call every hook with an event. An exception of a hook is logged and does not affect the task."""
    if fault is not None:
        recording.emit("tasks", _OUTCOMES.get(kind, "failed"), fault, **_recorded(facts))
    for _ in _run_hooks(kind, fault, facts):
        pass


_OUTCOMES = {
    "retry": "retry",
    "fallback": "fallback",
    "doubt": "doubt",
    "failed": "gave-up",
    "ended": "failed",
}
"""The recorder's outcome for each kind of failure."""


def _recorded(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of an event under the recorder's names. A task's id is its trace."""
    names = (facts.get("capability"), facts.get("step"), facts.get("agent"))
    began = facts.get("began")
    return {
        "trace_id": facts.get("task"),
        "name": " ".join(str(each) for each in names if each),
        "attempt": facts.get("attempt"),
        "wait": facts.get("delay"),
        "elapsed": None if began is None else max(0.0, facts["at"] - began),
        "facts": {name: facts[name] for name in ("reason", "status") if facts.get(name) is not None} or None,
    }


@contextmanager
def submit_scope(record: Submitted) -> Iterator[Submitted]:
    """
    Publish a submission to the hooks that have the attribute `wants_submissions`.

    The context managers that they return are open while the task is stored. If one of them returns a text when it is
    entered, that is the W3C `traceparent` of the task, and is recorded with it; otherwise it is that of the request or task
    that submits this one.
    """
    facts = {"at": record.at, "task": record.id, "agent": record.agent, "capability": record.type}
    with ExitStack() as stack:
        hooks = tuple(hook for hook in _current() if getattr(hook, "wants_submissions", False))
        for context in _run_hooks("submitted", None, facts, hooks):
            entered = stack.enter_context(context)
            if isinstance(entered, str):
                record = replace(record, trace=entered)
        if record.trace is None and any(map(ContextVar.get, CONTEXTS)):
            record = replace(record, trace=incoming())
        yield record


@contextmanager
def attempt_scope(**facts: Any) -> Iterator[None]:
    """Publish an attempt. The context managers that hooks return are open while the block runs."""
    with ExitStack() as stack:
        for context in _run_hooks("attempt", None, facts):
            stack.enter_context(context)
        yield


def _run_hooks(
    kind: Kind, fault: Fault | None, facts: dict[str, Any], hooks: tuple[TaskHook, ...] | None = None
) -> Iterator[AbstractContextManager[Any]]:
    hooks = _current() if hooks is None else hooks
    if not hooks:
        return
    code, recovery = (None, None) if fault is None else (outgoing(fault, "telemetry").code, fault.recovery)
    event = TaskEvent(kind=kind, code=code, recovery=recovery, **facts)
    for hook in hooks:
        try:
            context = hook(event)
        except Exception:
            import logging

            logging.getLogger("amends.tasks").exception("a task hook failed: %r", hook)
        else:
            if context is not None:
                yield context
