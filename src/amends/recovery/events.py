"""
What recovery tells those who watch: one kind of record, and the hooks it goes to.

An event has names and numbers only. Arguments, messages and results never get here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing

__all__ = ["Event", "EventHook", "add_hook", "remove_hook", "set_hooks"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to one operation."""

    kind: str
    """retry · gave-up · recovered · fallback · refresh · setup · verify · fix"""
    operation: str
    """Its name, as `Operation.name` says it."""
    code: str
    vocabulary: str
    recovery: Recovery
    attempt: int
    """Calls made so far."""
    delay: float | None
    """Seconds that will be waited, for a retry."""
    reason: str
    """A key of `amends.core.decision.REASONS`."""
    elapsed: float
    """Seconds since the first call began."""


EventHook = Callable[[Event], AbstractContextManager[Any] | None]
"""Takes an event. For a retry it may return a context manager, which then covers the wait."""

_lock = Lock()
_hooks: tuple[EventHook, ...] | None = None  # None: nobody has chosen, so log


def set_hooks(*hooks: EventHook) -> None:
    """Exactly these hooks from now on; none at all turns telemetry off. The default is a logging hook."""
    global _hooks  # noqa: PLW0603 - one list per process is the point
    with _lock:
        _hooks = hooks


def add_hook(hook: EventHook) -> None:
    """One more hook. Adding it twice changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


def remove_hook(hook: EventHook) -> None:
    """One hook less; one that is not there is no mistake."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[EventHook, ...]:
    if _hooks is not None:
        return _hooks
    from amends.recovery.logs import log_event

    return (log_event,)


@contextmanager
def telling(
    kind: str, operation: str, fault: Fault, decision: Decision, attempt: int, elapsed: float
) -> Iterator[None]:
    """Tell every hook, and keep open what they return while the block runs. A hook's own failure is only logged."""
    hooks = _current()
    if not hooks:
        yield
        return
    event = Event(
        kind=kind,
        operation=operation,
        code=outgoing(fault, "telemetry").code,
        vocabulary=fault.vocabulary,
        recovery=fault.recovery,
        attempt=attempt,
        delay=decision.delay,
        reason=decision.reason,
        elapsed=elapsed,
    )
    with ExitStack() as stack:
        for hook in hooks:
            try:
                covering = hook(event)
                if covering is not None:
                    stack.enter_context(covering)
            except Exception:
                # Watching must not change what is watched.
                import logging

                logging.getLogger("amends.recovery").exception("a recovery hook failed: %r", hook)
        yield
