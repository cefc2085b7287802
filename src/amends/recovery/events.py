"""
Events of recovery, and the hooks that receive them.

An event contains names, numbers and the address of the call; never arguments, messages or results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any

import msgspec

from amends.core import recording
from amends.core.enums import Recovery
from amends.dialects.outgoing import outgoing
from amends.recovery.request_facts import request_facts
from amends.recovery.stepper import Stepper

__all__ = ["Event", "EventHook", "add_hook", "only_hooks", "publish", "remove_hook", "set_hooks"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that recovery did for one operation."""

    kind: str
    """retry · queued · gave-up · recovered · fallback · refresh · setup · verify · fix"""
    operation: str
    """`Operation.name`."""
    code: str
    vocabulary: str
    recovery: Recovery
    attempt: int
    """The number of calls made so far."""
    delay: float | None
    """For a retry, the seconds recovery will wait; for a queued call, those it is expected to wait, or has waited."""
    reason: str
    """A key of `amends.core.decision.REASONS`."""
    elapsed: float
    """Seconds since the first call was sent."""
    method: str = ""
    """The HTTP method of the call, if it is known."""
    url: str = ""
    """Its URL without query, if it is known."""
    status: int | None = None
    """The HTTP status of the failure, if it has one."""
    trace_id: str | None = None
    """The trace id of the failure, else that of the operation."""


EventHook = Callable[[Event], AbstractContextManager[Any] | None]
"""Receives an event. For a retry it may return a context manager, which recovery holds open during the wait."""

_lock = Lock()
_hooks: tuple[EventHook, ...] | None = None  # None: no hooks were set, so `log_event` is the only one


def set_hooks(*hooks: EventHook) -> None:
    """Use exactly these hooks from now on. Without arguments no events are sent. The default is a logging hook."""
    global _hooks  # noqa: PLW0603 - the hooks belong to the process
    with _lock:
        _hooks = hooks


@contextmanager
def only_hooks(*hooks: EventHook) -> Iterator[None]:
    """Use exactly these hooks in a block, and afterwards those that were there before."""
    global _hooks  # noqa: PLW0603
    with _lock:
        before, _hooks = _hooks, hooks
    try:
        yield
    finally:
        with _lock:
            _hooks = before


def add_hook(hook: EventHook) -> None:
    """Add a hook. Adding one that is there already changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


def remove_hook(hook: EventHook) -> None:
    """Remove a hook. Removing one that is not there changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[EventHook, ...]:
    if _hooks is not None:
        return _hooks
    from amends.recovery.logs import log_event

    return (log_event,)


@contextmanager
def publish(
    kind: str,
    stepper: Stepper,
    now: float,
    own: EventHook | None = None,
    *,
    upstream: Any = None,
    trace: str = "",
) -> Iterator[None]:
    """
    Send an event to every hook, and hold the context managers they return open while the block runs.

    An exception of a hook is logged and changes nothing else.

    Args:
        kind: the kind of the event.
        stepper: the operation.
        now: the time.
        own: the hook of this operation; it is called first.
        upstream: the Upstream of the operation, for the recorder.
        trace: the trace id for the recorder, if neither the operation nor the failure has one.

    """
    if recording.active():
        _record(kind, stepper, now, upstream, trace)
    hooks = _current() if own is None else (own, *_current())
    if not hooks:
        yield
        return
    event = _event(kind, stepper, now)
    with ExitStack() as stack:
        for hook in hooks:
            try:
                covering = hook(event)
                if covering is not None:
                    stack.enter_context(covering)
            except Exception:
                import logging

                logging.getLogger("amends.recovery").exception("a recovery hook failed: %r", hook)
        yield


def _record(kind: str, stepper: Stepper, now: float, upstream: Any, trace: str) -> None:
    """Report an event to the recorder, with the whole fault and decision."""
    fault, decision, operation = stepper.fault, stepper.decision, stepper.operation
    assert fault is not None
    method, url = operation.method, operation.url
    if not url:
        last = stepper.history[-1] if stepper.history else None
        method, url = request_facts(
            operation, None if last is None else last.error, None if last is None else last.result
        )
    recording.emit(
        operation.binding or "call",
        kind,
        fault,
        name=operation.name,
        method=method,
        url=url,
        decision=decision,
        # The call that succeeded is not counted yet.
        attempt=stepper.state.attempt + (kind == "recovered"),
        elapsed=now - (stepper.state.started or 0.0),
        wait=decision.delay,
        trace_id=operation.trace_id or fault.trace_id or trace,
        upstream=getattr(upstream, "service", None),
        vendor=getattr(upstream, "vendor", None),
    )


def _event(kind: str, stepper: Stepper, now: float) -> Event:
    """Return the event of an operation whose last call failed."""
    assert stepper.fault is not None
    fault, decision, operation = outgoing(stepper.fault, "telemetry"), stepper.decision, stepper.operation
    last = stepper.history[-1] if stepper.history else None
    method, url = request_facts(
        operation, None if last is None else last.error, None if last is None else last.result
    )
    return Event(
        kind=kind,
        operation=operation.name,
        code=fault.code,
        vocabulary=fault.vocabulary,
        recovery=fault.recovery,
        attempt=stepper.state.attempt,
        delay=decision.delay,
        reason=decision.reason,
        elapsed=now - (stepper.state.started or 0.0),
        method=method,
        url=url,
        status=fault.status,
        trace_id=fault.trace_id or operation.trace_id or None,
    )
