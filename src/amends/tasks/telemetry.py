"""
What tasks tell those who watch: names, codes and numbers; never payloads, results or what a failure said.

Without a choice of one's own, failures go to the standard log (T11); `amends.tasks.otel` and `amends.tasks.logs` are others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any, Literal

import msgspec

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.dialects.outgoing import outgoing

__all__ = ["Kind", "TaskEvent", "TaskHook", "add_hook", "covering", "remove_hook", "set_hooks", "tell"]


Kind = Literal[
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
    "ended",
]
"""What may happen to a task."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to one task."""

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

    @property
    def recoverable(self) -> bool:
        """S3's word: anything but a "no"."""
        return self.recovery is not Recovery.TERMINAL

    @property
    def message(self) -> str:
        """What the code means: the only words that leave here."""
        return row_for("task", self.code or "").message if self.code else ""


TaskHook = Callable[[TaskEvent], AbstractContextManager[Any] | None]
"""Takes an event. For an attempt it may return a context manager, which then covers the call and sees its failure."""

_lock = Lock()
_hooks: tuple[TaskHook, ...] | None = None  # None: nobody has chosen, so log


def set_hooks(*hooks: TaskHook) -> None:
    """Exactly these hooks from now on; none at all turns it off."""
    global _hooks  # noqa: PLW0603 - one list per process is the point
    with _lock:
        _hooks = hooks


def add_hook(hook: TaskHook) -> None:
    """One more hook. Adding it twice changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


def remove_hook(hook: TaskHook) -> None:
    """One hook less; one that is not there is no mistake."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[TaskHook, ...]:
    if _hooks is not None:
        return _hooks
    from amends.tasks.logs import log_event

    return (log_event,)


def tell(kind: Kind, *, fault: Fault | None = None, **facts: Any) -> None:
    """Tell every hook. A hook's own failure is only logged: watching must not change what is watched."""
    for _ in _told(kind, fault, facts):
        pass


@contextmanager
def covering(**facts: Any) -> Iterator[None]:
    """An attempt: what the hooks return stays open while the block runs, and sees what it raises."""
    if _hooks is None:
        yield  # the log says nothing about attempts
        return
    with ExitStack() as stack:
        for covered in _told("attempt", None, facts):
            stack.enter_context(covered)
        yield


def _told(kind: Kind, fault: Fault | None, facts: dict[str, Any]) -> Iterator[AbstractContextManager[Any]]:
    hooks = _current()
    if not hooks:
        return
    code, recovery = (None, None) if fault is None else (outgoing(fault, "telemetry").code, fault.recovery)
    event = TaskEvent(kind=kind, code=code, recovery=recovery, **facts)
    for hook in hooks:
        try:
            covered = hook(event)
        except Exception:
            import logging

            logging.getLogger("amends.tasks").exception("a task hook failed: %r", hook)
        else:
            if covered is not None:
                yield covered
